"""The phases of single levels: warm-up, freezing and thawing, turns.

A level is in the run's phase unless its description sets another: HEATUP while a level below
it warms up, TEST while it is frozen.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import numpy as np

from coach_rl.core.agents import freeze
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription, Moment, SuccessRate, SuccessSchedule
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.steps import EnvironmentSteps, RunLength
from coach_rl.levels.level_manager import LevelManager

Rates = Callable[[str, int], float]
"""(name of a level, number of its last sub-episodes) to the share of them that reached their goal.
"""

WORDS = {
    Phase.HEATUP: "acts at random while a level below it warms up",
    Phase.TRAIN: "learns",
    Phase.TEST: "is frozen",
}
"""Words for what a level does in its phase."""


class LevelPhases(Saved):
    """The phases of the levels that have one of their own, at every moment of a run.

    Args:
        levels: Top first.
    """

    SAVED = (SavedAttribute("_reached", varies=True), "_turns_since")

    def __init__(self, levels: Sequence[LevelDescription]) -> None:
        self.are_scheduled = False
        """True if any level ever has a phase of its own."""
        self._levels = levels
        self._in_steps: list[tuple[LevelDescription, str, SuccessSchedule]] = []
        for level in levels:
            self.are_scheduled |= level.warmup is not None or level.may_freeze
            for change in level.changes:
                for setting, schedule in change.scheduled.items():
                    if isinstance(schedule, SuccessSchedule):
                        self._in_steps.append((level, setting, schedule))
        self._reached: list[str] = []
        """The success rates that were reached, by level and field, sorted."""
        self._turns_since: int | None = None
        """Environment steps at which the first turn began; None before."""

    def watch(self, levels: Sequence[LevelManager]) -> None:
        """Let levels remember as many sub-episodes as the success rates of the schedule need."""
        if not self.may_change_at_any_tick:
            return
        named = {level.name: level for level in levels}
        counts: dict[str, int] = {}
        for awaited, level, _ in _success_rates(self._levels):
            whose = awaited.level or level.name
            counts[whose] = max(counts.get(whose, 0), awaited.over)
        for name, count in counts.items():
            named[name].sub_episodes.remember(count)

    def update(self, clock: Clock, levels: Sequence[LevelManager]) -> dict[str, Phase]:
        """Bring the phases on the clock up to date; those that have changed, by level.

        Args:
            clock: Phase and counters of training.
            levels: The levels that train; agents are frozen and thawed by it.
        """
        if self._in_steps and clock.phase is Phase.TRAIN:
            self._step(clock, {level.name: level for level in levels})
        if not self.are_scheduled:
            if clock.levels:  # they were in the run that was saved
                clock.levels = {}
            return {}
        named = {level.name: level for level in levels}
        before = {name: clock.of_level(name).phase for name in named}

        def rates(name: str, over: int) -> float:
            return named[name].sub_episodes.success_rate(over)

        clock.levels = self._now(clock, rates)
        now = {name: clock.of_level(name).phase for name in named}
        changed = {name: phase for name, phase in now.items() if phase is not before[name]}
        for name, phase in changed.items():
            if phase is Phase.TEST:
                level = named[name]
                freeze(level.agent, level.agent_rows, np.arange(level.num_envs), clock)
        return changed

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Return whether each level learns now, 0 or 1 by name; empty where all always do."""
        if not self.are_scheduled:
            return {}
        return {
            level.name: float(not level.frozen and clock.of_level(level.name).phase is Phase.TRAIN)
            for level in self._levels
        }

    def unreached(self) -> list[str]:
        """The success rates that no level has reached yet, a line each."""
        return [
            f"level '{level.name}' waited for {moment} to the end ({field})"
            for level, field, moment in _moments(self._levels)
            if isinstance(moment, SuccessRate) and _key(level, field, moment) not in self._reached
        ]

    @property
    def may_change_at_any_tick(self) -> bool:
        """True if success rates, or phases of single levels, may change a run at any tick."""
        return self.are_scheduled or bool(self._in_steps)

    def _step(self, clock: Clock, named: Mapping[str, LevelManager]) -> None:
        """Bring the success schedules of changes, on the clock, up to date."""
        stages = dict(clock.stages)
        changed = set[str]()
        for level, setting, schedule in self._in_steps:
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

    def _now(self, clock: Clock, rates: Rates) -> dict[str, Phase]:
        """Return the phases of the levels that have one of their own, by name."""
        phases: dict[str, Phase] = {}
        warms_up = False
        for level in reversed(self._levels):
            is_frozen = self._is_frozen(level, clock, rates)
            if warms_up and not level.frozen:
                if clock.phase is Phase.TRAIN:  # else the run is in HEATUP itself
                    phases[level.name] = Phase.HEATUP
            elif is_frozen:
                phases[level.name] = Phase.TEST
            if level.warmup is not None and clock.phase is not Phase.TEST:
                warms_up |= not self._is_reached(level, "warmup", clock, rates)
        if clock.phase is Phase.TRAIN and not warms_up:
            phases |= dict.fromkeys(self._waiting(clock, phases), Phase.TEST)
        return phases

    def _is_frozen(self, level: LevelDescription, clock: Clock, rates: Rates) -> bool:
        """Return whether a level is frozen at this moment, its turns left aside."""
        if level.frozen_from is None and level.frozen_until is None:
            return False
        begins = level.frozen_from is None or self._is_reached(level, "frozen_from", clock, rates)
        ends = level.frozen_until is not None
        return begins and not (ends and self._is_reached(level, "frozen_until", clock, rates))

    def _is_reached(self, level: LevelDescription, field: str, clock: Clock, rates: Rates) -> bool:
        moment: Moment = getattr(level, field)
        if not isinstance(moment, SuccessRate):
            return moment.is_reached(clock)
        key = _key(level, field, moment)
        if key not in self._reached and (
            clock.phase is Phase.TRAIN
            and rates(moment.level or level.name, moment.over) >= moment.rate
        ):
            insort(self._reached, key)
        return key in self._reached

    def _waiting(self, clock: Clock, frozen: Collection[str]) -> list[str]:
        """The levels that wait for their turn; the next one has that of a level that is frozen."""
        turns = {level.name: level.turn.count for level in reversed(self._levels) if level.turn}
        if not turns:
            return []
        if self._turns_since is None:
            self._turns_since = clock.environment_steps
        place = (clock.environment_steps - self._turns_since) % sum(turns.values())
        names = list(turns)
        over = np.cumsum(list(turns.values()))
        whose = int(np.searchsorted(over, place, side="right"))
        able = [name for name in (*names[whose:], *names[:whose]) if name not in frozen]
        return [name for name in names if name not in able[:1]]


