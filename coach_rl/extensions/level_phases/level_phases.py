"""Levels that warm up, freeze, thaw and take turns: their times, and the phases that follow.

A level is in the run's phase unless its times set another: HEATUP while a level below it warms up,
TEST while it is frozen.
"""

from bisect import insort
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import ClassVar

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import require
from coach_rl.core.levels import LevelChange, LevelDescription
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.steps import EnvironmentSteps, RunLength
from coach_rl.extensions.level_phases.moments import (
    Moment,
    SuccessRate,
    check_success_level,
    remember,
)
from coach_rl.graph_managers.level_timing import LevelTiming
from coach_rl.levels.level_manager import LevelManager

Rates = Callable[[str, int], float]
"""(name of a level, number of its last sub-episodes) to the share of them that reached their goal.
"""
FIELDS = ("frozen_from", "frozen_until", "warmup", "turn")
"""The settings of `LevelTimes`."""


class LevelPhases(LevelTiming):
    """The phases of the levels that have times of their own, at every moment of a run.

    Args:
        levels: Top first.
    """

    SAVED = (SavedAttribute("_reached", varies=True), "_turns_since")
    sets_phases = True
    may_change_at_any_tick = True

    def __init__(self, levels: Sequence[LevelDescription]) -> None:
        super().__init__(levels)
        self._times = {level.name: times_of(level) for level in levels}
        self._reached: list[str] = []
        """The success rates that were reached, by level and field, sorted."""
        self._turns_since: int | None = None
        """Environment steps at which the first turn began; None before."""

    @staticmethod
    def check(
        levels: Sequence[LevelDescription], *, training: RunLength, heatup: RunLength
    ) -> None:
        check_times(levels, training=training, heatup=heatup)

    def watch(self, levels: Sequence[LevelManager]) -> None:
        found = _success_rates(self.levels)
        remember(levels, ((each.level or level.name, each.over) for each, level, _ in found))

    def phases(self, clock: Clock, levels: Sequence[LevelManager]) -> dict[str, Phase]:
        named = {level.name: level for level in levels}

        def rates(name: str, over: int) -> float:
            return named[name].sub_episodes.success_rate(over)

        return self._now(clock, rates)

    def unreached(self) -> list[str]:
        """The success rates that no level has reached yet, a line each."""
        return [
            f"level '{level.name}' waited for {moment} to the end ({field})"
            for level, field, moment in _moments(self.levels)
            if isinstance(moment, SuccessRate) and _key(level, field, moment) not in self._reached
        ]

    def _now(self, clock: Clock, rates: Rates) -> dict[str, Phase]:
        """Return the phases of the levels that have one of their own, by name."""
        phases: dict[str, Phase] = {}
        warms_up = False
        for level in reversed(self.levels):
            is_frozen = self._is_frozen(level, clock, rates)
            if warms_up and not level.frozen:
                if clock.phase is Phase.TRAIN:  # else the run is in HEATUP itself
                    phases[level.name] = Phase.HEATUP
            elif is_frozen:
                phases[level.name] = Phase.TEST
            if self._times[level.name].warmup is not None and clock.phase is not Phase.TEST:
                warms_up |= not self._is_reached(level, "warmup", clock, rates)
        if clock.phase is Phase.TRAIN and not warms_up:
            phases |= dict.fromkeys(self._waiting(clock, phases), Phase.TEST)
        return phases

    def _is_frozen(self, level: LevelDescription, clock: Clock, rates: Rates) -> bool:
        """Return whether a level is frozen at this moment, its turns left aside."""
        times = self._times[level.name]
        if times.frozen_from is None and times.frozen_until is None:
            return False
        begins = times.frozen_from is None or self._is_reached(level, "frozen_from", clock, rates)
        ends = times.frozen_until is not None
        return begins and not (ends and self._is_reached(level, "frozen_until", clock, rates))

    def _is_reached(self, level: LevelDescription, field: str, clock: Clock, rates: Rates) -> bool:
        moment: Moment = getattr(self._times[level.name], field)
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
        turns = {
            name: times.turn.count for name, times in reversed(self._times.items()) if times.turn
        }
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


