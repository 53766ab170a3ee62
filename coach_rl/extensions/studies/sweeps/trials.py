"""The trials of a sweep, past and next, in Optuna's journal.

Several processes may work on one sweep. What a trial tries depends only on the sweep's seed, its
number and the trials before it, so a sweep that is killed and started again continues with what it
would have tried. A trial appears in the journal with all it tries at once, and is held by a lock
that ends with its process; one without a holder is taken over.
"""

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock, Timeout

from coach_rl.configuration.file_writing import require_no_links, separated
from coach_rl.configuration.overrides import overrides_json
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import CheckpointError, ConfigurationError, require
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.studies.job import identity
from coach_rl.extensions.studies.sweeps.search_space import (
    SearchSpace,
    format_space,
    grid_of,
    imported_optuna,
    rounded,
)
from coach_rl.extensions.studies.sweeps.sweep import Metric, Sweep

if TYPE_CHECKING:
    from optuna.study import Study
    from optuna.trial import FrozenTrial

JOURNAL = "sweep.journal"
"""The file in a sweep's folder that holds it all; Optuna and its dashboard can read it."""
RUN = "run"
"""The user attribute of a trial with the name of its run's folder."""
ERROR = "error"
"""The user attribute of a failed trial with the reason, one line."""
DEFAULT_TRIALS = 40