def check_level_phases(
    levels: Sequence[LevelDescription], *, training: RunLength, heatup: RunLength
) -> None:
    """Raise `ParameterError` where a level would never learn, or a phase makes no sense.

    Args:
        levels: Top first.
        training: Length of the run.
        heatup: Length of its heat-up.
    """
    for awaited, level, field in _success_rates(levels):
        _check_success_rate(awaited.level, level, field, levels)
    for index, level in enumerate(levels):
        if level.warmup is None and not level.may_freeze:
            continue
        begin, end = level.frozen_from, level.frozen_until
        require(
            not _is_late(begin, end),
            f"frozen_from ({begin}) of level '{level.name}' must come before frozen_until ({end})",
        )
        is_late = begin is None and _is_late(end, training)
        is_early = end is None and begin is not None and _is_late(heatup, begin)
        require(
            not (is_late or is_early),
            f"level '{level.name}' would never learn: it is frozen from "
            f"{begin or 'the beginning'} until {end or 'the end'}, heat-up is over "
            f"after {heatup} and the run after {training}; write frozen=True if that is meant",
        )
        if level.warmup is not None:
            _check_warmup(level, levels[:index], training=training, heatup=heatup)
    turns = [level.turn for level in levels if level.turn is not None]
    if turns:
        _check_turns(turns, training=training)


