"""Horizons that depend on state and goal, or are drawn, and ends that are drawn."""

from functools import partial

import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.core.levels import HorizonFunction
from coach_rl.core.records import FloatArray, IntArray, Observation
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved


class Draws(Saved):
    """Uniform numbers in [0, 1) for the rows of a level.

    Args:
        name: What they are for.
        num_envs: N.
        seed: Row i draws from the stream (seed, i).
    """

    SAVED = ("_noise",)

    def __init__(self, name: str, *, num_envs: int, seed: int) -> None:
        self._new = partial(
            RowNoise, num_rows=num_envs, size=1, kind="uniform", seed=seed, name=name
        )
        self._noise = self._new()

    def begin_streams(self) -> None:
        """Recreate the streams."""
        self._noise = self._new()

    def draw(self, rows: IntArray) -> FloatArray:
        """The next number of each of these rows, [R]."""
        return self._noise.draw(rows)[:, 0]


class Horizons(Draws):
    """The horizon of each row's sub-episode, by a function that is called where one begins.

    Args:
        function: Of `LevelDescription.horizon_of`.
        longest: The level's horizon.
        level: Its name, for messages.
        num_envs: N.
        seed: Row i draws from the stream (seed, i).
    """

    SAVED = ("limit",)

    def __init__(
        self, function: HorizonFunction, longest: int, *, level: str, num_envs: int, seed: int
    ) -> None:
        self._function, self._longest, self._level = function, longest, level
        self.limit: IntArray = np.full(num_envs, longest, np.int64)
        """[N] decisions after which each row's sub-episode ends."""
        super().__init__(f"horizon of {level}", num_envs=num_envs, seed=seed)

    def begin(self, rows: IntArray, observation: Observation, goal: FloatArray) -> None:
        """Set the horizons of sub-episodes that begin.

        Args:
            rows: [R].
            observation: What they begin with, [R, ...] each.
            goal: Their goals or options, [R, G].

        Raises:
            RunError: The function returns no whole number from 1 to the level's horizon for a row.
        """
        found = np.asarray(self._function(observation, goal, self.draw(rows)))
        is_whole = found.shape == (len(rows),) and found.dtype.kind in "iu"
        if not is_whole or not ((found >= 1) & (found <= self._longest)).all():
            name = getattr(self._function, "__qualname__", self._function)
            raise RunError(
                f"level '{self._level}': horizon_of ({name}) must return a whole number from 1 to "
                f"{self._longest}, the level's horizon, for each of {len(rows)} rows, got "
                f"{' '.join(repr(found).split()):.80}"
            )
        self.limit[rows] = found
