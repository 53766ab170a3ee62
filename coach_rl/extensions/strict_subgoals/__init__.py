"""Strict Subgoal Execution: levels that stop where the level below misses its goal.

May import what levels may. All is in `stop_on_failure`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["StopOnFailure"]