def _check_turns(turns: Sequence[EnvironmentSteps], *, training: RunLength) -> None:
    """Raise `ParameterError` unless turns, the highest level's first, alternate in a run."""
    require(
        len(turns) != 1,
        "one level alone has a turn, and there is no other to take the next; give another level "
        "one too, or use frozen_from and frozen_until",
    )
    first = sum(turn.count for turn in turns[1:])  # the highest level's comes last
    require(
        not _is_late(EnvironmentSteps(first), training),
        f"the turns before that of the highest level take {first:,} environment steps, so that it "
        f"would never learn in a run of {training}; shorten them",
    )


def _check_warmup(
    level: LevelDescription,
    above: Sequence[LevelDescription],
    *,
    training: RunLength,
    heatup: RunLength,
) -> None:
    name = f"warmup ({level.warmup}) of level '{level.name}'"
    warmup = level.warmup
    require(
        bool(above),
        f"{name}: no level above the top hands down random goals; give it to a level below, or "
        "lengthen schedule.heatup",
    )
    begin, end = level.frozen_from, level.frozen_until
    require(
        begin is not None or not _is_late(end, warmup),
        f"{name}: the level is frozen until {end}, and would not learn before; set an earlier "
        "frozen_until, or leave it out",
    )
    require(
        not _is_late(warmup, training),
        f"{name} must be shorter than schedule.training ({training}), or the levels above never "
        "learn",
    )
    require(
        not (heatup.count and _is_late(heatup, warmup)),
        f"{name} must be longer than schedule.heatup ({heatup}), which it includes",
    )
    for each in above:
        require(
            not each.frozen,
            f"{name}: level '{each.name}' above is frozen, and hands down no random goals; leave "
            "out one of the two",
        )
        require(
            not _is_late(warmup, each.warmup),
            f"{name}: level '{each.name}' above acts at random until then, so its own warmup "
            f"({each.warmup}) must be longer",
        )


def _check_success_rate(
    of: str | None, level: LevelDescription, field: str, levels: Sequence[LevelDescription]
) -> None:
    spaces = {each.name: each.goal_space for each in levels}
    whose = of or level.name
    with_goals = [name for name, space in spaces.items() if isinstance(space, GoalSpace)]
    require(
        whose in with_goals,
        f"{field} of level '{level.name}' waits for a success rate of level '{whose}', "
        f"{'which has no goals of its own' if whose in spaces else 'which does not exist'}; levels "
        f"with goals: {', '.join(with_goals) or 'none'}",
    )


def _moments(
    levels: Sequence[LevelDescription],
) -> Iterator[tuple[LevelDescription, str, Moment | None]]:
    """Every moment of every level, with its field."""
    for level in levels:
        for field in ("frozen_from", "frozen_until", "warmup"):
            yield level, field, getattr(level, field)


def _success_rates(
    levels: Sequence[LevelDescription],
) -> Iterator[tuple[SuccessRate | SuccessSchedule, LevelDescription, str]]:
    """Every success rate that is waited for, with the level that waits, and the field."""
    for level, field, moment in _moments(levels):
        if isinstance(moment, SuccessRate):
            yield moment, level, field
    for level in levels:
        for change in level.changes:
            for setting, schedule in change.scheduled.items():
                if isinstance(schedule, SuccessSchedule):
                    yield schedule, level, f"{type(change).__name__}.{setting}"


def _key(level: LevelDescription, field: str, moment: SuccessRate) -> str:
    """Return what a success rate that was reached is remembered by."""
    return f"{level.name}.{field}: {moment}"


def _is_late(moment: Moment | RunLength | None, end: Moment | RunLength | None) -> bool:
    """Return whether a moment does not come before another; False where units don't compare."""
    if isinstance(moment, SuccessRate | None) or isinstance(end, SuccessRate | None):
        return False
    return type(moment) is type(end) and moment.count >= end.count
