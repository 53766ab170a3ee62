"""Numbers that can be drawn in proportion to their size."""

import numpy as np
import numpy.typing as npt

from coach_rl.core.records import IntArray

Float64Array = npt.NDArray[np.float64]
SEARCHED_DEPTH = 12
"""Down to this depth one search through a whole level is faster than a descent, level by level."""


class SumTree:
    """A binary tree in an array: each node holds the sum of its two children.

    Inner nodes are always recomputed from their children, never changed by differences, so rounding
    doesn't pile up and the tree depends on its leaves alone.

    Args:
        size: Leaves asked for; rounded up to a power of two inside.

    Attributes:
        nodes: The sums, the root in place 1 and the children of node i in 2i and 2i + 1.
    """

    def __init__(self, size: int) -> None:
        self._depth = max(size - 1, 1).bit_length()
        self._first = 1 << self._depth
        self.nodes: Float64Array = np.zeros(2 * self._first)

    @property
    def total(self) -> float:
        """The sum of all leaves."""
        return float(self.nodes[1])

    def __getitem__(self, index: IntArray) -> Float64Array:
        """The leaves at `index`, [B]."""
        return self.nodes[index + self._first]

    def set(self, index: IntArray, values: Float64Array) -> None:
        """Give leaves at `index` [B] new values [B], 0 or more; the last of equal ones counts."""
        nodes = index + self._first
        self.nodes[nodes] = values
        for _ in range(self._depth):
            nodes = nodes >> 1
            left = nodes << 1
            self.nodes[nodes] = self.nodes[left] + self.nodes[left + 1]

    def fill(self, index: IntArray, values: Float64Array) -> None:
        """Set every leaf: those at `index` to values, the others to 0."""
        self.nodes[:] = 0
        self.nodes[index + self._first] = values
        begin = self._first
        while begin > 1:
            level = self.nodes[begin : 2 * begin]
            begin //= 2
            self.nodes[begin : 2 * begin] = level[0::2] + level[1::2]

    def find(self, sums: Float64Array) -> IntArray:
        """The leaves at which the running sum of all leaves passes `sums`, [B].

        A leaf of 0 is never found, however the sums are rounded, as long as any leaf is not 0.

        Args:
            sums: In [0, total), [B].
        """
        top = min(self._depth, SEARCHED_DEPTH)
        level = self.nodes[1 << top : 2 << top]
        passed = np.cumsum(level)
        last = np.searchsorted(passed, passed[-1])  # all behind it are 0
        found = np.minimum(np.searchsorted(passed, sums, side="right"), last)
        rest = sums - (passed - level)[found]
        nodes: IntArray = found + (1 << top)
        for _ in range(self._depth - top):
            left = nodes << 1
            in_left = self.nodes.take(left)
            to_right = ((rest >= in_left) & (self.nodes.take(left + 1) > 0)) | (in_left <= 0)
            rest -= in_left * to_right
            nodes = left + to_right
        return nodes - self._first


def tree_bytes(size: int) -> int:
    """Memory a tree of that many leaves takes."""
    return int(16 << max(size - 1, 1).bit_length())
