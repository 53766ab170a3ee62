"""Planning on graphs of places, above a level that reaches goals.

May import what agents may. Start with `graph_agent`; `way_points` holds the estimates and the
search, `places` the nodes, `edge_costs` the costs of edges.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.planning.edge_costs import CriticSteps, EdgeLengths
    from coach_rl.extensions.planning.graph_agent import GraphAgent, GraphAgentParameters
    from coach_rl.extensions.planning.places import FarthestPoints, GridPlaces
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CriticSteps", "EdgeLengths", "FarthestPoints", "GraphAgent", "GraphAgentParameters",
    "GridPlaces",
]  # fmt: skip
