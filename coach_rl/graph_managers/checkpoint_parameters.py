"""The policy by which a run saves itself; `coach_rl.experiment` acts on it."""

from collections.abc import Sequence
from typing import Literal

from coach_rl.core.errors import UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.levels.sub_episodes import METRICS as LEVEL_METRICS
from coach_rl.telemetry.best_evaluation import AUTO

EPISODE_METRICS = (
    "reward_mean",
    "reward_std",
    "reward_iqm",
    "reward_iqm_low",
    "reward_iqm_high",
    "length_mean",
    "success_rate",
    "success_any_rate",
)
"""Metrics of every evaluation, by which it can be the best."""


@parameter_class
class CheckpointParameters:
    """Policy of checkpoints: when a run saves itself, and which ones stay.

    The newest checkpoint always stays, as `last`. It is written at the end, at a signal, and
    whenever one of the others is.
    """

    enabled: bool = True
    """If False, there are no checkpoints at all: the run can't be resumed, nor evaluated once it is
    over."""
    best_of: str | None = AUTO
    """Metric of evaluations whose best checkpoint stays, as `best`: e.g. success_rate, length_mean,
    or a level's, such as low/goal_share. None: no best. Equal ones are ranked by mean reward, then
    the earlier stays."""
    best_is: Literal["largest", "smallest"] = "largest"
    """The value of the metric that is the best."""
    every_steps: Positive[EnvironmentSteps] | None = None
    """Environment steps between periodic checkpoints, which stay; None for none. Taken at the
    first log record from there on."""
    every_seconds: Positive[float] | None = None
    """Seconds of the run's own time between periodic checkpoints, which stay; None for none."""
    keep_last: NonNegative[int] | None = None
    """Number of periodic checkpoints that stay, the newest; None keeps all."""
    keep_every: Positive[int] | None = None
    """Interval at which periodic checkpoints stay for ever, whatever keep_last says: 5 for every
    fifth; None for none."""
    lost_at_most_seconds: Positive[float] | None = 600.0
    """Seconds without a checkpoint after which `last` is written anew: what a killed process can
    lose. None: only with the other checkpoints."""
    memories: bool = True
    """If False, replay memories are left out: a resumed run fills them anew before it learns again,
    and is not exact."""

    def __post_init__(self) -> None:
        require(
            self.keep_last is None or self.is_periodic,
            f"checkpoints.keep_last={self.keep_last} is about periodic checkpoints, and there are "
            "none; give every_steps (--checkpoint_steps) or every_seconds (-s) as well",
        )
        require(
            self.keep_every is None or self.keep_last is not None,
            f"checkpoints.keep_every={self.keep_every} changes nothing, because all periodic "
            "checkpoints stay; give keep_last (--keep) as well",
        )

    def require_known_metric(self, levels: Sequence[str]) -> None:
        """Raise an `UnknownNameError` where evaluations will not have the metric of `best_of`.

        Args:
            levels: Names of the levels.
        """
        if self.best_of not in (None, AUTO):
            where = "in checkpoints.best_of"
            require_known_metric(where, self.best_of, levels, others=[AUTO])

    @property
    def is_periodic(self) -> bool:
        """True if there are periodic checkpoints."""
        return self.every_steps is not None or self.every_seconds is not None

    @property
    def most(self) -> int | None:
        """Number of checkpoints that stay at most, best and last among them; None: no limit."""
        if not self.is_periodic:
            return 2
        return None if self.keep_last is None or self.keep_every else 2 + self.keep_last

    def stays(self, number: int, newest: int) -> bool:
        """Return whether a periodic checkpoint stays that is neither best nor last.

        Args:
            number: Its number among the periodic ones, from 1.
            newest: The number of the newest.
        """
        if self.keep_last is None or number > newest - self.keep_last:
            return True
        return self.keep_every is not None and number % self.keep_every == 0


def require_known_metric(
    where: str, name: str, levels: Sequence[str], others: Sequence[str] = ()
) -> None:
    """Raise an `UnknownNameError` where evaluations will not have a metric.

    Args:
        where: Where it is named, for the error.
        name: The metric's name: `reward_mean`, `low/goal_share`, an agent's `reward_mean/NAME`.
        levels: Names of the levels.
        others: What else would have been accepted.
    """
    known = [*others, *EPISODE_METRICS]
    known += [f"{level}/{metric}" for level in levels for metric in LEVEL_METRICS]
    if name not in known and not name.startswith("reward_mean/"):
        hint = "docs/metrics.md lists them"
        raise UnknownNameError("metric of evaluations", name, known, hint, where=where)
