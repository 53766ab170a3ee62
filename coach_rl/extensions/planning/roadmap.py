"""Places, and the edges between them along which ways may lead."""

from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np

from coach_rl.core.records import FloatArray, IntArray


@dataclass(frozen=True, kw_only=True)
class Roadmap:
    """Places, and the edges between them."""

    places: FloatArray
    """[M, G] the places."""
    begins: IntArray
    """[E] where each edge begins; sorted."""
    ends: IntArray
    """[E] where it ends."""
    lengths: FloatArray
    """[E] its Euclidean length."""

    @classmethod
    def grid(
        cls,
        low: FloatArray,
        high: FloatArray,
        spacing: float | tuple[float, ...],
        *,
        moving: int | None = None,
    ) -> "Roadmap":
        """Places at equal distances, and edges between neighbours, diagonal ones included.

        The outermost places lie three quarters of a spacing or less within the bounds.

        Args:
            low: Lower bounds, [G].
            high: Upper bounds, [G].
            spacing: Distance between neighbours along an axis; along each, or along all.
            moving: Number of elements, the first ones, of which every edge changes one or more;
                None: all.
        """
        apart = np.broadcast_to(spacing, low.shape)
        counts = [max(1, round(float(width))) for width in (high - low) / apart]
        axes = [
            (lower + upper) / 2 + step * (np.arange(count) - (count - 1) / 2)
            for lower, upper, step, count in zip(low, high, apart, counts, strict=True)
        ]
        places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(counts))
        numbers = np.arange(len(places)).reshape(counts)
        begins = []
        ends = []
        for step in product((-1, 0, 1), repeat=len(counts)):
            if any(step[:moving]):
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

    @classmethod
    def of_neighbours(cls, places: FloatArray, count: int) -> "Roadmap":
        """Edges, in both directions, from each place to those nearest to it.

        Args:
            places: [M, G].
            count: Number of neighbours of each place.
        """
        squares = squared_distances(places, places)
        np.fill_diagonal(squares, np.inf)
        joined = np.zeros(squares.shape, np.bool_)
        nearest = squares.argsort(axis=1, kind="stable")[:, : min(count, len(places) - 1)]
        np.put_along_axis(joined, nearest, np.bool_(True), axis=1)
        begins, ends = (joined | joined.T).nonzero()
        lengths = np.sqrt(squares[begins, ends])
        return cls(places=places, begins=begins, ends=ends, lengths=lengths)

    def part(self, numbers: IntArray) -> "Roadmap":
        """The places of these numbers [K], in this order, and the edges between them."""
        renumbered = np.full(len(self.places), -1)
        renumbered[numbers] = np.arange(len(numbers))
        begins = renumbered[self.begins]
        ends = renumbered[self.ends]
        (kept,) = ((begins >= 0) & (ends >= 0)).nonzero()
        kept = kept[np.lexsort((ends[kept], begins[kept]))]
        return Roadmap(
            places=self.places[numbers],
            begins=begins[kept],
            ends=ends[kept],
            lengths=self.lengths[kept],
        )

    def nearest(self, positions: FloatArray) -> IntArray:
        """The place nearest to each position [R, G], [R]; 0 where there are no places."""
        if not len(self.places):
            return np.zeros(len(positions), np.int64)
        places: IntArray = squared_distances(positions, self.places).argmin(axis=1)
        return places

    def all_nearest(self, position: FloatArray, *, to: int) -> IntArray:
        """The places, one or several, that are nearest to a position.

        Args:
            position: [K], of which places may have further elements, which don't count.
            to: A place that there is a way from.
        """
        away = squared_distances(position[None], self.places[:, : len(position)])[0]
        away[self.parts != self.parts[to]] = np.inf
        return np.flatnonzero(np.isclose(away, away.min()))

    @cached_property
    def spacing(self) -> float:
        """The distance from a place to the nearest other one, in the median; 1 without edges."""
        shortest = np.full(len(self.places), np.inf)
        np.minimum.at(shortest, self.begins, self.lengths)
        finite = shortest[np.isfinite(shortest)]
        return float(np.median(finite)) if len(finite) else 1.0

    @cached_property
    def by_end(self) -> tuple[IntArray, IntArray, IntArray]:
        """The edges turned round, as a sparse matrix has them.

        Returns:
            The edges by their ends [E], where each of these begins [E], the first of each end
            [M + 1].
        """
        order: IntArray = self.ends.argsort(kind="stable")
        first = np.searchsorted(self.ends[order], np.arange(len(self.places) + 1))
        return order, self.begins[order].astype(np.int32), first.astype(np.int32)

    @cached_property
    def parts(self) -> IntArray:
        """The number of the connected part that each place belongs to, [M]."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import connected_components

        shape = (len(self.places), len(self.places))
        edges = csr_matrix((np.ones(len(self.begins)), (self.begins, self.ends)), shape)
        return np.asarray(connected_components(edges, directed=False)[1], np.int64)

    def edge(self, begin: int, end: int) -> int | None:
        """The number of the edge from one place to another; None where they are no neighbours."""
        edges = self.edges_from(begin)
        (found,) = (self.ends[edges] == end).nonzero()
        return int(edges.start + found[0]) if len(found) else None

    def edges_from(self, begin: int) -> slice:
        """The edges that begin at a place."""
        first, last = np.searchsorted(self.begins, (begin, begin + 1))
        return slice(int(first), int(last))


def squared_distances(points: FloatArray, others: FloatArray) -> FloatArray:
    """Squares of the distances from each of M points to each of K others, [M, K]."""
    squares: FloatArray = ((points[:, None] - others) ** 2).sum(axis=2)
    return squares
