"""Goal spaces that learn: LESSON, METRA, and a base for further ones.

May import what agents may. Start with `learned_goals`; `changing_goals` is what memories keep and
recompute for goals that learn or follow a curriculum.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.learned_goals.learned_goals import (
        GoalBatch,
        LearnedGoals,
        LearnedGoalSpace,
    )
    from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoalSpace
    from coach_rl.extensions.learned_goals.metra_goals import METRAGoalSpace
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "GoalBatch",
    "LESSONGoalSpace",
    "LearnedGoalSpace",
    "LearnedGoals",
    "METRAGoalSpace",
]
