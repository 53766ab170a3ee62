"""Horizons of a level's sub-episodes: one for all, or by state and goal, or drawn."""

from typing import Any

import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.core.goals import name_of
from coach_rl.core.level_parts import EndBits, LevelPart, RowIndex
from coach_rl.core.records import (
    BoolArray,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.saved import SavedAttribute
from coach_rl.levels.context import LevelContext
from coach_rl.levels.draws import Draws
from coach_rl.levels.judging import end_bits


class FixedHorizon(LevelPart):
    """Ends sub-episodes after a number of decisions.

    Args:
        context: Of the level.
        longest: That number.
    """

    def __init__(self, context: LevelContext, longest: int) -> None:
        self._longest = longest
        self._rows = context.rows

    def ends(self, answer: EnvResponse, index: RowIndex) -> EndBits:  # noqa: ARG002
        return end_bits(self._rows.decisions[index] >= self._longest, End.HORIZON)


class OwnHorizons(LevelPart):
    """The horizon of each row's sub-episode, by a function that is called where one begins.

    Args:
        context: Of the level, which has the function.
        longest: The level's horizon.
    """

    key = "horizons"
    SAVED = (SavedAttribute("_draws", inline=True), "limit")

    def __init__(self, context: LevelContext, longest: int) -> None:
        self._function: Any = context.level.horizon_of
        self._longest = longest
        self._level = context.level.name
        self._rows = context.rows
        self.limit: IntArray = np.full(context.num_envs, longest, np.int64)
        """[N] decisions after which each row's sub-episode ends."""
        self._draws = Draws(f"horizon of {self._level}", context)

    def begin_streams(self) -> None:
        self._draws.begin_streams()

    def deciding(self, rows: IntArray, starts: BoolArray, seen: Observation) -> None:
        if np.count_nonzero(starts):
            begun = rows[starts]
            self.limit[begun] = self._found(begun, take(seen, starts), self._rows.goal[begun])

    def ends(self, answer: EnvResponse, index: RowIndex) -> EndBits:  # noqa: ARG002
        return end_bits(self._rows.decisions[index] >= self.limit[index], End.HORIZON)

    def _found(self, rows: IntArray, observation: Observation, goal: FloatArray) -> IntArray:
        """The horizons of sub-episodes that begin, [R].

        Args:
            rows: [R].
            observation: What they begin with, [R, ...] each.
            goal: Their goals or options, [R, G].

        Raises:
            RunError: The function returns no whole number from 1 to the level's horizon for a row.
        """
        found = np.asarray(self._function(observation, goal, self._draws.draw(rows)))
        is_whole = found.shape == (len(rows),) and found.dtype.kind in "iu"
        if not is_whole or not ((found >= 1) & (found <= self._longest)).all():
            raise RunError(
                f"level '{self._level}': horizon_of ({name_of(self._function)}) must return a "
                f"whole number from 1 to {self._longest}, the level's horizon, for each of "
                f"{len(rows)} rows, got {' '.join(repr(found).split()):.80}"
            )
        return found
