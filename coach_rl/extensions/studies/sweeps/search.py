"""Running a sweep: its trials, and the best settings on fresh seeds.

with closing(LocalPool(2)) as pool:
    result = run_sweep(sweep, pool)
"""

import math
import time
from collections.abc import Mapping
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from coach_rl.configuration.overrides import format_overrides
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.extensions.studies.comparison import Comparison
from coach_rl.extensions.studies.conduct import POLL_SECONDS, JobTracker, stop_all
from coach_rl.extensions.studies.job import Announce, Executor
from coach_rl.extensions.studies.scores import read_scores, write_stop_note
from coach_rl.extensions.studies.sweeps.fresh_seeds import FreshSeeds, confirm
from coach_rl.extensions.studies.sweeps.search_space import SearchSpace, drawn_overrides
from coach_rl.extensions.studies.sweeps.sweep import Metric, Sweep, metric_of, search_space_of
from coach_rl.extensions.studies.sweeps.trials import RUN, Trials
from coach_rl.sessions.stop_requests import Interrupted, StopRequests

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

_LENGTH = ("schedule.training", "steps")
"""Names of the length of a run: the path, and the name on panels that have it."""


@dataclass(frozen=True, kw_only=True)
class SweepResult:
    """The result of a sweep; its trials are Optuna's `FrozenTrial`s."""

    sweep: Sweep
    space: SearchSpace
    metric: Metric
    trials: tuple["FrozenTrial", ...]
    """All of them, by number."""
    best: tuple["FrozenTrial", ...]
    """Those that are done, the best first, without repetitions of an earlier one."""
    importances: Mapping[str, float]
    """The weight of each setting, in shares of 1; empty where there are too few trials."""
    fresh: FreshSeeds | None
    """The shipped setting and the best trials on fresh seeds; None without confirmation."""

    @property
    def winner(self) -> Comparison | None:
        """The trial with the best scores on fresh seeds; None where there are none."""
        tried = self.fresh.comparisons if self.fresh else ()
        return max(tried, key=lambda each: self.metric.sign * each.difference.value, default=None)

    @property
    def recommended(self) -> str:
        """The best setting on fresh seeds, or else of the trials, as `-cp` takes it.

        Where the shipped setting is the best, only the changes that all runs had are left, if any.
        The length of the sweep's runs is left out, since trials are often shorter than a run that
        trains to the end.
        """
        best = drawn_overrides(self.best[0].params)
        if self.fresh is not None and self.winner is not None:
            best = {} if self.is_shipped_best else self.fresh.settings[self.winner.group]
        common = {name: of for name, of in self.sweep.overrides.items() if name not in _LENGTH}
        return format_overrides({**common, **best})

    @property
    def is_shipped_best(self) -> bool:
        """True if even the best trial loses to the shipped setting on fresh seeds."""
        return self.winner is not None and self.verdict(self.winner) == "loses to"

    def verdict(self, comparison: Comparison) -> Literal["beats", "ties with", "loses to"]:
        """The result of a trial on fresh seeds; it ties where no difference is established."""
        found = comparison.difference
        if not found.is_clear:
            return "ties with"
        return "beats" if self.metric.sign * found.value > 0 else "loses to"


def run_sweep(sweep: Sweep, executor: Executor, *, announce: Announce | None = None) -> SweepResult:
    """Run a sweep to its end, or continue it.

    Trials that a process left when it was killed continue from their last checkpoint.

    Args:
        sweep: The search.
        executor: Runs the trials; closed by its owner, and by a signal.
        announce: Called with a line when the sweep begins, and when a trial ends.

    Raises:
        ConfigurationError: The search space doesn't fit the preset, or the folder holds another
            sweep. Nothing has been written then.
        Interrupted: By Ctrl-C, SIGTERM or SIGHUP, after all runs have saved themselves.
    """
    announce = announce or (lambda _text: None)
    preset = load_preset(find_preset(sweep.preset))
    space = search_space_of(sweep, preset)
    metric = metric_of(sweep, preset)
    trials = Trials(sweep, space, metric)
    try:
        announce(f"sweep {sweep.name}: {trials.most} trials in the folder {sweep.folder}")
        _Search(trials, executor, announce).run()
        return SweepResult(
            sweep=sweep,
            space=space,
            metric=metric,
            trials=tuple(trials.all()),
            best=tuple(trials.best()),
            importances=trials.importances(),
            fresh=confirm(trials, executor, announce),
        )
    finally:
        trials.close()


