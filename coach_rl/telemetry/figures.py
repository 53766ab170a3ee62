"""The newest figures of a run, and its best evaluation, both taken from its records."""

import math
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal, Protocol

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.log_records import AUTO, Evaluation, LogRecord
from coach_rl.core.steps import Hours, RunLength, StepUnit

_COUNTS = attrgetter("environment_steps", "training_steps")
REWARD = "reward_mean"
SUCCESS = "success_rate"

RECENT_EPISODES = 100
RECENT_SPEEDS = 20
"""Progress records over which the speed is taken."""
_EVALUATED = "evaluation_level/"
_PROBLEMS = {
    "fault": "fault",
    "checkpoint_failed": "unwritten checkpoint",
    "gap": "gap in the log",
    "roll_back": "roll-back",
}
"""Kinds of records of problems, and their names; other records name theirs."""


class BestPolicy(Protocol):
    """The metric by which an evaluation is the best: two fields of `CheckpointParameters`."""

    @property
    def best_of(self) -> str | None:
        """Name of the metric, or `AUTO`; None where no evaluation is the best."""
        ...

    @property
    def best_is(self) -> Literal["largest", "smallest"]:
        """The value of the metric that is the best."""
        ...


@dataclass(frozen=True, kw_only=True)
class AutoPolicy:
    """The policy of a run that names no metric."""

    best_of: str | None = AUTO
    best_is: Literal["largest", "smallest"] = "largest"


@dataclass(frozen=True, kw_only=True)
class Best:
    """The best evaluation so far."""

    metric: str = REWARD
    """The metric it is the best by."""
    value: float
    """Its value of that metric."""
    reward: float
    """Its mean reward."""
    environment_steps: int
    """Environment steps at which it was taken."""
    training_steps: int = 0
    """Gradient updates at which it was taken."""
    checkpoint: str
    """The name of the checkpoint taken then."""

    def __str__(self) -> str:
        return f"{self.metric} {self.value:,.4g} at {self.place}"

    @property
    def place(self) -> str:
        """The environment step, or the update of a run that has not acted."""
        if self.environment_steps or not self.training_steps:
            return f"environment step {self.environment_steps:,}"
        return f"update {self.training_steps:,}"


def unit_name(record: LogRecord) -> str:
    """The short name of the unit of a record's moment: `steps`, or `updates`."""
    return record.unit.noun.split()[-1]


def metrics_of(evaluation: LogRecord) -> dict[str, float]:
    """An evaluation's metrics by the names of a policy: `reward_mean`, `low/goal_share`."""
    metrics = {_short(name): value for name, value in evaluation.scalars.items()}
    for level in evaluation.levels if isinstance(evaluation, Evaluation) else ():
        metrics |= {f"{level.level}/{_short(name)}": of for name, of in level.scalars.items()}
    return metrics


def candidate(evaluation: LogRecord, policy: BestPolicy, checkpoint: str) -> Best | None:
    """The evaluation as the best one; None where it has no finite reward, or value of the metric.

    Args:
        evaluation: An evaluation while training.
        policy: Names the metric.
        checkpoint: The name of the checkpoint that would be taken of it.
    """
    metrics = metrics_of(evaluation)
    name = policy.best_of
    if name == AUTO:
        name = SUCCESS if SUCCESS in metrics else REWARD
    value = _value(metrics, name) if name is not None else math.nan
    if name is None or not (math.isfinite(value) and math.isfinite(metrics[REWARD])):
        return None
    return Best(
        metric=name,
        value=value,
        reward=metrics[REWARD],
        environment_steps=evaluation.environment_steps,
        training_steps=evaluation.training_steps,
        checkpoint=checkpoint,
    )


def is_better(new: Best, old: Best | None, policy: BestPolicy) -> bool:
    """Return whether an evaluation beats the best one so far; an equal one does not."""
    return old is None or _rank(new, policy) > _rank(old, policy)


def is_measured_by(best: Best, policy: BestPolicy) -> bool:
    """Return whether a best evaluation was chosen by the policy's metric."""
    return policy.best_of in (best.metric, AUTO)


def _rank(best: Best, policy: BestPolicy) -> tuple[float, float]:
    """The value, and the mean reward for ties; no success is reported where there was none yet."""
    if policy.best_of == AUTO and best.metric != SUCCESS:
        return 0.0, best.reward
    value = best.value if policy.best_is == "largest" else -best.value
    return value, best.reward


def _value(metrics: Mapping[str, float], name: str) -> float:
    missing = 0.0 if name.startswith("success_") else math.nan
    return metrics.get(name, missing)


def _short(name: str) -> str:
    """A metric's name without its room: `reward_mean/agent` of `evaluation/reward_mean/agent`."""
    return name.partition("/")[2]


@dataclass(frozen=True)
class Learner:
    """The newest metrics of an agent, or of a level without one that learns."""

    name: str
    """Its name, as far as it differs: of its level, of its agent, or both."""
    level: Mapping[str, float]
    """Statistics of its level's sub-episodes; empty for the level's further agents."""
    trained: Mapping[str, float]
    """Metrics of its training."""
    trained_at: int
    """The moment at which these were reported."""


