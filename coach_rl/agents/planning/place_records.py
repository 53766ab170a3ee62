"""Records of the places of a graph, and the choice of one that is worth exploring."""

import numpy as np

from coach_rl.agents.planning.places import Places
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved

_DRAWN = 8
"""Goals drawn at random for a row that explores."""


class PlaceRecords(Saved):
    """Counts of visits to M places, and when each came to where it is.

    Args:
        places: The places; how many there are changes with theirs.
        novelty: Whether the most novel of all places is the most worth exploring, or the least
            visited one of a few that are drawn.
    """

    SAVED = ("visits", "_sought", "changes", "stands_since")

    def __init__(self, places: Places, *, novelty: bool) -> None:
        self._places, self._novelty = places, novelty
        self.numbers = _DRAWN * places.numbers
        """Uniform numbers that a goal to explore is chosen by."""
        self.changes = 1
        """Number of times that places have changed, their beginning included."""
        count = len(places.roadmap.places)
        self.visits = np.zeros(count, np.int64)
        """[M] decisions that began nearest to each place."""
        self._sought = np.zeros(count, np.int64)
        """[M] decisions that headed for each place to explore it."""
        self.stands_since = np.full(count, self.changes)
        """[M] how often places had changed when each came to where it is."""

    def visit(self, places: IntArray) -> None:
        """Decisions have begun nearest to these places, [R]."""
        np.add.at(self.visits, places, 1)

    def seek(self, places: IntArray) -> None:
        """Decisions have headed for these places to explore them, [R]."""
        np.add.at(self._sought, places, 1)

    def change(self, changed: IntArray) -> None:
        """These places are new, or elsewhere now."""
        added = np.zeros(len(self._places.roadmap.places) - len(self.visits), np.int64)
        self.visits = np.append(self.visits, added)
        self._sought = np.append(self._sought, added)
        self.stands_since = np.append(self.stands_since, added)
        self.changes += 1
        self.visits[changed] = self._sought[changed] = 0
        self.stands_since[changed] = self.changes

    def have_stood(self, places: IntArray, since: IntArray) -> BoolArray:
        """Return which places [R] are where they were when places had changed so often [R]."""
        have_stood = (places >= 0) & (places < len(self.stands_since))
        there = places[have_stood]
        have_stood[have_stood] = self.stands_since[there] <= since[have_stood]
        return have_stood

    def to_explore(self, numbers: FloatArray) -> FloatArray:
        """For each row a goal that is worth exploring, [R, P], by uniform `numbers` [R, ...]."""
        roadmap = self._places.roadmap
        goals = self._places.drawn(numbers.reshape(len(numbers), _DRAWN, -1))
        near = roadmap.nearest(goals.reshape(-1, goals.shape[2])).reshape(goals.shape[:2])
        if self._novelty and len(self.visits):
            return self._most_novel(goals, near, numbers[:, 0])
        least = (self.visits[near] if len(self.visits) else near).argmin(axis=1)
        chosen: FloatArray = goals[np.arange(len(goals)), least]
        return chosen

    def _most_novel(self, goals: FloatArray, near: IntArray, numbers: FloatArray) -> FloatArray:
        """For each row the most novel place, or a goal drawn near to it, which may lie beyond.

        Args:
            goals: Those drawn for each row, [R, K, P].
            near: The places nearest to them, [R, K].
            numbers: Uniform numbers to choose by where several are as novel, [R].

        Returns:
            [R, P].
        """
        counts = self.visits + self._sought
        novel = np.flatnonzero(counts == counts.min())
        places = novel[(numbers * len(novel)).astype(np.int64)]
        is_near = near == places[:, None]
        drawn = goals[np.arange(len(goals)), is_near.argmax(axis=1)]
        known = self._places.roadmap.places[places]
        return np.where(is_near.any(axis=1)[:, None], drawn, known)