class _Search:
    """The part of a sweep that makes trials."""

    def __init__(self, trials: Trials, executor: Executor, announce: Announce) -> None:
        self._trials = trials
        self._executor = executor
        self._announce = announce
        self._live: dict[int, JobTracker] = {}
        """The runs of the trials of this process, by number."""
        self._read: dict[int, int] = {}
        """Bytes of their logs that have been read."""

    def run(self) -> None:
        """Run trials until all of the requested number have ended."""
        with StopRequests():
            try:
                while self._start_trials():
                    self._poll()
            except KeyboardInterrupt as error:
                stop_all(self._executor, self._announce)
                done = len(self._trials.all()) - len(self._trials.running())
                raise Interrupted(
                    f"stopped; {done} of {self._trials.most} trials are done, and the same "
                    "command continues with the others",
                    signal=getattr(error, "signal", 2),
                ) from None

    def _start_trials(self) -> bool:
        """Start as many trials as there are slots; False once every trial has ended."""
        for trial in self._trials.left_over():
            self._announce(f"trial {trial.number} was left unfinished; it continues")
            self._start(trial)
        while len(self._live) < self._executor.slots and (begun := self._trials.begin()):
            if begun.state.is_finished():
                self._print(begun.number, "repeats an earlier trial and has its result")
            else:
                self._start(begun)
        return bool(self._trials.running())

    def _start(self, trial: "FrozenTrial") -> None:
        job = self._trials.sweep.job(drawn_overrides(trial.params), trial=str(trial.number))
        track = JobTracker(job)
        track.resolve()
        track.submit(self._executor)
        self._live[trial.number] = track

    def _poll(self) -> None:
        """Wait for changes of trials, and record them."""
        futures = [track.future for track in self._live.values() if track.future is not None]
        if futures and len(futures) == len(self._live):
            wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
        elif not self._live:  # other processes have what is running
            time.sleep(POLL_SECONDS)
        self._live = {
            number: track for number, track in self._live.items() if not self._has_ended(number)
        }

    def _has_ended(self, number: int) -> bool:
        """Read a trial's run; conclude the trial if it is over or should be."""
        track = self._live[number]
        track.collect(self._executor)
        folder = track.status().folder
        if folder is not None:
            self._trials.note(number, RUN, folder.name)
            if self._should_end(number, folder):
                self._prune(number, folder)
                return True
        result = track.result
        if result is None:
            return False
        if result.state != "done" or result.folder is None:
            self._fail(number, result.error or f"its run is {result.state}")
        else:
            self._finish(number, read_scores(result.folder).final)
        return True

    def _should_end(self, number: int, folder: Path) -> bool:
        """True if the evaluations in a run's log, where it has changed, should end the trial."""
        log = folder / "log.jsonl"
        size = log.stat().st_size if log.exists() else 0
        if size == self._read.get(number, 0):
            return False
        self._read[number] = size
        values = self._trials.metric.values(read_scores(folder).curve)
        return self._trials.report(number, values)

    def _prune(self, number: int, folder: Path) -> None:
        last, value = max(self._trials.all()[number].intermediate_values.items())
        text = f"pruned at evaluation {last}, {self._trials.metric.name} {value:.4g}"
        write_stop_note(folder, f"{text}, as trial {number} of the sweep {self._trials.sweep.name}")
        self._trials.conclude(number)
        self._print(number, text)

    def _finish(self, number: int, final: Mapping[str, float]) -> None:
        metric = self._trials.metric
        value = metric.of(final)
        if not math.isfinite(value):
            return self._fail(number, f"its last evaluation has no finite {metric.name}")
        self._trials.conclude(number, value=value)
        best = self._trials.best()[0].number
        self._print(number, f"{metric.name} {value:.4g}, best: trial {best}")

    def _fail(self, number: int, error: str) -> None:
        self._trials.conclude(number, error=error)
        self._print(number, f"failed: {error}")

    def _print(self, number: int, text: str) -> None:
        tried = format_overrides(drawn_overrides(self._trials.all()[number].params))
        self._announce(f"trial {number} ({tried}): {text}")
