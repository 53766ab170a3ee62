"""History of rows step by step, as far as a replay memory still has it."""

from collections.abc import Iterable

import numpy as np

from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved
from coach_rl.memories.columns import ACTIONS, NEXT_OBSERVATIONS, OBSERVATIONS
from coach_rl.memories.ring_store import RingStore


class RowHistory:
    """Reads a store by the steps of its rows instead of by positions.

    Args:
        store: Where the transitions are kept.
    """

    def __init__(self, store: RingStore) -> None:
        self._store = store

    def newest_episodes(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The steps [begin, end) of each row's newest (sub-)episode, [R] each."""
        ends = self._store.counts[rows]
        begins, _ = self._store.episodes_of(self._store.positions_of(rows, ends - 1))
        return begins, ends

    def has_kept(self, rows: IntArray, steps: IntArray) -> BoolArray:
        """Return whether the steps of rows have not been overwritten, [...]."""
        kept: BoolArray = steps >= self._store.counts[rows] - self._store.row_capacity
        return kept

    def observations(self, rows: IntArray, steps: IntArray, keys: Iterable[str]) -> Observation:
        """Return the observations of rows before each of these steps, [..., ...] each."""
        return {key: self._read(f"{OBSERVATIONS}{key}", rows, steps) for key in keys}

    def next_observation(self, rows: IntArray, steps: IntArray, key: str) -> Array:
        """Return the observations of rows under one key after each of these steps, [..., ...]."""
        return self._read(f"{NEXT_OBSERVATIONS}{key}", rows, steps)

    def actions(self, rows: IntArray, steps: IntArray) -> FloatArray:
        """Return the actions of rows in each of these steps, [..., A]."""
        return self._read(ACTIONS, rows, steps)

    def _read(self, path: str, rows: IntArray, steps: IntArray) -> Array:
        return self._store.read(path, self._store.positions_of(rows, steps))


class UnreadSteps(Saved):
    """The steps that a memory was given since they were last asked for.

    Args:
        store: Where the transitions are kept.
    """

    SAVED = ("_read",)

    def __init__(self, store: RingStore) -> None:
        self._store = store
        self._read: IntArray = np.zeros(store.num_rows, np.int64)

    def __len__(self) -> int:
        return int((self._store.counts - self._begins()).sum())

    def take(self, overlap: int = 0) -> tuple[IntArray, IntArray]:
        """The steps [begin, end) of every row that are new and still kept, [N] each.

        Args:
            overlap: Steps before the new ones that are wanted once more.
        """
        begins, ends = self._begins(), self._store.counts.copy()
        self._read = ends
        return np.maximum(begins - overlap, ends - self._store.sizes), ends

    def _begins(self) -> IntArray:
        """The first step of each row that is new; a memory may have been emptied since."""
        counts = self._store.counts
        return np.where(self._read > counts, 0, self._read)
