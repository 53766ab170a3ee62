"""A graph of places, whose edges learn how often the level below gets from one to the next.

The places form a grid over the goals of the level below, whether anybody has been there or not, as
in BEAG (Yoon et al. 2024, "Breadth-First Exploration on Adaptive Grid for Reinforcement Learning")
and SSE. Nobody tells the graph where walls are: an edge is thought passable until the level below
has failed on it, so that searching for the shortest path explores.
"""

from dataclasses import dataclass
from itertools import product

import numpy as np

from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.state import State


@dataclass(frozen=True, kw_only=True)
class Grid:
    """Places at equal distances, and edges between neighbours, diagonal ones included."""

    places: FloatArray
    """[M, G] the places."""
    begins: IntArray
    """[E] where each edge begins; sorted."""
    ends: IntArray
    """[E] where it ends."""
    lengths: FloatArray
    """[E] its Euclidean length."""

    @classmethod
    def over(cls, low: FloatArray, high: FloatArray, spacing: float) -> "Grid":
        """A grid whose outermost places lie half a spacing or less within the bounds.

        Args:
            low: Lower bounds, [G].
            high: Upper bounds, [G].
            spacing: Distance between neighbours along an axis.
        """
        counts = [max(1, round(float(width) / spacing)) for width in high - low]
        axes = [
            (lower + upper) / 2 + spacing * (np.arange(count) - (count - 1) / 2)
            for lower, upper, count in zip(low, high, counts, strict=True)
        ]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
        numbers = np.arange(len(places)).reshape(counts)
        begins, ends = [], []
        for step in product((-1, 0, 1), repeat=len(counts)):
            if any(step):
                here = tuple(
                    slice(max(0, -move), min(n, n - move))
                    for move, n in zip(step, counts, strict=True)
                )
                there = tuple(
                    slice(max(0, move), min(n, n + move))
                    for move, n in zip(step, counts, strict=True)
                )
                begins.append(numbers[here].ravel())
                ends.append(numbers[there].ravel())
        order = np.lexsort((np.concatenate(ends), np.concatenate(begins)))
        begin, end = np.concatenate(begins)[order], np.concatenate(ends)[order]
        lengths = np.sqrt(((places[begin] - places[end]) ** 2).sum(axis=1))
        return cls(places=places, begins=begin, ends=end, lengths=lengths)

    def nearest(self, positions: FloatArray) -> IntArray:
        """The place nearest to each position [R, G], [R]."""
        away = ((positions[:, None] - self.places) ** 2).sum(axis=2)
        places: IntArray = away.argmin(axis=1)
        return places

    def edge(self, begin: int, end: int) -> int | None:
        """The number of the edge from one place to another; None where they are no neighbours."""
        first, last = np.searchsorted(self.begins, (begin, begin + 1))
        (found,) = (self.ends[first:last] == end).nonzero()
        return int(first + found[0]) if len(found) else None


class WayPointGraph:
    """Shortest paths over a grid, by the number of tries that its edges are expected to take.

    An edge that is passed with probability p takes 1 / p tries, so it counts as its length times
    that. All edges begin with p = 1. Each try moves p of its edge, and that of the place it leads
    to, towards 1 or 0; an edge that was never tried has the p of its place.

    Args:
        grid: Places and edges.
        forgetting: Share of p that a new try replaces.
        worst: The lowest p, so that no edge is given up for ever.
    """

    def __init__(self, grid: Grid, *, forgetting: float, worst: float) -> None:
        self.grid = grid
        self._forgetting, self._worst = forgetting, worst
        self._edge_passed = np.ones(len(grid.begins))
        self._place_passed = np.ones(len(grid.places))
        self.tries = np.zeros(len(grid.begins), np.int64)
        """[E] how often the level below has tried to pass each edge."""
        self._ways: dict[int, tuple[FloatArray, IntArray]] = {}
        """Ways by target: the cost from every place, and the next place on the way."""

    @property
    def passed(self) -> FloatArray:
        """[E] the estimated probability that the level below passes each edge at a try."""
        unknown = self._place_passed[self.grid.ends]
        return np.where(self.tries > 0, self._edge_passed, unknown)

    def note(self, begin: int, end: int, *, passed: bool) -> None:
        """Learn from a try to get from one place to another; others than neighbours are ignored."""
        edge = self.grid.edge(begin, end)
        if edge is None:
            return
        self.tries[edge] += 1
        for estimate, index in ((self._edge_passed, edge), (self._place_passed, end)):
            moved = estimate[index] + self._forgetting * (float(passed) - estimate[index])
            estimate[index] = max(self._worst, moved)
        self._ways.clear()

    def next_places(
        self, places: IntArray, targets: IntArray, *, without: IntArray | None = None
    ) -> IntArray:
        """The next place on the shortest path from each place to its target; itself at the target.

        Args:
            places: [R].
            targets: [R].
            without: [R] a place that is not to be the next one; -1 or None: any.
        """
        found = [
            self._way(int(target))[1][place] for place, target in zip(places, targets, strict=True)
        ]
        chosen = np.array(found, np.int64)
        if without is not None:
            for row in ((chosen == without) & (places != targets)).nonzero()[0]:
                chosen[row] = self._detour(int(places[row]), int(targets[row]), int(without[row]))
        return chosen

    def neighbours(self, place: int, target: int) -> IntArray:
        """The places next to one, by the expected length of the way to a target through each."""
        first, last = np.searchsorted(self.grid.begins, (place, place + 1))
        ends = self.grid.ends[first:last]
        costs = (self.grid.lengths / self.passed)[first:last] + self._way(target)[0][ends]
        nearest: IntArray = ends[costs.argsort(kind="stable")]
        return nearest

    def costs(self, places: IntArray, targets: IntArray) -> FloatArray:
        """The expected length of the way, tries in vain included, [R]."""
        found = [
            self._way(int(target))[0][place] for place, target in zip(places, targets, strict=True)
        ]
        return np.array(found, np.float64)

    def state_dict(self) -> State:
        """The estimates and the counts of tries."""
        return {
            "edge_passed": self._edge_passed.copy(),
            "place_passed": self._place_passed.copy(),
            "tries": self.tries.copy(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self._edge_passed[:] = state["edge_passed"]
        self._place_passed[:] = state["place_passed"]
        self.tries[:] = state["tries"]
        self._ways.clear()

    def _detour(self, place: int, target: int, without: int) -> int:
        """The neighbour that the second shortest path begins with."""
        first, last = np.searchsorted(self.grid.begins, (place, place + 1))
        ends = self.grid.ends[first:last]
        costs = self.grid.lengths[first:last] / self.passed[first:last] + self._way(target)[0][ends]
        costs[ends == without] = np.inf
        return int(ends[costs.argmin()])

    def _way(self, target: int) -> tuple[FloatArray, IntArray]:
        found = self._ways.get(target)
        if found is None:
            found = self._ways[target] = self._searched(target)
        return found

    def _searched(self, target: int) -> tuple[FloatArray, IntArray]:
        """Dijkstra's algorithm from the target, along edges turned round."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        grid, count = self.grid, len(self.grid.places)
        turned = csr_matrix((grid.lengths / self.passed, (grid.ends, grid.begins)), (count, count))
        costs, before = dijkstra(turned, indices=target, return_predecessors=True)
        before[target] = target
        return costs, before.astype(np.int64)
