"""Uniform numbers for the rows of a level, from streams that can begin again."""

from functools import partial

from coach_rl.core.levels import LevelPartContext
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved


class Draws(Saved):
    """Uniform numbers in [0, 1) for the rows of a level.

    Args:
        name: What they are for.
        context: Of the level; row i draws from the stream (seed, i).
    """

    SAVED = ("_noise",)

    def __init__(self, name: str, context: LevelPartContext) -> None:
        sizes = {"num_rows": context.num_envs, "size": 1, "seed": context.seed}
        self._new = partial(RowNoise, kind="uniform", name=name, **sizes)
        self._noise = self._new()

    def begin_streams(self) -> None:
        """Recreate the streams."""
        self._noise = self._new()

    def draw(self, rows: IntArray) -> FloatArray:
        """The next number of each of these rows, [R]."""
        return self._noise.draw(rows)[:, 0]
