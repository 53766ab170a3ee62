"""Places of a graph chosen from a data set, and edges wherever one is near enough to another.

DataGraphAgentParameters(places=DataPlaces(count=100, longest=25.0))
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray, IntArray, Observation, take
from coach_rl.core.state import State
from coach_rl.extensions.planning.edge_costs import EdgeCosts
from coach_rl.extensions.planning.places import Places
from coach_rl.extensions.planning.roadmap import Roadmap, squared_distances


@parameter_class
class DataPlaces:
    """Places chosen from achieved goals of a data set by farthest-point sampling.

    Edges join places that are few steps apart by the costs, as in SoRB (Eysenbach et al. 2019,
    arXiv:1906.05253, section 3); fewer places than it has cover the data, as in HIGL (Kim et al.
    2021, arXiv:2110.13625).
    """

    are_visited: ClassVar[bool] = True
    grow: ClassVar[bool] = False  # all at once, when the agent builds its graph

    count: Positive[int] = 100
    """Places at most; there are fewer where the candidates achieve fewer different goals."""
    candidates: Positive[int] = 10_000
    """Transitions drawn from the data, of whose achieved goals places are chosen."""
    longest: Positive[float] = 25.0
    """Steps, or other units of the costs, above which no edge leads from one place to another; the
    horizon of the level below should allow for as many."""

    def build(
        self,
        low: FloatArray,
        high: FloatArray,
        requested: int,  # noqa: ARG002 - as PlacesParameters
    ) -> Places:
        """The places before any are chosen: none."""
        empty = np.zeros(0, np.int64)
        roadmap = Roadmap(
            places=np.zeros((0, len(low))), begins=empty, ends=empty, lengths=np.zeros(0)
        )
        return ChosenPlaces(roadmap, {}, low=low, high=high)

    def chosen(
        self,
        goals: FloatArray,
        states: Observation,
        costs: EdgeCosts,
        *,
        bounds: tuple[FloatArray, FloatArray],
    ) -> Places:
        """The places among achieved goals, and the edges between them.

        Where an edge is short enough in one direction there is one in the other, too, which costs
        as much as it does: every place of a connected part can be left.

        Args:
            goals: Achieved, [K, G].
            states: Observations made there, [K, ...] each.
            costs: Costs of edges; the graph has those up to `longest`.
            bounds: Lower and upper bounds of goals, [G] each.
        """
        numbers = farthest_points(goals, self.count)
        there = take(states, numbers)
        # All pairs of places, sorted by their beginnings; [M, M] without its diagonal.
        all_pairs = Roadmap.of_neighbours(goals[numbers].astype(np.float64), len(numbers))
        steps = np.full((len(numbers), len(numbers)), np.inf)
        edges = np.arange(len(all_pairs.begins))
        steps[all_pairs.begins, all_pairs.ends] = costs.of(all_pairs, there, edges)
        is_near = np.minimum(steps, steps.T) <= self.longest
        kept = is_near[all_pairs.begins, all_pairs.ends]
        roadmap = Roadmap(
            places=all_pairs.places,
            begins=all_pairs.begins[kept],
            ends=all_pairs.ends[kept],
            lengths=all_pairs.lengths[kept],
        )
        low, high = bounds
        return ChosenPlaces(roadmap, there, low=low, high=high)


def farthest_points(points: FloatArray, count: int) -> IntArray:
    """Numbers of points that cover all, each the farthest from those before it, [up to count].

    The first one is point 0; points that were chosen already, or equal one, are not chosen again.

    Args:
        points: [K, G], K above 0.
        count: How many to choose.
    """
    chosen = [0]
    squares = squared_distances(points, points[:1])[:, 0]  # [K] to the nearest that is chosen
    while len(chosen) < count and squares.max() > 0:
        chosen.append(int(squares.argmax()))
        squares = np.minimum(squares, squared_distances(points, points[chosen[-1:]])[:, 0])
    return np.array(chosen, np.int64)


@dataclass
class ChosenPlaces:
    """Places that were chosen all at once."""

    roadmap: Roadmap
    states: Observation
    low: FloatArray
    """Lower bounds of goals, [G]."""
    high: FloatArray
    """Upper bounds of goals, [G]."""

    @property
    def numbers(self) -> int:
        return len(self.low)

    def drawn(self, numbers: FloatArray) -> FloatArray:
        """Goals [..., G] that may be worth exploring, from anywhere within the bounds."""
        goals: FloatArray = self.low + numbers * (self.high - self.low)
        return goals

    def visit(self, goals: FloatArray, states: Observation) -> IntArray:  # noqa: ARG002 - as Places
        """Nothing changes."""
        return np.zeros(0, np.int64)

    def state_dict(self) -> State:
        """Places, edges, and the observations made at places."""
        roadmap = self.roadmap
        return {
            "places": roadmap.places.copy(),
            "begins": roadmap.begins.copy(),
            "ends": roadmap.ends.copy(),
            "states": {key: values.copy() for key, values in self.states.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Restore a saved state; SpaceError for goals of another size."""
        places = state["places"]
        if "begins" not in state or places.shape[1:] != self.roadmap.places.shape[1:]:
            raise SpaceError("the places that were saved are goals of another kind")
        begins, ends = state["begins"].copy(), state["ends"].copy()
        lengths = np.sqrt(((places[begins] - places[ends]) ** 2).sum(axis=1))
        self.roadmap = Roadmap(places=places.copy(), begins=begins, ends=ends, lengths=lengths)
        self.states = {key: values.copy() for key, values in state["states"].items()}
