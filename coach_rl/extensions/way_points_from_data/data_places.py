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
    arXiv:1906.05253, section 2.2); fewer places than it has cover the data, as in HIGL (Kim et al.
    2021, arXiv:2110.13625).
    """

    are_visited: ClassVar[bool] = True
    grow: ClassVar[bool] = False  # all at once, when the agent builds its graph

    count: Positive[int] = 200
    """Places at most; there are fewer where the candidates achieve fewer different goals."""
    candidates: Positive[int] = 10_000
    """Transitions drawn from the data, of whose achieved goals places are chosen."""
    states: Positive[int] = 8
    """Observations of each place over which the costs of its edges are averaged: those of the
    candidates nearest to it, which differ in all but the goal, such as in velocity."""
    longest: Positive[float] = 15.0
    """Steps, or other units of the costs, above which no edge leads from one place to another. Less
    than the horizon of the level below, and than the number of updates times the rate of the
    values' targets: values that young do not count more steps."""

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

        An edge leads from one place to another where it costs `longest` or less. Places that can't
        be both reached and left are dropped: of each connected part, the largest strongly connected
        one remains.

        Args:
            goals: Achieved, [K, G].
            states: Observations made there, [K, ...] each.
            costs: Costs of edges between places with S = `states` observations each.
            bounds: Lower and upper bounds of goals, [G] each.
        """
        places = goals[farthest_points(goals, self.count)].astype(np.float64)
        near = squared_distances(places, goals).argsort(axis=1, kind="stable")[:, : self.states]
        there = take(states, near)  # [M, S, ...] each
        all_pairs = Roadmap.of_neighbours(places, len(places))
        steps = costs.of(all_pairs, there, np.arange(len(all_pairs.begins)))
        (short,) = (steps <= self.longest).nonzero()
        roadmap = Roadmap(
            places=places,
            begins=all_pairs.begins[short],
            ends=all_pairs.ends[short],
            lengths=all_pairs.lengths[short],
        )
        kept = strongly_connected(roadmap)
        low, high = bounds
        return ChosenPlaces(roadmap.part(kept), take(there, kept), low=low, high=high)


@dataclass(frozen=True)
class MeanCosts:
    """Costs of edges averaged over S observations of each place.

    Their `states` are [M, S, ...] each.
    """

    costs: EdgeCosts
    """Those of single observations."""

    @property
    def missed(self) -> float | None:
        return self.costs.missed

    def of(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        first = next(iter(states.values()), np.zeros((0, 1)))
        found = [
            self.costs.of(roadmap, {key: each[:, number] for key, each in states.items()}, edges)
            for number in range(first.shape[1])
        ]
        return np.asarray(np.mean(found, axis=0))


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


def strongly_connected(roadmap: Roadmap) -> IntArray:
    """The places of the largest strongly connected part of each connected part, in order."""
    from scipy.sparse import csr_matrix
    from scipy.sparse.csgraph import connected_components

    count = len(roadmap.places)
    edges = csr_matrix((np.ones(len(roadmap.begins)), (roadmap.begins, roadmap.ends)), (count,) * 2)
    _, strong = connected_components(edges, connection="strong")  # [M] numbers of parts
    sizes = np.bincount(strong)[strong]
    kept: list[int] = []
    for part in range(roadmap.parts.max(initial=-1) + 1):
        (places,) = (roadmap.parts == part).nonzero()
        largest = strong[places[sizes[places].argmax()]]
        kept += places[strong[places] == largest].tolist()
    return np.array(sorted(kept), np.int64)


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
        begins = state["begins"].copy()
        ends = state["ends"].copy()
        lengths = np.sqrt(((places[begins] - places[ends]) ** 2).sum(axis=1))
        self.roadmap = Roadmap(places=places.copy(), begins=begins, ends=ends, lengths=lengths)
        self.states = {key: values.copy() for key, values in state["states"].items()}
