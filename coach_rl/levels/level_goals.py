"""The goals of a level for those who look on, such as films."""

from dataclasses import dataclass
from typing import Self

from coach_rl.core.goals import GoalSpace
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.levels.rows import LevelRows


@dataclass(frozen=True, kw_only=True)
class LevelGoals:
    """The current goals of a level, row by row; read only."""

    goal_space: GoalSpace
    goal: FloatArray
    """[N, G] the goal given last; with the time left in steps behind it where goals have one."""
    given: BoolArray
    """[N] a goal was given since the last reset."""
    open: BoolArray
    """[N] the level is still after it."""
    decisions: IntArray
    """[N] decisions of the level since it was given."""

    @classmethod
    def of(cls, rows: LevelRows, goal_space: GoalSpace) -> Self:
        """The goals as they stand in a level's rows."""
        return cls(
            goal_space=goal_space,
            goal=_read_only(rows.goal),
            given=_read_only(rows.open | (rows.decisions > 0)),
            open=_read_only(rows.open),
            decisions=_read_only(rows.decisions),
        )


def _read_only(values: Array) -> Array:
    view = values.view()
    view.flags.writeable = False
    return view
