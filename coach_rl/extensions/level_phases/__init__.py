"""Levels that warm up, freeze, thaw and take turns, and values that take steps by success.

May import what levels and the graph may. Start with `level_phases`: `LevelTimes`, what a preset
gives a level, and the phases that follow.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.level_phases.level_phases import LevelTimes
    from coach_rl.extensions.level_phases.moments import SuccessRate
    from coach_rl.extensions.level_phases.success_schedule import SuccessSchedule
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["LevelTimes", "SuccessRate", "SuccessSchedule"]