class Trials:
    """The trials of one sweep, as Optuna's `FrozenTrial`s.

    Args:
        sweep: The sweep; its folder is made if it isn't there.
        space: What is varied.
        metric: What is searched for.

    Raises:
        ConfigurationError: Optuna isn't installed, the sweep in the folder is another one, its
            sampler cannot cover the space, or the folder cannot be written.
    """

    def __init__(self, sweep: Sweep, space: SearchSpace, metric: Metric) -> None:
        self._optuna = imported_optuna()
        self.sweep = sweep
        self.space = space
        self.metric = metric
        self._grid = grid_of(space) if sweep.sampler == "grid" else None
        self._direction = "maximize" if metric.sign > 0 else "minimize"
        self._held: dict[int, FileLock] = {}
        try:
            sweep.folder.mkdir(parents=True, exist_ok=True)
            require_no_links(sweep.folder)
            self._lock = self.lock("journal")
            """Held by a process that opens the sweep, begins a trial or writes into the journal."""
            with self._lock:
                self._study = self._opened(separated(sweep.folder / JOURNAL))
                self._require_same()
        except OSError as error:
            raise ConfigurationError(
                f"cannot write to the sweep's folder: {error}; choose another with -ep"
            ) from error

    @property
    def most(self) -> int:
        """Number of trials that the sweep makes, of any state and process."""
        combinations = None if self._grid is None else math.prod(map(len, self._grid.values()))
        wanted = self.sweep.trials or combinations or DEFAULT_TRIALS
        return min(wanted, combinations or wanted)

    def lock(self, name: str) -> FileLock:
        """A lock of the sweep's folder, which the system releases when its process ends."""
        return FileLock(separated(self.sweep.folder / f".{name}_lock"))

    def all(self) -> list["FrozenTrial"]:
        """Every trial so far, by number."""
        return self._study.get_trials(deepcopy=False)

    def running(self) -> list["FrozenTrial"]:
        """The trials that have not ended, of any process."""
        return [trial for trial in self.all() if not trial.state.is_finished()]

    def best(self) -> list["FrozenTrial"]:
        """The trials that are done, the best first; of equal ones the earlier.

        Those that repeat an earlier one, and have its result, are left out.
        """
        done: dict[frozenset[tuple[str, Any]], FrozenTrial] = {}
        for trial in self.all():
            if trial.state.name == "COMPLETE":
                done.setdefault(frozenset(trial.params.items()), trial)
        return sorted(done.values(), key=lambda trial: -self.metric.sign * (trial.value or 0.0))

    def begin(self) -> "FrozenTrial | None":
        """Begin a trial and hold it, or end it as the earlier one that tries the same.

        Returns:
            None where there are enough, or where all that is drawn is being tried already.
        """
        with self._lock:
            before = self.all()
            if len(before) >= self.most:
                return None
            for attempt in range(10):  # draws that would repeat a running trial don't count
                drawn = self._drawn(before, attempt)
                trial = next((each for each in before if each.params == drawn), None)
                if trial is None or trial.state.is_finished():
                    break
            else:
                return None
            if trial is None:
                self._hold(len(before))
                trial = self._optuna.trial.create_trial(
                    state=self._optuna.trial.TrialState.RUNNING,
                    params=drawn,
                    distributions=self.space,
                )
            self._study.add_trial(trial)
            return self.all()[len(before)]

    def left_over(self) -> list["FrozenTrial"]:
        """Unfinished trials that no process holds; this one holds them from now on."""
        new = [each.number for each in self.running() if self._hold(each.number)]
        return [each for each in self.running() if each.number in new]

    def report(self, number: int, values: Sequence[float]) -> bool:
        """Note the evaluations of a trial; whether it should end.

        Args:
            number: The trial.
            values: All evaluations of its run so far; those after one that ends it don't count.
        """
        live = self._live(number)
        known = len(self.all()[number].intermediate_values)
        if known and live.should_prune():
            return True
        for index in range(known, len(values)):
            live.report(values[index], index + 1)
            if live.should_prune():
                return True
        return False

    def note(self, number: int, attribute: str, value: str) -> None:
        """Note the run of a trial, or its error, unless it is known already."""
        if self.all()[number].user_attrs.get(attribute) != value:
            self._live(number).set_user_attr(attribute, value)

    def conclude(self, number: int, *, value: float | None = None, error: str = "") -> None:
        """End a trial and release it.

        Args:
            number: The trial.
            value: Its result; None where it failed, or should end early.
            error: Why it failed, one line.
        """
        states = self._optuna.trial.TrialState
        if error:
            self.note(number, ERROR, error)
        ended = states.FAIL if error else states.PRUNED if value is None else states.COMPLETE
        self._study.tell(number, value, ended)
        self._held.pop(number).release()

    def importances(self) -> dict[str, float]:
        """The part of each setting in whether a trial is among the best, in shares of 1.

        By PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255), the best being five trials or a
        tenth, whichever is more. Empty where fewer than ten different trials are done.
        """
        done = sorted(self.best(), key=lambda trial: trial.number)
        if len(done) < 10:
            return {}
        study = self._optuna.create_study(direction=self._direction)
        study.add_trials(done)
        importance = self._optuna.importance
        evaluator = importance.PedAnovaImportanceEvaluator(target_quantile=max(0.1, 5 / len(done)))
        return dict(importance.get_param_importances(study, evaluator=evaluator))

    def close(self) -> None:
        """Release the trials that are held, which others may take over."""
        while self._held:
            self._held.popitem()[1].release()

    def _live(self, number: int) -> Any:
        """A trial as Optuna's `Trial`, which can be written to."""
        return self._optuna.trial.Trial(self._study, self.all()[number]._trial_id)

    def _drawn(self, before: list["FrozenTrial"], attempt: int) -> dict[str, Any]:
        """The values that the next trial tries: by the seed, its number and those before it."""
        samplers = self._optuna.samplers
        seed = self.sweep.task.seed
        own_seed = integer_seed(seed, "sweep", len(before), attempt)
        match self.sweep.sampler:
            case "tpe":
                sampler = samplers.TPESampler(seed=own_seed)
            case "random":
                sampler = samplers.RandomSampler(seed=own_seed)
            case "grid":  # whose order is one for all trials
                sampler = samplers.GridSampler(self._grid, seed=integer_seed(seed, "grid"))
        study = self._optuna.create_study(direction=self._direction, sampler=sampler)
        study.add_trials(before)
        return rounded(self.space, study.ask(self.space).params)

    def _pruner(self) -> Any:
        pruners = self._optuna.pruners
        first = 3  # evaluation that may end a run: those before are unreliable
        match self.sweep.pruner:
            case "median":
                return pruners.MedianPruner(n_warmup_steps=first)
            case "halving":
                return pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=3)
            case "none":
                return pruners.NopPruner()

    def _opened(self, journal: Path) -> "Study":
        """The study in the journal, new or as it was left."""
        _drop_torn_line(journal)
        backends = self._optuna.storages.journal
        try:
            study: Study = self._optuna.create_study(
                storage=self._optuna.storages.JournalStorage(
                    backends.JournalFileBackend(str(journal), lock_obj=self._lock)
                ),
                study_name="sweep",
                pruner=self._pruner(),
                direction=self._direction,
                load_if_exists=True,
            )
        except (ValueError, KeyError) as error:
            raise CheckpointError(
                f"{journal} is damaged: {error}; restore it from a copy, or begin another sweep "
                "with -e NAME"
            ) from error
        return study

    def _require_same(self) -> None:
        """Record what decides the trials, or raise if the journal has something else."""
        sweep = self.sweep
        description: Json = {
            "preset": find_preset(sweep.preset).name,
            "search": format_space(self.space),
            "changes": overrides_json(sweep.overrides),
            "metric": self.metric.name,
            "best": self.metric.best,
            "sampler": sweep.sampler,
            "pruner": sweep.pruner,
            "seed": sweep.task.seed,
            "shipped setting": identity(sweep.job({}))[:16],
        }
        then: Json = self._study.user_attrs.get("description")
        if then is None:
            self._study.set_user_attr("description", description)
            return
        for what, value in description.items():
            require(
                then.get(what) == value,
                f"the sweep {sweep.folder} was begun with {what} {then.get(what)}, now it is "
                f"{value}; give the same again, or begin another sweep with -e NAME",
            )

    def _hold(self, number: int) -> bool:
        """Hold a trial until it is concluded; False where it is held, by whatever process."""
        if number in self._held:
            return False
        lock = self.lock(f"trial_{number}")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            return False
        self._held[number] = lock
        return True


def _drop_torn_line(journal: Path) -> None:
    """Drop a last line that was not written to its end, as on a full disk."""
    with journal.open("ab+") as file:
        file.seek(0)
        text = file.read()
        end = text.rfind(b"\n") + 1
        if end < len(text):
            file.truncate(end)
            os.fsync(file.fileno())
