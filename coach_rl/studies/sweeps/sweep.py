"""Sweeps: a search for better settings of a preset, and a check of what was found.

    sweep = Sweep(preset="Pendulum_SAC", search="learning_rate=log(1e-4, 3e-3)", name="rates")
    with closing(LocalPool(2)) as pool:
        result = run_sweep(sweep, pool)

Each trial is an ordinary run. Its evaluations, read from its log, go to the pruner; its evaluation
at the end is its value. The best of many trials was lucky as well as good, so the best few and the
preset as it is train again from fresh seeds, and only those scores are compared.
"""

import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coach_rl.configuration.overrides import format_overrides, overrides_json
from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.sessions.session import DEFAULT_ROOT
from coach_rl.sessions.stop_requests import Interrupted, StopRequests
from coach_rl.studies.conduct import POLL_SECONDS, JobTracker, conduct, stop_all
from coach_rl.studies.job import Announce, Executor, Job, Needs, identity
from coach_rl.studies.runs import Row, RunFrame, difference_of
from coach_rl.studies.scores import (
    failures_counted,
    is_success,
    read_scores,
    write_stop_note,
)
from coach_rl.studies.statistics import CONFIDENCE, Difference
from coach_rl.studies.sweeps.search_space import (
    SearchSpace,
    check_search,
    format_space,
    parse_search,
)
from coach_rl.studies.sweeps.trials import Pruner, Sampler, SweepSettings, Trial, Trials
from coach_rl.telemetry.figures import AUTO

Verdict = Literal["beats", "ties", "loses"]
"""Result of a comparison with the shipped setting: it ties where no difference is established."""

SHIPPED = "shipped"
"""The variant with default values of the searched parameters."""
_LENGTH = ("schedule.training", "steps")
"""Names of the length of a run: the path, and the name on panels that have it."""


