"""Sweeps: a search for better settings of a preset, and a check of what was found.

    sweep = Sweep(preset="Pendulum_SAC", search="learning_rate=log(1e-4, 3e-3)", name="rates")
    with closing(LocalPool(2)) as pool:
        result = run_sweep(sweep, pool)

Each trial is an ordinary run. Its evaluations, read from its log, tell the pruner; its evaluation
at the end is its value. The best of many trials was lucky as well as good, so the best few and the
preset as it is train again from fresh seeds, and only those scores are compared.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coach_rl.configuration.overrides import said
from coach_rl.configuration.preset_file import Preset
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.sessions.runner import DEFAULT_ROOT
from coach_rl.studies.job import Job, Needs
from coach_rl.studies.scores import is_success
from coach_rl.studies.search_space import SearchSpace, check_search, parse_search
from coach_rl.studies.statistics import Difference
from coach_rl.studies.trials import Pruner, Sampler, Trial
from coach_rl.telemetry.best_evaluation import AUTO

Verdict = Literal["beats", "ties", "loses"]
"""Result of a comparison with the shipped setting: it ties where no difference is established."""

SHIPPED = "shipped"
"""The variant that changes nothing of what is searched."""
_LENGTH = ("schedule.training", "steps")
"""Names of the length of a run: the path, and the name on panels that have it."""


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A search for better settings of a preset."""

    preset: str
    """The preset, as after `-p`."""
    search: str = ""
    """The search space, see `search_space`; empty for the preset's own, `SEARCH` of its panel."""
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Changes that all runs have in common. `checkpoints.best_of` and `checkpoints.best_is` name
    the metric that is searched for."""
    task: Runtime = field(default_factory=Runtime)
    """Seed of all trials and of the sampler, device, threads, precision."""
    name: str
    """Name of its folder and of the experiment that its runs belong to."""
    root: Path = DEFAULT_ROOT
    """The folder of all experiments."""
    trials: int | None = None
    """Trials in all, also those of other processes and of earlier times; None for 40, or for every
    combination of a grid."""
    sampler: Sampler = "tpe"
    """Method that chooses what to try next."""
    pruner: Pruner = "median"
    """Rule by which trials end early."""
    confirmed: int = 3
    """Number of the best trials that train again from fresh seeds; 0 for none."""
    fresh_seeds: int = 5
    """Number of those seeds."""
    needs: Needs = field(default_factory=Needs)
    """Needs of each run."""
    tensorboard: bool = False
    """If True, the runs write TensorBoard files."""

    def __post_init__(self) -> None:
        require(
            self.trials is None or self.trials >= 1, f"trials must be 1 or more, got {self.trials}"
        )
        require(self.confirmed >= 0, f"confirmed must be 0 or more, got {self.confirmed}")
        require(
            self.fresh_seeds >= 2 or not self.confirmed,
            f"fresh_seeds must be 2 or more, for one run tells nothing of others, got "
            f"{self.fresh_seeds}",
        )

    @property
    def folder(self) -> Path:
        """The folder of its journal, its report and its runs."""
        return self.root / self.name

    def job(
        self,
        overrides: Mapping[str, object],
        labels: Mapping[str, str],
        *,
        seed: int | None = None,
    ) -> Job:
        """One of its runs.

        Args:
            overrides: Its changes besides those that all runs have in common.
            labels: Its names in the manifest, besides the sweep's.
            seed: Its seed; None for the sweep's.
        """
        return Job(
            preset=self.preset,
            overrides={**self.overrides, **overrides},
            task=self.task if seed is None else replace(self.task, seed=seed),
            name=self.name,
            root=self.root,
            labels={"sweep": self.name, **labels},
            needs=self.needs,
            tensorboard=self.tensorboard,
        )


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric and its direction: the aim of a search."""

    name: str
    """An evaluation's metric: `reward_mean`, `low/goal_share`, ..."""
    is_largest_best: bool

    def of(self, metrics: Mapping[str, float]) -> float:
        """Its value; no success is reported where there was none yet."""
        missing = 0.0 if is_success(self.name) else math.nan
        return float(metrics.get(self.name, missing))

    def curve(self, metrics: Mapping[str, FloatArray], length: int) -> list[float]:
        """Its values at so many evaluations."""
        missing = np.full(length, self.of({}))
        return [self.of({self.name: value}) for value in metrics.get(self.name, missing).tolist()]


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """A setting on fresh seeds."""

    variant: str
    """`shipped`, or `trial 7`."""
    overrides: Mapping[str, object]
    """Its changes of the preset."""
    scores: FloatArray
    """[n], one for each seed that came to its end."""
    failed: int
    """Seeds that did not."""
    episodes: IntArray | None = None
    """[n], the episodes of which each score is the share of successes; None where the scores are
    something else."""
    difference: Difference | None
    """The lead over the scores of the shipped setting; None for that one itself, or where one of
    them has no scores. All intervals hold together with a confidence of 95 %."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The result of a sweep."""

    sweep: Sweep
    space: SearchSpace
    metric: Metric
    trials: tuple[Trial, ...]
    """All of them, by number."""
    best: tuple[Trial, ...]
    """Those that are done, the best first."""
    importances: Mapping[str, float]
    """The weight of each setting, in shares of 1; empty where there are too few trials."""
    confirmations: tuple[Confirmation, ...]
    """The shipped setting and the best trials on fresh seeds; empty where none was asked for."""

    @property
    def winner(self) -> Confirmation | None:
        """The trial with the best scores on fresh seeds; None where there are none."""
        sign = 1.0 if self.metric.is_largest_best else -1.0
        tried = [(each.difference, each) for each in self.confirmations if each.difference]
        return max(tried, key=lambda pair: sign * pair[0].value, default=(None, None))[1]

    @property
    def recommended(self) -> str:
        """The best setting on fresh seeds, or else of the trials, as `-cp` takes it.

        The length of the sweep's runs is left out, since trials are often shorter than a run that
        trains to the end.
        """
        best = self.best[0].overrides if self.winner is None else self.winner.overrides
        changes = {**self.sweep.overrides, **best}
        return said({
            name: value
            for name, value in changes.items()
            if name not in _LENGTH or name in best
        })  # fmt: skip

    def verdict(self, confirmation: Confirmation) -> Verdict:
        """The result of a setting on fresh seeds beside the shipped one."""
        number = confirmation.difference
        if number is None or not number.is_clear:
            return "ties"
        return "beats" if (number.value > 0) == self.metric.is_largest_best else "loses"


def search_space_of(sweep: Sweep, preset: Preset) -> SearchSpace:
    """The search space, tried on the preset.

    Raises:
        ConfigurationError: There is none, or it doesn't fit.
    """
    text = sweep.search or preset.search
    if not text:
        raise ConfigurationError(
            f"the preset {preset.reference.name} has no search space of its own; give one with "
            '--search "learning_rate=log(1e-4, 1e-2)"'
        )
    space = parse_search(text)
    check_search(space, preset, dict(sweep.overrides))
    return space


def metric_of(sweep: Sweep, preset: Preset) -> Metric:
    """The metric by which the preset's runs are judged, also when they choose a checkpoint.

    `auto` is the success rate where the preset's target is one, and the mean reward elsewhere.
    """
    parameters = preset.configure(sweep.overrides).parameters
    policy: CheckpointParameters = parameters.checkpoints
    name = policy.best_of
    if name is None:
        raise ConfigurationError(
            "checkpoints.best_of is None, so no metric says which trial is the best; give one "
            "with --metric"
        )
    if name == AUTO:
        target = parameters.validation
        is_success = target is not None and target.success_rate is not None
        name = "success_rate" if is_success else "reward_mean"
    return Metric(name=name, is_largest_best=policy.best_is == "largest")
