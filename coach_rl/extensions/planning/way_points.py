"""A graph of places, whose edges learn how often the level below gets from one to the next.

The graph is not given the walls: an edge counts as passable until the level below has failed on it,
so that searching for the shortest path explores.
"""

from collections.abc import Sequence

import numpy as np

from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.extensions.planning.roadmap import Roadmap

Tries = tuple[tuple[int, int], ...]
"""Tries to get from one place to another."""
DETOUR = 1e6
"""Added at least to the cost of an edge that is taken only where there is no other way."""
_KEPT_SEARCHES = 512
"""Results of searches that are kept while nothing is learned."""
_BELIEVED = 4
"""Weight of an edge's initial estimate, in observations: with a low `forgetting` so many misses
halve p."""


class _Averages(Saved):
    """Running averages, each of one quantity.

    Its initial value counts as four observations. Every observation weighs as much as
    each before it, but never less than `forgetting`: of many, the last 1 / forgetting count.

    Args:
        values: The initial values, [K].
        forgetting: The lowest weight of a new observation; 0: nothing changes.
    """

    SAVED = ("values", "counts")

    def __init__(self, values: FloatArray, forgetting: float) -> None:
        self.values = values
        self.counts = np.zeros(len(values), np.int64)
        """[K] observations."""
        self._forgetting = forgetting

    def add(
        self, indices: IntArray, observed: FloatArray | float, *, lowest: float = -np.inf
    ) -> None:
        """Add an observation to each of these averages, which stay above `lowest`."""
        if self._forgetting > 0:
            weights = np.maximum(self._forgetting, 1 / (self.counts[indices] + 1 + _BELIEVED))
            moved = self.values[indices] + weights * (observed - self.values[indices])
            self.values[indices] = np.maximum(lowest, moved)
        self.counts[indices] += 1

    def change(self, values: FloatArray, here: Array, there: IntArray) -> None:
        """Reset to `values` [M], keeping the averages of `there` [K] at `here`."""
        counts = np.zeros(len(values), np.int64)
        values[here] = self.values[there]
        counts[here] = self.counts[there]
        self.values = values
        self.counts = counts


