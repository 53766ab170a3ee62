"""The best evaluation of a run, by the metric that its policy of checkpoints names."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

from coach_rl.telemetry.records import Evaluation, LogRecord

REWARD, SUCCESS = "reward_mean", "success_rate"
AUTO = "auto"
"""Stands for the success rate where success is reported, and for the mean reward elsewhere."""


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
    checkpoint: str
    """The name of the checkpoint taken then."""

    def __str__(self) -> str:
        return f"{self.metric} {self.value:,.4g} at environment step {self.environment_steps:,}"


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
    metrics, name = metrics_of(evaluation), policy.best_of
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
