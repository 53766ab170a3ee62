"""The newest figures of a run, taken from its records."""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.steps import EnvironmentSteps, Hours, RunLength, StepUnit
from coach_rl.telemetry.records import LogRecord

RECENT_EPISODES = 100
RECENT_SPEEDS = 20
"""Progress records over which the speed is taken."""
_TROUBLES = {
    "fault": "fault",
    "checkpoint_failed": "unwritten checkpoint",
    "gap": "gap in the log",
    "roll_back": "roll-back",
    "inspection": "finding of an inspection",
}
"""Records that say that something went wrong, and what to call it."""


@dataclass(frozen=True)
class Learner:
    """The newest metrics of an agent, or of a level without one that learns."""

    name: str
    """Its name, as far as it differs: of its level, of its agent, or both."""
    level: Mapping[str, float]
    """Statistics of its level's sub-episodes; empty for the level's further agents."""
    trained: Mapping[str, float]
    """Metrics of its training."""


@dataclass
class Figures:
    """The newest figures of a run; their size doesn't grow with its length.

    figures = Figures((EnvironmentSteps(100_000),))
    for record in graph_manager.improve():
        figures.take_in(record)
    """

    planned: tuple[RunLength, ...] = ()
    """Lengths of which the first to be reached ends the run; empty where they aren't known."""
    last: LogRecord | None = None
    """The newest record; None before the first."""
    evaluated: float = math.nan
    """Mean reward of the newest evaluation."""
    best: float = math.nan
    """The highest of these."""
    success: float | None = None
    """Share of successes in the newest evaluation; None where the environment doesn't say."""
    final: float | None = None
    """Mean reward of the final evaluation; None before it."""
    final_success: float | None = None
    """Share of successes in the final evaluation; None where the environment doesn't say."""
    _rewards: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    _progress: deque[LogRecord] = field(default_factory=lambda: deque(maxlen=RECENT_SPEEDS))
    _trained: dict[tuple[str, str], Mapping[str, float]] = field(default_factory=dict)
    """The newest training metrics by level and agent."""
    _levels: dict[str, dict[str, float]] = field(default_factory=dict)
    """The newest statistics of levels, those of evaluations under names of their own."""
    _troubles: Counter[str] = field(default_factory=Counter)
    _trouble_text: str = ""

    def take_in(self, record: LogRecord) -> None:
        """Keep what is new in a record."""
        scalars = record.scalars
        if record.kind != "level_phase":  # the phase of a level is not the run's
            self.last = record
        match record.kind:
            case "episode":
                self._rewards.append(scalars["episode/reward"])
            case "progress":
                self._progress.append(record)
            case "evaluation":
                self.evaluated = scalars["evaluation/reward_mean"]
                self.best = float(np.fmax(self.best, self.evaluated))
                self.success = scalars.get("evaluation/success_rate")
            case "final_evaluation":
                self.final = scalars["final_evaluation/reward_mean"]
                self.final_success = scalars.get("final_evaluation/success_rate")
            case "train":
                self._trained[record.level, record.agent] = scalars
            case "level_phase":
                learns = float(record.phase is Phase.TRAIN)
                self._levels.setdefault(record.level, {})["level/learns"] = learns
            case "level":
                self._levels.setdefault(record.level, {}).update(scalars)
            case kind if kind in _TROUBLES and (record.text or kind != "inspection"):
                self._troubles[_TROUBLES[kind]] += 1
                self._trouble_text = record.text

    @property
    def trouble(self) -> str:
        """Counts of what went wrong so far, and the newest account of it; empty without any."""
        counted = [f"{n:,} {what}{'s' * (n > 1)}" for what, n in self._troubles.items()]
        return ": ".join(part for part in (", ".join(counted), self._trouble_text) if part)

    @property
    def episode_reward(self) -> float | None:
        """Mean reward of the last hundred training episodes; None before the first."""
        return float(np.mean(self._rewards)) if self._rewards else None

    @property
    def share(self) -> float | None:
        """The share of the run that is done; None where its length is not known."""
        if self.last is None:
            return None
        counters = self.last
        return max((length.share(counters) for length in self.planned), default=None)

    @property
    def speed(self) -> float | None:
        """Recent environment steps per second of training; None while that is not known."""
        return self._speed(EnvironmentSteps)

    @property
    def seconds_left(self) -> float | None:
        """The time left at the recent speed, evaluations taking the share they have had so far."""
        left = [self._seconds_left(length) for length in self.planned]
        return min((seconds for seconds in left if seconds is not None), default=None)

    def learners(self, *, levels: bool = False) -> Iterator[Learner]:
        """The agents that have learned, in the order in which they did so first.

        Args:
            levels: Whether to put them in the order of their levels, top first, and to add levels
                where no agent learns.
        """
        keys = list(self._trained)
        if levels:
            order = list(dict.fromkeys([*self._levels, *(level for level, _ in keys)]))
            learning = {level for level, _ in keys}
            keys += [(level, "") for level in order if level not in learning]
            keys.sort(key=lambda key: order.index(key[0]))
        named, seen = {level for level, _ in keys}, set[str]()
        for level, agent in keys:
            parts = [level if len(named) > 1 else "", agent if len(named) < len(keys) else ""]
            yield Learner(
                name=" ".join(part for part in parts if part),
                level={} if level in seen else self._levels.get(level, {}),
                trained=self._trained.get((level, agent), {}),
            )
            seen.add(level)

    def _speed(self, unit: type[StepUnit]) -> float | None:
        """The recent amount of a unit per second of training; None while it is not known."""
        if len(self._progress) < 2:
            return None
        first, last = self._progress[0], self._progress[-1]
        seconds = _training_seconds(last) - _training_seconds(first)
        return (unit.counted(last) - unit.counted(first)) / seconds if seconds > 0 else None

    def _seconds_left(self, length: RunLength) -> float | None:
        if self.last is None:
            return None
        remaining = max(0, length.count - length.counted(self.last))
        if isinstance(length, Hours):
            return 3600 * remaining
        speed = self._speed(type(length))
        if not speed:
            return None
        last = self._progress[-1]
        slower = max(1.0, last.wall_seconds / _training_seconds(last))
        return remaining / speed * slower


def _training_seconds(record: LogRecord) -> float:
    return record.scalars["time/training_seconds"]
