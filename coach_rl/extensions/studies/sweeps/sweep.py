"""A sweep: a search for better settings of a preset, as a value.

    sweep = Sweep(preset="Pendulum_SAC", search="learning_rate=log(1e-4, 3e-3)", name="rates")

Each trial is an ordinary run. Its evaluations, read from its log, go to the pruner; its evaluation
at the end is its value. The best of many trials was lucky as well as good, so the best few and the
preset as it is train again from fresh seeds, and only those scores are compared.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coach_rl.configuration.preset_file import Preset
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.log_records import AUTO
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.job import Job, Needs
from coach_rl.extensions.studies.scores import Curve, is_success
from coach_rl.extensions.studies.sweeps.search_space import (
    Overrides,
    SearchSpace,
    check_search,
    parse_search,
)
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.sessions.session import DEFAULT_ROOT

Sampler = Literal["tpe", "random", "grid"]
Pruner = Literal["median", "halving", "none"]


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
    """Method that chooses what to try next; `tpe` is that of Bergstra et al. (2011)."""
    pruner: Pruner = "median"
    """Rule by which trials end early; `halving` is that of Li et al. (2020, arXiv:1810.05934)."""
    confirmed: int = 3
    """Number of the best trials that train again from fresh seeds; 0 for none."""
    fresh_seeds: int = 5
    """Number of those seeds."""
    needs: Needs = field(default_factory=Needs)
    """Needs of each run."""

    def __post_init__(self) -> None:
        require(
            self.trials is None or self.trials >= 1, f"trials must be 1 or more, got {self.trials}"
        )
        require(self.confirmed >= 0, f"confirmed must be 0 or more, got {self.confirmed}")
        require(
            self.fresh_seeds >= 2 or not self.confirmed,
            f"fresh_seeds must be 2 or more, since one run has no spread, got {self.fresh_seeds}",
        )

    @property
    def folder(self) -> Path:
        """The folder of its journal, its report and its runs."""
        return self.root / self.name

    def job(self, overrides: Overrides, *, seed: int | None = None, **labels: str) -> Job:
        """One of its runs.

        Args:
            overrides: Its changes besides those that all runs have in common.
            seed: Its seed; None for the sweep's.
            labels: Its names in the manifest, besides the sweep's.
        """
        return Job(
            preset=self.preset,
            overrides={**self.overrides, **overrides},
            task=self.task if seed is None else replace(self.task, seed=seed),
            name=self.name,
            root=self.root,
            labels={"sweep": self.name, **labels},
            needs=self.needs,
            tensorboard=False,
        )


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric and its direction: the aim of a search."""

    name: str
    """An evaluation's metric: `reward_mean`, `low/goal_share`, ..."""
    best: Literal["largest", "smallest"]

    @property
    def sign(self) -> float:
        """1.0 where larger values are better, -1.0 where smaller ones are."""
        return 1.0 if self.best == "largest" else -1.0

    def of(self, metrics: Mapping[str, float]) -> float:
        """Its value; no success is reported where there was none yet."""
        missing = 0.0 if is_success(self.name) else math.nan
        return float(metrics.get(self.name, missing))

    def values(self, curve: Curve) -> list[float]:
        """Its values at a run's evaluations."""
        values = curve.metrics.get(self.name, np.full(len(curve), self.of({})))
        return [float(value) for value in values]


def search_space_of(sweep: Sweep, preset: Preset) -> SearchSpace:
    """The search space, tried on the preset.

    Raises:
        ConfigurationError: There is none, or it doesn't fit.
    """
    space = parse_search(sweep.search or preset.search)
    require(
        bool(space),
        f"the search space is empty, and the preset {preset.reference.name} has no search space of "
        'its own; give one with --search "learning_rate=log(1e-4, 1e-2)"',
    )
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
            "checkpoints.best_of is None, so no metric ranks the trials; give one with --metric"
        )
    if name == AUTO:
        target = parameters.validation
        is_success = target is not None and target.success_rate is not None
        name = "success_rate" if is_success else "reward_mean"
    return Metric(name=name, best=policy.best_is)