@dataclass
class Figures:
    """The newest figures of a run; their size doesn't grow with its length.

    figures = Figures((EnvironmentSteps(100_000),))
    for record in graph_manager.improve():
        figures.add(record)
    """

    planned: tuple[RunLength, ...] = ()
    """Lengths of which the first to be reached ends the run; empty where they aren't known."""
    levels: Sequence[str] = ()
    """Names of the levels; empty where they aren't known."""
    policy: BestPolicy = field(default_factory=AutoPolicy)
    """The metric by which an evaluation is the best."""
    best: Best | None = None
    """The best evaluation so far; None before the first."""
    last: LogRecord | None = None
    """The newest record; None before the first."""
    evaluated: float = math.nan
    """Mean reward of the newest evaluation."""
    success: float | None = None
    """Success rate of the newest evaluation; None if the environment does not report success."""
    final: float | None = None
    """Mean reward of the final evaluation; None before it."""
    final_success: float | None = None
    """Success rate of the final evaluation; None if the environment does not report success."""
    observed: dict[str, tuple[float, float]] = field(default_factory=dict)
    """The newest lowest and highest values of what agents observe: by `level/observations/key`."""
    _rewards: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    _progress: deque[LogRecord] = field(default_factory=lambda: deque(maxlen=RECENT_SPEEDS))
    _trained: dict[tuple[str, str], LogRecord] = field(default_factory=dict)
    """The newest record of training by level and agent."""
    _levels: dict[str, dict[str, float]] = field(default_factory=dict)
    """The newest statistics of levels, those of evaluations under names of their own."""
    _earlier: deque[Best | None] = field(default_factory=lambda: deque(maxlen=RECENT_EPISODES))
    """The best evaluations before the best one, to return to where the run is rolled back."""
    _problems: Counter[str] = field(default_factory=Counter)
    _newest_problem: str = ""

    def add(self, record: LogRecord) -> None:
        """Update the figures from a record."""
        scalars = record.scalars
        # The phase of a level is not the run's.
        self.last = self.last if record.kind == "level_phase" else record
        match record.kind:
            case "episode":
                self._rewards.append(scalars["episode/reward"])
            case "progress":
                self._progress.append(record)
            case "evaluation":
                self.evaluated = scalars["evaluation/reward_mean"]
                self._compare(record)
                self.success = scalars.get("evaluation/success_rate")
            case "final_evaluation":
                self.final = scalars["final_evaluation/reward_mean"]
                self.final_success = scalars.get("final_evaluation/success_rate")
            case "train":
                self._trained[record.level, record.agent] = record
            case "signals":
                self.observed |= dict(_ranges(scalars))
            case "level_phase":
                learns = float(record.phase is Phase.TRAIN)
                self._levels.setdefault(record.level, {})["level/learns"] = learns
            case "level":
                self._levels.setdefault(record.level, {}).update(scalars)
            case kind if kind in _PROBLEMS or record.problem:
                self._count_problem(record)

    @property
    def problems(self) -> str:
        """Counts of the problems so far, and the text of the newest; empty without any."""
        counted = [f"{n:,} {what}{'s' * (n > 1)}" for what, n in self._problems.items()]
        return ": ".join(part for part in (", ".join(counted), self._newest_problem) if part)

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
        """The run's recent progress per second of training; None while that is not known."""
        return None if self.last is None else self._speed(self.last.unit)

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
        named = {*self.levels, *(level for level, _ in keys)}
        seen = set[str]()
        for level, agent in keys:
            is_alone = len({level for level, _ in keys}) == len(keys)
            parts = [level if len(named) > 1 else "", "" if is_alone else agent]
            trained = self._trained.get((level, agent))
            yield Learner(
                name=" ".join(part for part in parts if part),
                level={} if level in seen else self._levels.get(level, {}),
                trained={} if trained is None else trained.scalars,
                trained_at=0 if trained is None else trained.moment,
            )
            seen.add(level)

    def _compare(self, evaluation: LogRecord) -> None:
        """Keep an evaluation where it is the best; records of its levels come before it."""
        if not isinstance(evaluation, Evaluation):  # a line of a log
            named = [
                replace(evaluation, level=level, scalars=_of_evaluation(scalars))
                for level, scalars in self._levels.items()
            ]
            evaluation = Evaluation(**vars(evaluation), levels=tuple(named))
        new = candidate(evaluation, self.policy, "")
        if new is not None and is_better(new, self.best, self.policy):
            self._earlier.append(self.best)
            self.best = new

    def _count_problem(self, record: LogRecord) -> None:
        """Count a problem; a roll-back also undoes evaluations."""
        self._problems[record.problem or _PROBLEMS[record.kind]] += 1
        self._newest_problem = record.text
        if record.kind == "roll_back":
            while self.best is not None and _COUNTS(self.best) > _COUNTS(record):
                self.best = self._earlier.pop() if self._earlier else None

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


def _of_evaluation(scalars: Mapping[str, float]) -> dict[str, float]:
    """The statistics of a level that are those of an evaluation."""
    return {name: value for name, value in scalars.items() if name.startswith(_EVALUATED)}


def _training_seconds(record: LogRecord) -> float:
    return record.scalars["time/training_seconds"]


def _ranges(scalars: Mapping[str, float]) -> Iterator[tuple[str, tuple[float, float]]]:
    """The ranges among signals, by the signal's name without its room."""
    for name, low in scalars.items():
        signal = name.removeprefix("signals/").removesuffix("/min")
        if name == f"signals/{signal}/min" and "/observations/" in signal:
            yield signal, (low, scalars[f"signals/{signal}/max"])
