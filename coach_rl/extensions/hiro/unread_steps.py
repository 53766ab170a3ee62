"""The steps that a memory has got since they were last read."""

import numpy as np

from coach_rl.core.records import IntArray
from coach_rl.core.saved import Saved
from coach_rl.memories.ring_store import RingStore


class UnreadSteps(Saved):
    """The steps added to a memory since the last `take`.

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
            overlap: Steps before the new ones to return once more.
        """
        begins = self._begins()
        ends = self._store.counts.copy()
        self._read = ends
        return np.maximum(begins - overlap, ends - self._store.sizes), ends

    def _begins(self) -> IntArray:
        """The first step of each row that is new; a memory may have been emptied since."""
        counts = self._store.counts
        return np.where(self._read > counts, 0, self._read)
