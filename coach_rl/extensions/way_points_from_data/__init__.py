"""A graph of way-points from a data set, above a level that learns to reach goals from it.

May import what agents may, and `data`, `goals_from_data`, `hac`, `planning`. Start with
`data_graph`, the agent that builds the graph; `data_places` chooses places and edges, `value_steps`
reads steps off the values of the level below.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.way_points_from_data.data_graph import (
        DataGraphAgent,
        DataGraphAgentParameters,
    )
    from coach_rl.extensions.way_points_from_data.data_places import DataPlaces
    from coach_rl.extensions.way_points_from_data.value_steps import ValueSteps
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["DataGraphAgent", "DataGraphAgentParameters", "DataPlaces", "ValueSteps"]