class WayPointGraph(Saved):
    """Shortest paths over a roadmap, by the expected costs of passing its edges.

    An edge that is passed with probability p is missed (1 - p) / p times before it is, so it counts
    as the cost of a try that passes and that of so many that miss. p is the average of the edge's
    tries, and there is one of the tries that lead to each place; an edge has that until it is
    tried. All begin with p = 1.

    Goals of the level below may be a part of a place only, and the rest follows from it. Then all
    edges from a place with the same goal are tried at once, and p is the product of two estimates:
    that the level below reaches its goal, and that the rest is then as at the edge's
    end. Of the latter there is one for each end and change of the rest, wherever the edge begins.
    A miss may lead to where the way is longer than it was, such as to the bottom of a gap, or where
    it is shorter: if it is longer on average over the edge's misses, then a miss costs as much;
    until it is missed, over those of all edges that begin where it does.
    An edge that was missed too often in a row is pruned: ways lead along it only where there are no
    others, so that no place is out of reach, and once it is passed it is as good as before.
    Searches that are `cautious` do not rely on changes of the rest that were never observed.
    Tries that have just missed, which a search may be given, each take a share `retry_discount` off
    the p of what was tried, for this search alone.

    Args:
        roadmap: Places and edges; where the rest counts they never change.
        forgetting: The lowest weight of a new try in an average.
        lowest_probability: The lowest p, so that no edge is abandoned for ever.
        prune_after: Misses in a row from which on an edge is pruned, until it is passed; None:
            never.
        retry_discount: Share of p that a try which has just missed takes off, below 1.
        missed: Lowest cost of a try that misses; None: as much as one that passes.
        requested: Number of elements, the first ones, in goals of the level below; None: all.
        goal: Number of elements, the first ones, that are alike for the level below: until edges
            are tried, their p doesn't depend on those between `requested` and `goal`;
            None: all.
    """

    SAVED = (
        SavedAttribute("_try_costs", varies=True),
        "_edge_passed",
        "_misses",
        "_group_passed",
        "_outcome_met",
        "_setbacks",
        "_place_setbacks",
        "_may_be_met",
    )

    def __init__(
        self,
        roadmap: Roadmap,
        *,
        forgetting: float,
        lowest_probability: float,
        prune_after: int | None = None,
        retry_discount: float = 0.0,
        missed: float | None = None,
        requested: int | None = None,
        goal: int | None = None,
    ) -> None:
        self.roadmap = roadmap
        self._lowest_probability = lowest_probability
        self._retry_discount = retry_discount
        self._missed = missed
        self._prune_after = np.inf if prune_after is None else prune_after
        size = roadmap.places.shape[1]
        self._requested = size if requested is None else requested
        self._has_rest = self._requested < size
        self._groups = roadmap.ends
        """[E] the place that each edge leads to, for the level below."""
        self._outcomes = np.zeros_like(roadmap.ends)
        """[E] the end and the change of the rest."""
        stays: BoolArray = np.ones(len(roadmap.ends), np.bool_)
        # Edges with the same request to the level below share its statistics: those to one
        # place. Where only the first elements of a place are requested, and the rest follows (a box
        # that is pushed), edges to the same request under the same conditions are a group, and an
        # outcome is an end together with the signs by which the rest changes.
        if self._has_rest:
            begins = roadmap.places[roadmap.begins]
            ends = roadmap.places[roadmap.ends]
            changes = np.sign(ends - begins)[:, self._requested :]
            stays = np.asarray(~changes.any(axis=1))
            conditions = begins[:, size if goal is None else goal :]
            self._groups = numbered(np.hstack([ends[:, : self._requested], conditions]))
            self._outcomes = numbered(np.hstack([ends, changes]))
        self._try_costs = roadmap.lengths
        edges = len(roadmap.begins)
        outcomes = self._outcomes.max(initial=0) + 1
        self._edge_passed = _Averages(np.ones(edges), forgetting)
        self._misses = np.zeros(edges, np.int64)
        """[E] how often each edge was missed since it was passed last."""
        self._group_passed = _Averages(np.ones(len(roadmap.places)), forgetting)
        self._outcome_met = _Averages(np.ones(outcomes), forgetting)
        self._setbacks = _Averages(np.zeros(edges), forgetting)
        """[E] the length by which a miss makes the way longer."""
        self._place_setbacks = _Averages(np.zeros(len(roadmap.places)), forgetting)
        """[M] the same of all edges that begin at a place."""
        self._may_be_met = np.zeros(outcomes, np.bool_)
        """False for changes of the rest that have never come about."""
        self._may_be_met[self._outcomes[stays]] = True
        self._searches: dict[
            tuple[tuple[int, ...], bool, Tries], tuple[FloatArray, IntArray, IntArray]
        ] = {}
        """Results of `_search`, by targets, caution and tries that have missed."""
        self._expected: dict[bool, tuple[FloatArray, FloatArray, FloatArray]] = {}
        """Results of `expected`, by caution."""

    @property
    def tries(self) -> IntArray:
        """[E] how often the level below has tried to pass each edge."""
        return self._edge_passed.counts

    @property
    def pruned(self) -> BoolArray:
        """[E] the edges that plans avoid, since they were missed too often in a row."""
        pruned: BoolArray = self._misses >= self._prune_after
        return pruned

    @property
    def passed(self) -> FloatArray:
        """[E] the estimated probability that the level below passes each edge at a try."""
        return self._passed(cautious=False)

    def _passed(self, *, cautious: bool) -> FloatArray:
        passed: FloatArray = np.where(
            self.tries > 0, self._edge_passed.values, self._group_passed.values[self._groups]
        )
        if not self._has_rest:
            return passed
        met = self._outcome_met.values
        if cautious:
            met = np.where(self._may_be_met, met, self._lowest_probability)
        passed = np.maximum(self._lowest_probability, passed * met[self._outcomes])
        return passed

    @property
    def try_costs(self) -> FloatArray:
        """[E] what a try that passes an edge costs: its length, until others are set."""
        return self._try_costs

    @try_costs.setter
    def try_costs(self, costs: FloatArray) -> None:
        self._try_costs = costs
        self._forget_searches()

    def change(self, roadmap: Roadmap, changed: IntArray) -> IntArray:
        """Replace the roadmap; edges between places that stay keep their statistics.

        Args:
            roadmap: Its places are those of the present one, and maybe further ones behind.
            changed: The places that are new or have moved.

        Returns:
            The edges that are new, whose costs are their lengths.
        """
        # An edge's key is begin * M + end: `here` are the new numbers of edges that are kept,
        # `there` their old ones, in the same order, as roadmaps sort their edges.
        old = self.roadmap
        stays = ~np.isin(old.begins, changed) & ~np.isin(old.ends, changed)
        keys = roadmap.begins * len(roadmap.places) + roadmap.ends
        count = len(roadmap.places)
        kept = (old.begins * count + old.ends)[stays]
        here = np.isin(keys, kept, assume_unique=True)
        there = stays.nonzero()[0][np.isin(kept, keys, assume_unique=True)]

        try_costs = roadmap.lengths.copy()
        try_costs[here] = self._try_costs[there]
        self._try_costs = try_costs
        self._edge_passed.change(np.ones(len(keys)), here, there)
        misses = np.zeros(len(keys), np.int64)
        misses[here] = self._misses[there]
        self._misses = misses
        self._setbacks.change(np.zeros(len(keys)), here, there)
        stay: IntArray = np.setdiff1d(np.arange(len(old.places)), changed)
        self._place_setbacks.change(np.zeros(count), stay, stay)
        self._group_passed.change(np.ones(count), stay, stay)
        self.roadmap = roadmap
        self._groups = roadmap.ends
        self._forget_searches()
        new: IntArray = (~here).nonzero()[0]
        return new

    def tried_around(self, place: int) -> IntArray:
        """The edges that were tried between places with the same rest as this one."""
        rest = self.roadmap.places[:, self._requested :]
        alike = (rest == rest[place]).all(axis=1)
        tried = (self.tries > 0) & alike[self.roadmap.begins] & alike[self.roadmap.ends]
        return np.flatnonzero(tried)

    def note(
        self,
        begin: int,
        end: int,
        *,
        passed: bool,
        came_to: int | None = None,
        setback: float | None = None,
    ) -> None:
        """Update an edge's statistics from a try to pass it; tries without an edge are ignored.

        Args:
            begin: Where it began.
            end: Where it was to end.
            passed: The level below reached its goal.
            came_to: The place that it came to then, which may differ from `end` in the rest; None:
                it doesn't.
            setback: By how much the way is longer now, where it did not end at `end`; None: that is
                not known, and averages of it stay as they are.
        """
        edge = self.roadmap.edge(begin, end)
        if edge is None:
            return
        group = self._groups[edge]
        alike = self._alike(begin, end)
        if not self.tries[edge]:
            self._edge_passed.values[alike] = self._group_passed.values[group]
        self._edge_passed.add(alike, float(passed), lowest=self._lowest_probability)
        self._group_passed.add(np.array([group]), float(passed), lowest=self._lowest_probability)
        met = np.full(len(alike), passed)
        if self._has_rest and passed:
            met = self.roadmap.ends[alike] == (end if came_to is None else came_to)
            outcomes = self._outcomes[alike]
            self._outcome_met.add(outcomes, met.astype(np.float64), lowest=self._lowest_probability)
            self._may_be_met[outcomes[met]] = True
        self._misses[alike] = np.where(met, 0, self._misses[alike] + 1)
        if setback is not None and not met.all():
            self._note_setback(alike[~met], setback)
        self._forget_searches()

    def _note_setback(self, edges: IntArray, setback: float) -> None:
        """Update the setback averages of these edges, which begin at the same place."""
        place = self.roadmap.begins[edges[:1]]
        first = edges[self._setbacks.counts[edges] == 0]
        self._setbacks.values[first] = self._place_setbacks.values[place]
        # No more than the highest cost, or costs would grow without bounds.
        highest = self._lowest_missed[edges] / self._lowest_probability
        setbacks = np.clip(setback, -highest, highest)
        self._setbacks.add(edges, setbacks)
        self._place_setbacks.add(place, setbacks[:1])

    def next_places(
        self,
        places: IntArray,
        targets: IntArray,
        *,
        missed: Sequence[Tries] | None = None,
        cautious: bool = False,
    ) -> IntArray:
        """The next place on the shortest path from each place to its target; itself at the target.

        Args:
            places: [R].
            targets: [R].
            missed: For each of the R the tries that have just missed; None: none.
            cautious: True not to count on changes that have never come about.
        """
        found = [
            self._search((target,), cautious, () if missed is None else missed[i])[1][place]
            for i, (place, target) in enumerate(zip(places.tolist(), targets.tolist(), strict=True))
        ]
        return np.array(found, np.int64)

    def cheapest(
        self, place: int, targets: IntArray, *, missed: Tries = (), cautious: bool = False
    ) -> int:
        """The one of these targets [T] that the cheapest way from a place leads to."""
        return int(self._search(tuple(targets.tolist()), cautious, missed)[2][place])

    def costs(self, places: IntArray, targets: IntArray, *, cautious: bool = False) -> FloatArray:
        """The expected length of the way, missed tries included, [R].

        Args:
            places: Where ways begin, [R].
            targets: Where they lead, [R].
            cautious: True not to count on changes that have never come about.
        """
        found = [
            self._search((target,), cautious)[0][place]
            for place, target in zip(places, targets.tolist(), strict=True)
        ]
        return np.array(found, np.float64)

    def costs_to(self, target: int, *, missed: Tries = (), cautious: bool = False) -> FloatArray:
        """The expected length of the way from every place to one, [M]; infinite where none leads.

        Args:
            target: Where the ways lead.
            missed: Tries that have just missed.
            cautious: True not to count on changes that have never come about.
        """
        return self._search((target,), cautious, missed)[0]

    def note_loaded(self) -> None:
        """Drop the searches of the state before."""
        self._forget_searches()

    def _costs(self, *, cautious: bool = False, missed: Tries = ()) -> FloatArray:
        """[E] expected costs of passing each edge."""
        passed, try_missed, costs = self.expected(cautious=cautious)
        passed, costs = passed.copy(), costs.copy()
        for begin, end in missed:
            tried = self._alike(begin, end)
            passed[tried] *= 1 - self._retry_discount
            costs[tried] = _cost(self._try_costs[tried], passed[tried], try_missed[tried])
        pruned = self.pruned
        if pruned.any():  # more expensive than any way without
            costs[pruned] += DETOUR + costs[~pruned].sum()
        return costs

    def expected(self, *, cautious: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
        """[E] each edge's p, cost of a miss, and expected cost of passing it unless it is pruned.

        They are kept while nothing is learned: of many places they take longer than a search.
        """
        if cautious not in self._expected:
            setbacks = np.where(
                self._setbacks.counts > 0,
                self._setbacks.values,
                self._place_setbacks.values[self.roadmap.begins],
            )
            passed = self._passed(cautious=cautious)
            try_missed: FloatArray = np.maximum(setbacks, self._lowest_missed)
            costs = _cost(self._try_costs, passed, try_missed)
            self._expected[cautious] = passed, try_missed, costs
        return self._expected[cautious]

    def _forget_searches(self) -> None:
        """Invalidate cached searches and expected costs."""
        self._searches.clear()
        self._expected.clear()

    def _alike(self, begin: int, end: int) -> IntArray:
        """The edges from a place that give the level below the same goal as one end does."""
        edges = self.roadmap.edges_from(begin)
        requested = self.roadmap.places[:, : self._requested]
        (found,) = (requested[self.roadmap.ends[edges]] == requested[end]).all(axis=1).nonzero()
        alike: IntArray = edges.start + found
        return alike

    @property
    def _lowest_missed(self) -> FloatArray:
        """[E] the lowest cost of a miss."""
        missed = self._try_costs if self._missed is None else self._missed
        return np.broadcast_to(missed, self._try_costs.shape)

    def _search(
        self, targets: tuple[int, ...], cautious: bool = False, missed: Tries = ()
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Search for the cheapest ways to any of these targets, unless that is known.

        Returns:
            For every place [M] the cost of its cheapest way, the next place on it, and its target.
        """
        key = (targets, cautious, missed)
        if key not in self._searches:
            if len(self._searches) >= _KEPT_SEARCHES:
                self._searches.clear()
            self._searches[key] = self._searched(
                np.array(targets), self._costs(cautious=cautious, missed=missed)
            )
        return self._searches[key]

    def _searched(
        self, targets: IntArray, edge_costs: FloatArray
    ) -> tuple[FloatArray, IntArray, IntArray]:
        """Dijkstra's algorithm from all targets at once, along edges turned round."""
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        count, (order, begins, first) = len(self.roadmap.places), self.roadmap.by_end
        turned = csr_matrix((edge_costs[order], begins, first), (count, count))
        costs, before, last = dijkstra(
            turned, indices=targets, return_predecessors=True, min_only=True
        )
        before[targets] = targets
        return costs, before.astype(np.int64), last.astype(np.int64)


def _cost(try_costs: FloatArray, passed: FloatArray, try_missed: FloatArray) -> FloatArray:
    """Return the expected costs of passing edges, misses before that included."""
    return try_costs + (1 - passed) / passed * try_missed


def numbered(rows: FloatArray) -> IntArray:
    """A number from 0 on for each row [M, K], the same for equal rows, [M]."""
    numbers: IntArray = np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)
    return numbers
