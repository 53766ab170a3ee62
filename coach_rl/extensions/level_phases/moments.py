"""Moments of a run, and success rates of levels that are waited for."""

from collections.abc import Iterable, Sequence
from typing import Annotated

from annotated_types import Interval

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.levels.level_manager import LevelManager


@parameter_class
class SuccessRate:
    """The moment of training at which a level reaches enough of its goals for the first time."""

    rate: Annotated[float, Interval(gt=0, le=1)]
    """Least share of its last sub-episodes that reach their goal."""
    over: Positive[int] = 100
    """Number of these sub-episodes."""
    level: str | None = None
    """The level's name; None: the level that the moment is given to."""

    def __str__(self) -> str:
        whose = "" if self.level is None else f" of level '{self.level}'"
        return f"a success rate{whose} of {self.rate:g} over {self.over:,} sub-episodes"


Moment = EnvironmentSteps | EnvironmentEpisodes | SuccessRate
"""A moment of a run. Steps and episodes are counted from its beginning, heat-up included."""


def check_success_level(
    of: str | None, level: LevelDescription, field: str, levels: Sequence[LevelDescription]
) -> None:
    """Raise `ParameterError` where the level whose success is waited for has no goals.

    Args:
        of: The level's name; None: the level that waits.
        level: The level that waits.
        field: What waits, for the message.
        levels: Top first.
    """
    spaces = {each.name: each.goal_space for each in levels}
    whose = of or level.name
    with_goals = [name for name, space in spaces.items() if isinstance(space, GoalSpace)]
    require(
        whose in with_goals,
        f"{field} of level '{level.name}' waits for a success rate of level '{whose}', "
        f"{'which has no goals of its own' if whose in spaces else 'which does not exist'}; levels "
        f"with goals: {', '.join(with_goals) or 'none'}",
    )


def remember(levels: Sequence[LevelManager], awaited: Iterable[tuple[str, int]]) -> None:
    """Let levels remember as many sub-episodes as the success rates need.

    Args:
        levels: The levels that train.
        awaited: Names of levels, and numbers of their last sub-episodes.
    """
    counts: dict[str, int] = {}
    for name, over in awaited:
        counts[name] = max(counts.get(name, 0), over)
    for level in levels:
        if level.name in counts:
            level.sub_episodes.remember(counts[level.name])
