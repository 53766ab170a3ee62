"""A random stream per row, drawn for all rows at once."""

from typing import Literal

import numpy as np

from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import generator

BLOCK = 128
"""Draws that a row takes from its generator at a time."""


class RowNoise(Saved):
    """Random numbers for rows, each from its own stream.

    The k-th draw of row i is the same whether the row runs alone or among many, and in any
    order of the rows.

    Args:
        num_rows: N.
        size: Numbers per draw.
        kind: Standard normal, or uniform in [0, 1).
        seed: Row i draws from the stream (seed, name, i).
        name: What the numbers are for.
    """

    SAVED = ("_generators", "_blocks", "_used")

    def __init__(
        self, *, num_rows: int, size: int, kind: Literal["normal", "uniform"], seed: int, name: str
    ) -> None:
        self._generators = [generator(seed, name, row) for row in range(num_rows)]
        self._kind = kind
        self._blocks = np.zeros((num_rows, BLOCK, size), np.float32)
        self._used = np.full(num_rows, BLOCK, np.int64)

    def draw(self, rows: IntArray) -> FloatArray:
        """The next numbers of each of these rows, float32 [R, size]; no row twice."""
        used = self._used[rows]
        if used.max(initial=0) == BLOCK:
            self._refill(rows[used == BLOCK])
            used = self._used[rows]
        numbers = self._blocks[rows, used]
        self._used[rows] = used + 1
        return numbers

    def _refill(self, rows: IntArray) -> None:
        shape = self._blocks.shape[1:]
        for row in rows:
            rng = self._generators[row]
            if self._kind == "normal":
                self._blocks[row] = rng.standard_normal(shape, np.float32)
            else:
                self._blocks[row] = rng.random(shape, np.float32)
        self._used[rows] = 0
