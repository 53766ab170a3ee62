"""HiTS: sub-goals with a time until which they are to hold.

May import what memories may. Start with `timed_goals`; `timed_hindsight` relabels goals and times.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "TimedGoalSpace",
]
