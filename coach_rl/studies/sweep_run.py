"""Running a sweep: trials until there are enough, then fresh seeds."""

import math
import os
import time
from concurrent.futures import FIRST_COMPLETED, wait
from dataclasses import dataclass
from pathlib import Path

from coach_rl.configuration.overrides import overrides_json, said
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.sessions.stop_requests import Interrupted, StopRequests
from coach_rl.studies.conduct import LOOK_SECONDS, Track, stop_all
from coach_rl.studies.executors import Executor
from coach_rl.studies.fresh_seeds import confirm
from coach_rl.studies.job_run import Announce, identity
from coach_rl.studies.scores import read_scores
from coach_rl.studies.search_space import said_space
from coach_rl.studies.stop_note import ask_to_stop
from coach_rl.studies.sweep import Metric, Sweep, SweepResult, metric_of, search_space_of
from coach_rl.studies.trials import SweepSettings, Trial, Trials

DEFAULT_TRIALS = 40


def run_sweep(sweep: Sweep, executor: Executor, *, announce: Announce | None = None) -> SweepResult:
    """Run a sweep to its end, or continue it.

    Trials that a process left when it was killed continue from their last checkpoint.

    Args:
        sweep: The search.
        executor: Gives the runs to processes; closed by whoever made it, and by a signal.
        announce: Called with a line when a trial ends; None for nobody.

    Raises:
        ConfigurationError: The search space doesn't fit the preset, or the folder holds another
            sweep. Nothing has been written then.
        Interrupted: By Ctrl-C, SIGTERM or SIGHUP, after all runs have saved themselves.
    """
    announce = announce or _ignore
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
        "search": said_space(space),
        "changes": overrides_json(sweep.overrides),
        "metric": metric.name,
        "shipped setting": identity(sweep.job({}, {}))[:16],
    }
    trials = Trials(sweep.folder, space, settings, description)
    try:
        _Searching(sweep, trials, metric, executor, announce).to_the_end()
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
    """A trial that this process conducts."""

    trial: Trial
    track: Track
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

    def to_the_end(self) -> None:
        """Make trials until there are as many as asked for, and all have ended."""
        with StopRequests():
            try:
                while self._is_going_on():
                    self._look()
            except KeyboardInterrupt as error:
                stop_all(self._executor, self._announce)
                done = sum(trial.state != "running" for trial in self._trials.all())
                raise Interrupted(
                    f"stopped; {done} of {self._most} trials are done, and the same "
                    "command continues with the others",
                    signal=getattr(error, "signal", 2),
                ) from None

    def _is_going_on(self) -> bool:
        """Give out what there is to do; False once every trial has ended."""
        for trial in self._trials.left_over():
            self._announce(f"trial {trial.number} was left unfinished; it continues")
            self._take_on(trial)
        while len(self._live) < self._executor.slots:
            begun = self._trials.begin(self._most)
            if begun is None:
                break
            self._take_on(begun)
        return any(trial.state == "running" for trial in self._trials.all())

    def _take_on(self, trial: Trial) -> None:
        if self._leader(trial) is not None:
            if not self._has_followed(trial):
                self._repeated.append(trial)
            return
        track = Track(self._sweep.job(trial.overrides, {"trial": str(trial.number)}))
        track.resolve()
        track.give_out(self._executor)
        self._live.append(_Live(trial, track))

    def _leader(self, trial: Trial) -> Trial | None:
        """The first trial that tries the same; None where this one does."""
        first = next(each for each in self._trials.all() if each.overrides == trial.overrides)
        return None if first.number == trial.number else first

    def _look(self) -> None:
        """Wait for something to happen, and see what."""
        futures = [live.track.future for live in self._live if live.track.future is not None]
        if futures and len(futures) == len(self._live):
            wait(futures, timeout=LOOK_SECONDS, return_when=FIRST_COMPLETED)
        elif not self._live:  # other processes have what is running
            time.sleep(LOOK_SECONDS)
        self._live = [live for live in self._live if not self._has_ended(live)]
        self._repeated = [trial for trial in self._repeated if not self._has_followed(trial)]

    def _has_ended(self, live: _Live) -> bool:
        """Look at a trial's run; conclude the trial if it is over or should be."""
        number = live.trial.number
        live.track.take_in(self._executor)
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
        ask_to_stop(folder, f"{text}, as trial {number} of the sweep {self._sweep.name}")
        self._trials.conclude(number, "pruned")
        self._announce(f"trial {number} ({said(self._trials.all()[number].overrides)}) {text}")
        return True

    def _conclude(self, number: int, *, value: float = math.nan, error: str = "") -> None:
        if not error and not math.isfinite(value):
            error = f"its last evaluation has no finite {self._metric.name}"
        if error:
            self._trials.conclude(number, "failed", error=error)
            tried = said(self._trials.all()[number].overrides)
            self._announce(f"trial {number} ({tried}) failed: {error}")
        else:
            self._trials.conclude(number, "done", value=value)
            best = self._trials.best()[0]
            of_all = "the best so far" if best.number == number else f"best: trial {best.number}"
            tried = said(self._trials.all()[number].overrides)
            self._announce(f"trial {number} ({tried}): {self._metric.name} {value:.4g}, {of_all}")

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


def _ignore(_text: str) -> None:
    """Say nothing."""
