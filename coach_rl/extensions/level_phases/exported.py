"""Levels with times of their own, which an exported policy doesn't need: it only acts."""

from coach_rl.core.levels import LevelDescription
from coach_rl.extensions.exporting.graphs import level_now
from coach_rl.extensions.level_phases.level_phases import LevelTimes


@level_now.register
def _without_times(_: LevelTimes, level: LevelDescription) -> LevelDescription:
    """The level as it is."""
    return level