DEFAULT_TRIALS = 40


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
            f"fresh_seeds must be 2 or more, since one run has no spread, got {self.fresh_seeds}",
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
    """[n], one for each seed that was completed."""
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
    """The shipped setting and the best trials on fresh seeds; empty without confirmation."""

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
        return format_overrides({
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
            "checkpoints.best_of is None, so no metric ranks the trials; give one with --metric"
        )
    if name == AUTO:
        target = parameters.validation
        is_success = target is not None and target.success_rate is not None
        name = "success_rate" if is_success else "reward_mean"
    return Metric(name=name, is_largest_best=policy.best_is == "largest")


def run_sweep(sweep: Sweep, executor: Executor, *, announce: Announce | None = None) -> SweepResult:
    """Run a sweep to its end, or continue it.

    Trials that a process left when it was killed continue from their last checkpoint.

    Args:
        sweep: The search.
        executor: Runs the trials; closed by its owner, and by a signal.
        announce: Called with a line when a trial ends.

    Raises:
        ConfigurationError: The search space doesn't fit the preset, or the folder holds another
            sweep. Nothing has been written then.
        Interrupted: By Ctrl-C, SIGTERM or SIGHUP, after all runs have saved themselves.
    """
    announce = announce or (lambda _text: None)
    preset = load_preset(find_preset(sweep.preset))
    space = search_space_of(sweep, preset)
    metric = metric_of(sweep, preset)
    settings = SweepSettings(
        sampler=sweep.sampler,
        pruner=sweep.pruner,
        seed=sweep.task.seed,
        is_largest_best=metric.is_largest_best,
    )
    description = {
        "preset": preset.reference.name,
        "search": format_space(space),
        "changes": overrides_json(sweep.overrides),
        "metric": metric.name,
        "shipped setting": identity(sweep.job({}, {}))[:16],
    }
    trials = Trials(sweep.folder, space, settings, description)
    try:
        _Searching(sweep, trials, metric, executor, announce).run()
        best = tuple(trials.best())
        confirmations = confirm(sweep, metric, best[: sweep.confirmed], executor, announce)
    finally:
        trials.close()
    return SweepResult(
        sweep=sweep,
        space=space,
        metric=metric,
        trials=tuple(trials.all()),
        best=best,
        importances=trials.importances(),
        confirmations=confirmations,
    )


@dataclass
class _Live:
    """A trial of this process."""

    trial: Trial
    track: JobTracker
    seen: tuple[int, int] | None = None
    """Size and time of its log when it was last read; None before."""


class _Searching:
    """The part of a sweep that makes trials."""

    def __init__(
        self,
        sweep: Sweep,
        trials: Trials,
        metric: Metric,
        executor: Executor,
        announce: Announce,
    ) -> None:
        self._sweep, self._trials, self._metric = sweep, trials, metric
        self._executor, self._announce = executor, announce
        self._most = sweep.trials or trials.combinations or DEFAULT_TRIALS
        if trials.combinations is not None:
            self._most = min(self._most, trials.combinations)
        self._live: list[_Live] = []
        self._repeated: list[Trial] = []
        """Trials that try what an earlier one tries already, and share its end."""

    def run(self) -> None:
        """Run trials until all of the requested number have ended."""
        with StopRequests():
            try:
                while self._start_trials():
                    self._poll()
            except KeyboardInterrupt as error:
                stop_all(self._executor, self._announce)
                done = sum(trial.state != "running" for trial in self._trials.all())
                raise Interrupted(
                    f"stopped; {done} of {self._most} trials are done, and the same "
                    "command continues with the others",
                    signal=getattr(error, "signal", 2),
                ) from None

    def _start_trials(self) -> bool:
        """Start as many trials as there are slots; False once every trial has ended."""
        for trial in self._trials.left_over():
            self._announce(f"trial {trial.number} was left unfinished; it continues")
            self._start(trial)
        while len(self._live) < self._executor.slots:
            begun = self._trials.begin(self._most)
            if begun is None:
                break
            self._start(begun)
        return any(trial.state == "running" for trial in self._trials.all())

    def _start(self, trial: Trial) -> None:
        if self._leader(trial) is not None:
            if not self._has_followed(trial):
                self._repeated.append(trial)
            return
        track = JobTracker(self._sweep.job(trial.overrides, {"trial": str(trial.number)}))
        track.resolve()
        track.submit(self._executor)
        self._live.append(_Live(trial, track))

    def _leader(self, trial: Trial) -> Trial | None:
        """The first trial that tries the same; None where this one does."""
        first = next(each for each in self._trials.all() if each.overrides == trial.overrides)
        return None if first.number == trial.number else first

    def _poll(self) -> None:
        """Wait for changes of trials, and record them."""
        futures = [live.track.future for live in self._live if live.track.future is not None]
        if futures and len(futures) == len(self._live):
            wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        elif not self._live:  # other processes have what is running
            time.sleep(POLL_SECONDS)
        self._live = [live for live in self._live if not self._has_ended(live)]
        self._repeated = [trial for trial in self._repeated if not self._has_followed(trial)]

    def _has_ended(self, live: _Live) -> bool:
        """Read a trial's run; conclude the trial if it is over or should be."""
        number = live.trial.number
        live.track.collect(self._executor)
        folder = live.track.status().folder
        if folder is not None:
            self._trials.note_run(number, folder.name)
            values = self._new_evaluations(live, folder)
            if values is not None and self._trials.report(number, values):
                return self._prune(number, folder)
        result = live.track.result
        if result is None:
            return False
        if result.state != "done" or result.folder is None:
            self._conclude(number, error=result.error or f"its run is {result.state}")
        else:
            self._conclude(number, value=self._metric.of(read_scores(result.folder).final))
        return True

    def _new_evaluations(self, live: _Live, folder: Path) -> list[float] | None:
        """All evaluations of a run; None where its log has not changed."""
        try:
            now = os.stat(folder / "log.jsonl")
        except FileNotFoundError:
            return None
        if live.seen == (now.st_size, now.st_mtime_ns):
            return None
        live.seen = (now.st_size, now.st_mtime_ns)
        curve = read_scores(folder).curve
        return self._metric.curve(curve.metrics, len(curve))

    def _prune(self, number: int, folder: Path) -> bool:
        seen = self._trials.all()[number].evaluations
        text = f"pruned at evaluation {len(seen)}, {self._metric.name} {seen[-1]:.4g}"
        write_stop_note(folder, f"{text}, as trial {number} of the sweep {self._sweep.name}")
        self._trials.conclude(number, "pruned")
        self._announce(f"{self._tried(number)} {text}")
        return True

    def _tried(self, number: int) -> str:
        """A trial and its values, for messages."""
        return f"trial {number} ({format_overrides(self._trials.all()[number].overrides)})"

    def _conclude(self, number: int, *, value: float = math.nan, error: str = "") -> None:
        if not error and not math.isfinite(value):
            error = f"its last evaluation has no finite {self._metric.name}"
        if error:
            self._trials.conclude(number, "failed", error=error)
            self._announce(f"{self._tried(number)} failed: {error}")
        else:
            self._trials.conclude(number, "done", value=value)
            best = self._trials.best()[0]
            of_all = "the best so far" if best.number == number else f"best: trial {best.number}"
            self._announce(f"{self._tried(number)}: {self._metric.name} {value:.4g}, {of_all}")

    def _has_followed(self, trial: Trial) -> bool:
        """End a trial as the one ended that tries the same."""
        leader = self._leader(trial)
        assert leader is not None
        if leader.state == "running":
            return False
        self._trials.report(trial.number, list(leader.evaluations))
        self._trials.note_run(trial.number, leader.run)
        value = leader.value if leader.state == "done" else None
        self._trials.conclude(trial.number, leader.state, value=value, error=leader.error)
        self._announce(f"trial {trial.number} tries the same as trial {leader.number}")
        return True


def confirm(
    sweep: Sweep, metric: Metric, best: Sequence[Trial], executor: Executor, announce: Announce
) -> tuple[Confirmation, ...]:
    """Train the best and the shipped setting from seeds that no trial has seen."""
    if not best:
        return ()
    settings: dict[str, Mapping[str, object]] = {SHIPPED: {}}
    settings |= {f"trial {trial.number}": trial.overrides for trial in best}
    first = sweep.task.seed + 1
    seeds = range(first, first + sweep.fresh_seeds)
    announce(
        f"confirming: {', '.join(settings)} on the fresh seeds {seeds[0]} to {seeds[-1]}, "
        f"{len(settings) * len(seeds)} runs"
    )
    jobs = [
        sweep.job(overrides, {"variant": variant}, seed=seed)
        for seed in seeds
        for variant, overrides in settings.items()
    ]
    with _only_one_confirms(sweep.folder, announce):
        results = conduct(jobs, executor, announce=announce)
    counted = [metric.name] if is_success(metric.name) else []
    rows = []
    for job, result in zip(jobs, results, strict=True):
        variant = job.labels["variant"]
        if result.state == "done" and result.folder is not None:
            run = read_scores(result.folder)
            evaluation = failures_counted(run.final, counted)
            rows.append(Row(group=variant, run=run, evaluation=evaluation))
        else:
            announce(f"{variant}, seed {job.task.seed}, failed: {result.error}")
    frame = RunFrame(groups=tuple(settings), rows=tuple(rows))
    scored = {each.group: each for each in frame.scored(metric.name)}
    confidence = 1 - (1 - CONFIDENCE) / len(best)
    confirmations = []
    for variant, overrides in settings.items():
        own, shipped, lead = scored.get(variant), scored.get(SHIPPED), None
        if own is not None and shipped is not None and variant != SHIPPED:
            lead = difference_of(
                metric.name,
                own.scores,
                shipped.scores,
                episodes=(own.episodes, shipped.episodes),
                confidence=confidence,
            )
        scores = np.empty(0) if own is None else own.scores
        confirmations.append(
            Confirmation(
                variant=variant,
                overrides=overrides,
                scores=scores,
                episodes=None if own is None else own.episodes,
                failed=len(seeds) - len(scores),
                difference=lead,
            )
        )
    return tuple(confirmations)


@contextmanager
def _only_one_confirms(folder: Path, announce: Announce) -> Iterator[None]:
    """One of several processes runs the fresh seeds; the others wait and find them done."""
    place = folder / ".trials" / "fresh"
    place.mkdir(parents=True, exist_ok=True)
    is_announced = False
    while True:
        try:
            with locked(place):
                yield
            return
        except RunInUseError:
            if not is_announced:
                announce("another process runs the fresh seeds; waiting for it")
            is_announced = True
            time.sleep(POLL_SECONDS)