@parameter_class
class LevelTimes(LevelChange):
    """Times at which a level learns, among its `changes`; without them it always does."""

    frozen_from: Moment | None = None
    """Moment at which the agent is frozen; None: the beginning of the run where it has a
    `frozen_until`, else never."""
    frozen_until: Moment | None = None
    """Moment at which the agent, frozen before, learns again, or begins to; None: never."""
    warmup: Moment | None = None
    """Moment until which the level learns on random goals: the levels above it act at random, as in
    heat-up, and do not learn. None: no warm-up."""
    turn: Positive[EnvironmentSteps] | None = None
    """Environment steps for which the agent learns while others with a turn are frozen, before it
    is their turn; the lowest level begins. None: it takes no turns."""

    timing: ClassVar[type[LevelTiming]] = LevelPhases

    @property
    def may_freeze(self) -> bool:
        return (self.frozen_from, self.frozen_until, self.turn) != (None, None, None)

    @property
    def learns_until(self) -> Moment | None:
        return self.frozen_from if self.frozen_until is None else None

    @property
    def leads_until(self) -> Moment | None:
        return self.warmup

    def settings(self) -> Iterator[str]:
        begin, end = self.frozen_from, self.frozen_until
        if begin is not None or end is not None:
            yield f"frozen from {begin or 'the beginning'} until {end or 'the end'}"
        if self.warmup is not None:
            yield f"warm-up on random goals until {self.warmup}"
        if self.turn is not None:
            yield f"learns in turns of {self.turn}"

    def problems(
        self,
        level: LevelDescription,
        levels: Sequence[LevelDescription],  # noqa: ARG002
    ) -> Iterator[str]:
        given = [name for name in FIELDS if getattr(self, name) is not None]
        if sum(isinstance(each, LevelTimes) for each in level.changes) > 1:
            yield f"level '{level.name}' has several LevelTimes; give all its times in one"
        if not given:
            yield f"level '{level.name}' has LevelTimes without a time; set {', '.join(FIELDS)}"
        if level.frozen and given:
            yield (
                f"level '{level.name}' is frozen for the whole run, so {', '.join(given)} would "
                "have no effect; leave out frozen=True, or the rest"
            )

    def for_chains(self, *, is_top: bool) -> Iterator[str]:  # noqa: ARG002
        for field in ("warmup", "turn"):
            if getattr(self, field) is not None:
                yield f"has {field}, which is for levels"


def times_of(level: LevelDescription) -> LevelTimes:
    """The times of a level; without any it always learns."""
    found = (change for change in level.changes if isinstance(change, LevelTimes))
    return next(found, LevelTimes())


def check_times(
    levels: Sequence[LevelDescription], *, training: RunLength, heatup: RunLength
) -> None:
    """Raise `ParameterError` where a level would never learn, or a phase makes no sense.

    Args:
        levels: Top first.
        training: Length of the run.
        heatup: Length of its heat-up.
    """
    for awaited, level, field in _success_rates(levels):
        check_success_level(awaited.level, level, field, levels)
    times = [times_of(level) for level in levels]
    for index, (level, own) in enumerate(zip(levels, times, strict=True)):
        if level.frozen or (own.warmup is None and not own.may_freeze):
            continue
        begin, end = own.frozen_from, own.frozen_until
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
        if own.warmup is not None:
            _check_warmup(level, levels[:index], training=training, heatup=heatup)
    turns = [own.turn for own in times if own.turn is not None]
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
    times = times_of(level)
    warmup = times.warmup
    name = f"warmup ({warmup}) of level '{level.name}'"
    require(
        bool(above),
        f"{name}: no level above the top hands down random goals; give it to a level below, or "
        "lengthen schedule.heatup",
    )
    begin, end = times.frozen_from, times.frozen_until
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
            not _is_late(warmup, times_of(each).warmup),
            f"{name}: level '{each.name}' above acts at random until then, so its own warmup "
            f"({times_of(each).warmup}) must be longer",
        )


def _moments(
    levels: Sequence[LevelDescription],
) -> Iterator[tuple[LevelDescription, str, Moment | None]]:
    """Every moment of every level, with its field."""
    for level in levels:
        for field in ("frozen_from", "frozen_until", "warmup"):
            yield level, field, getattr(times_of(level), field)


def _success_rates(
    levels: Sequence[LevelDescription],
) -> Iterator[tuple[SuccessRate, LevelDescription, str]]:
    """Every success rate that is waited for, with the level that waits, and the field."""
    for level, field, moment in _moments(levels):
        if isinstance(moment, SuccessRate):
            yield moment, level, field


def _key(level: LevelDescription, field: str, moment: SuccessRate) -> str:
    """Return what a success rate that was reached is remembered by."""
    return f"{level.name}.{field}: {moment}"


def _is_late(moment: Moment | RunLength | None, end: Moment | RunLength | None) -> bool:
    """Return whether a moment does not come before another; False where units don't compare."""
    if isinstance(moment, SuccessRate | None) or isinstance(end, SuccessRate | None):
        return False
    return type(moment) is type(end) and moment.count >= end.count
