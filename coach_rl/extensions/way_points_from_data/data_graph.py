"""An agent that plans on a graph of way-points chosen from the data of the level below.

    level "top":  DataGraphAgentParameters()
    level "low":  HIQLAgentParameters(), memory with DataGoalsParameters(actor_ahead=25), horizon 25

The level below learns values and a policy for goals from a data set. Once in a number of its
updates places are chosen from its memory, and edges by its values; between these moments the graph
stays. The search, misses within an episode, films and export are those of `planning`.

Sources: SoRB (Eysenbach, Salakhutdinov, Levine 2019, arXiv:1906.05253); Sparse Graphical Memory
(Emmons et al. 2020, arXiv:2003.06417). docs/goals_from_data.md lists the differences.
"""

import time
from dataclasses import field
from typing import ClassVar

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.agents import AgentContext, LevelPlace, TrainingReport
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.records import Observation
from coach_rl.core.saved import SavedNames
from coach_rl.core.seeding import generator
from coach_rl.extensions.data.level_data import UsesDataBelow
from coach_rl.extensions.planning.edge_costs import EdgeCosts, EdgeCostsParameters
from coach_rl.extensions.planning.graph_agent import GraphAgent, GraphAgentParameters
from coach_rl.extensions.planning.place_space import PlaceSpace
from coach_rl.extensions.way_points_from_data.data_places import DataPlaces, MeanCosts
from coach_rl.extensions.way_points_from_data.state_planner import StatePlanner
from coach_rl.extensions.way_points_from_data.value_steps import ValueSteps
from coach_rl.memories.batches import NEXT_OBSERVATIONS


@parameter_class
class DataGraphAgentParameters(GraphAgentParameters, UsesDataBelow):
    """An agent that plans way-points on a graph from data, above a level that learns from them."""

    name: NonEmpty[str] = "data_graph"
    """The agent's name in logs and files."""
    places: DataPlaces = field(default_factory=DataPlaces)
    """The places, and up to which cost edges join them."""
    costs: EdgeCostsParameters = field(default_factory=ValueSteps)
    """The costs of a try to pass an edge: steps by the values of the level below."""
    every: Positive[int] = 10_000
    """Updates of the level below after which the graph is built again, until the agent acts in the
    world. Evaluations plan on the latest graph, or send the goal itself where there is none."""

    def build(self, context: AgentContext) -> "DataGraphAgent":
        """The agent.

        Raises:
            ConfigurationError: The levels have no goals that could be places of one graph, or the
                agent below keeps no transitions of which places could be chosen.
        """
        place = context.place
        owner = place.owner(self.name)
        space = PlaceSpace.between(
            place, owner, fixed_goal=self.fixed_goal, conditions=self.conditions
        )
        if not space.requests_all:
            raise ConfigurationError(
                f"{owner}: goals of the level below have {space.requested_size} of a place's "
                f"{space.size} elements, and edges of a graph from data lead to whole places; give "
                "both levels goals with the same elements, and leave out `conditions`"
            )
        costs = self.costs.build(owner, place, self.fixed_goal)
        below = self._learner_below(owner, place)
        rng = generator(context.seed, self.name, "candidates")
        return DataGraphAgent(self, space=space, costs=costs, below=below, rng=rng)

    def _learner_below(self, owner: str, place: LevelPlace) -> OffPolicyAgent:
        """The agent below, whose memory keeps the observations that the level above sees.

        Raises:
            ConfigurationError: It has no memory, or filters change what that keeps.
        """
        below = place.agent_below
        if not isinstance(below, OffPolicyAgent):
            raise ConfigurationError(
                f"{owner} chooses places among the transitions that the level below keeps, and "
                f"{type(below).__name__} keeps none; give that level HIQLAgentParameters or "
                "GCIQLAgentParameters"
            )
        if changed := sorted(below.input_filter.changed_keys):
            raise ConfigurationError(
                f"{owner} reads observations from the transitions that agent '{below.name}' keeps, "
                f"where its InputFilter has changed {', '.join(changed)}; leave them as they are, "
                "or set that agent's normalise_observations, which keeps them"
            )
        return below


class DataGraphAgent(GraphAgent):
    """Plans on a graph that is built from the data of the level below.

    Args:
        params: The agent's parameters.
        space: What places are made of.
        costs: What edges cost.
        below: The agent of the level below, with the data in its memory.
        rng: Draws the transitions of which places are chosen.
    """

    SAVED: ClassVar[SavedNames] = ("_rng", "_built_at")

    def __init__(
        self,
        params: DataGraphAgentParameters,
        *,
        space: PlaceSpace,
        costs: EdgeCosts,
        below: OffPolicyAgent,
        rng: np.random.Generator,
    ) -> None:
        mean_costs = MeanCosts(costs)
        super().__init__(params, space=space, costs=mean_costs)
        self._planner = StatePlanner(
            self._memory,
            space,
            costs=costs,
            longest=params.places.longest,
            retry_discount=params.retry_discount,
        )
        self._choice = params
        self._costs = mean_costs
        self._below = below
        self._rng = rng
        self._built_at = 0
        """Updates of the level below at which the graph was built; 0: it was not."""

    def train(self, clock: Clock) -> TrainingReport | None:
        report = super().train(clock)
        if not self._is_due:
            return report
        began = time.perf_counter()
        self._build()
        self._built_at = self._below.training_steps
        roadmap = self.graph.roadmap
        metrics = {
            "graph/places": float(len(roadmap.places)),
            "graph/edges": float(len(roadmap.begins)),
            "graph/parts": float(roadmap.parts.max(initial=-1) + 1),
            "graph/edge_cost": float(self.graph.try_costs.mean()) if len(roadmap.begins) else 0.0,
            "time/graph_building": time.perf_counter() - began,
        }
        more = {} if report is None else report.metrics
        return TrainingReport(training_steps=0, metrics={**more, **metrics})

    @property
    def _is_due(self) -> bool:
        """True if the graph is to be built: again, or, once the agent acts, for the first time."""
        updates = self._below.training_steps
        if self._decisions:
            return updates > 0 and not self._built_at
        return updates - self._built_at >= self._choice.every

    def _build(self) -> None:
        """Choose places among the transitions that the level below keeps, and their edges."""
        store = self._below.memory.store
        positions = store.draw(self._rng, self._choice.places.candidates)
        seen: Observation = {
            key: store.read(f"{NEXT_OBSERVATIONS}{key}", positions)
            for key in self._below.observation_space.spaces
        }
        states = {key: values for key, values in seen.items() if key != GOAL_KEY}
        places = self._choice.places.chosen(
            self._space.achieved(seen), states, self._costs, bounds=self._space.bounds
        )
        self._memory.replace(places)
        self._memory.reprice()
