"""Values that take steps by a level's success, and the stages that they are at."""

from collections.abc import Iterator, Sequence

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import require
from coach_rl.core.levels import LevelDescription
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive, UnitInterval
from coach_rl.core.steps import RunLength
from coach_rl.extensions.level_phases.moments import check_success_level, remember
from coach_rl.graph_managers.level_timing import LevelTiming
from coach_rl.levels.level_manager import LevelManager


@parameter_class
class SuccessSchedule:
    """A value in steps: the next one where a level often reaches its goals, else the one before."""

    values: NonEmpty[tuple[float, ...]]
    """The values, the first at the beginning."""
    advance: UnitInterval = 0.8
    """Least share of the last sub-episodes that reach their goal at which the next value holds."""
    retreat: UnitInterval = 0.3
    """Share below which the value before holds again; 0: never."""
    over: Positive[int] = 100
    """Number of these sub-episodes; they are counted from the last change of the level on."""
    level: str | None = None
    """The level's name; None: the level that changes."""

    def __post_init__(self) -> None:
        require(
            self.retreat < self.advance,
            f"SuccessSchedule.retreat must lie below advance, got {self.retreat} and "
            f"{self.advance}",
        )


class SuccessStages(LevelTiming):
    """Keeps the success schedules among the changes of levels at their values, on the clock.

    Args:
        levels: Top first.
    """

    def __init__(self, levels: Sequence[LevelDescription]) -> None:
        super().__init__(levels)
        self._schedules = [(level, name, each) for level, _, name, each in _schedules(levels)]
        self.may_change_at_any_tick = bool(self._schedules)

    @staticmethod
    def check(
        levels: Sequence[LevelDescription],
        *,
        training: RunLength,  # noqa: ARG004
        heatup: RunLength,  # noqa: ARG004
    ) -> None:
        for level, kind, setting, schedule in _schedules(levels):
            check_success_level(schedule.level, level, f"{kind}.{setting}", levels)

    def watch(self, levels: Sequence[LevelManager]) -> None:
        remember(
            levels, ((each.level or level.name, each.over) for level, _, each in self._schedules)
        )

    def advance(self, clock: Clock, levels: Sequence[LevelManager]) -> None:
        if clock.phase is not Phase.TRAIN or not self._schedules:
            return
        named = {level.name: level for level in levels}
        stages = dict(clock.stages)
        changed = set[str]()
        for level, setting, schedule in self._schedules:
            whose = schedule.level or level.name
            key = f"{level.name}/{setting}"
            rate = named[whose].sub_episodes.success_rate(schedule.over)
            stage = stages.get(key, 0)
            step = (rate >= schedule.advance) - (rate < schedule.retreat)
            stages[key] = min(max(stage + step, 0), len(schedule.values) - 1)
            if stages[key] != stage:
                changed |= {level.name, whose}
        if changed:
            clock.stages = stages
        for name in changed:  # success means something else from now on
            named[name].sub_episodes.forget()


def _schedules(
    levels: Sequence[LevelDescription],
) -> Iterator[tuple[LevelDescription, str, str, SuccessSchedule]]:
    """Every success schedule: its level, the kind of the change, the setting, and itself."""
    for level in levels:
        for change in level.changes:
            for setting, schedule in change.scheduled.items():
                if isinstance(schedule, SuccessSchedule):
                    yield level, type(change).__name__, setting, schedule
