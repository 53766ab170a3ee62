"""The trials of a sweep, past and next, in Optuna's journal.

    trials = Trials(folder, space, settings)
    while (trial := trials.begin(most=40)) is not None:
        ...
        trials.conclude(trial.number, "done", value=-150.0)

Several processes may work on one sweep. What a trial tries depends only on the sweep's seed, its
number and the trials before it, so a sweep that is killed and started again continues with what it
would have tried. A trial appears in the journal with all it tries at once, and is held by a lock
that ends with its process; one without a holder is taken over.
"""

import math
import os
import warnings
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Literal

from filelock import FileLock

from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    how_to_install,
    require,
)
from coach_rl.core.file_writing import require_no_links, separated
from coach_rl.core.seeding import integer_seed
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.studies.sweeps.search_space import Drawn, Overrides, SearchSpace

if TYPE_CHECKING:
    from optuna.pruners import BasePruner
    from optuna.samplers import BaseSampler
    from optuna.study import Study
    from optuna.trial import FrozenTrial
    from optuna.trial import Trial as LiveTrial


JOURNAL = "sweep.journal"
"""The file in a sweep's folder that holds it all; Optuna and its dashboard can read it."""
_HELD = ".trials"
"""The folder of the locks, one for each trial."""

Sampler = Literal["tpe", "random", "grid"]
Pruner = Literal["median", "halving", "none"]
TrialState = Literal["running", "done", "pruned", "failed"]

_SPARED_EVALUATIONS = 2
"""The first evaluations of a run, which are unreliable, don't end it."""


@dataclass(frozen=True, kw_only=True)
class SweepSettings:
    """Settings that decide which trials a sweep makes."""

    sampler: Sampler = "tpe"
    """Method that chooses what to try: a tree-structured Parzen estimator (Bergstra et al. 2011),
    at random, or every combination."""
    pruner: Pruner = "median"
    """Rule by which trials end early: those whose best evaluation so far is below the median of the
    others' at that time; successive halving (Li et al. 2020, arXiv:1810.05934), which lets a third
    continue at evaluations 3, 9, 27, ...; or none."""
    seed: int = 0
    """Seed of the sampler."""
    is_largest_best: bool = True
    """If True, a larger value is better."""


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One try: values for all settings of the search space, and its result."""

    number: int
    """Its number, from 0."""
    state: TrialState
    overrides: Overrides
    """The values it tries, by panel name or dotted path."""
    value: float | None
    """Its result; of a pruned one, its last evaluation. None for others."""
    evaluations: tuple[float, ...]
    """The evaluations that the pruner has seen."""
    run: str
    """Name of its run's folder; empty where it was never known."""
    error: str
    """Reason of its failure, one line."""


class Trials:
    """The trials of one sweep.

    Args:
        folder: The sweep's, made if it isn't there.
        space: What is varied.
        settings: How trials are chosen and ended.
        description: Further facts, by name, that must be the same whenever the sweep continues.

    Raises:
        ConfigurationError: Optuna isn't installed, the sweep in the folder is another one, its
            sampler cannot cover the space, or the folder cannot be written.
    """

    def __init__(
        self,
        folder: Path,
        space: SearchSpace,
        settings: SweepSettings,
        description: Mapping[str, Json],
    ) -> None:
        optuna = _optuna()
        self._folder, self._space, self._settings = folder, space, settings
        self._held: dict[int, ExitStack] = {}
        self._grid = _grid(space) if settings.sampler == "grid" else None
        self._distributions = {name: each.distribution() for name, each in space.items()}
        try:
            (folder / _HELD).mkdir(parents=True, exist_ok=True)
            require_no_links(folder)
            require_no_links(folder / _HELD)
        except OSError as error:
            raise ConfigurationError(
                f"cannot write to the sweep's folder {folder}: {error}; choose another with -ep"
            ) from error
        self._alone = FileLock(folder / ".sweep_lock")
        """Held by the process that opens the sweep or begins a trial."""
        with self._alone:
            self._study = self._opened(optuna)
            best = "the largest" if settings.is_largest_best else "the smallest"
            own: Json = {"sampler": settings.sampler, "pruner": settings.pruner, "best": best}
            self._require_same({**own, "seed": settings.seed, **description})

    @property
    def combinations(self) -> int | None:
        """Number of trials of a grid; None for other samplers."""
        return None if self._grid is None else _size(self._grid)

    def all(self) -> list[Trial]:
        """Every trial so far, by number."""
        return [self._trial(each) for each in self._frozen()]

    def begin(self, most: int) -> Trial | None:
        """Begin a trial and hold it; None where there are enough.

        Args:
            most: Trials in all, of any state and process.
        """
        from optuna.trial import TrialState as State
        from optuna.trial import create_trial

        with self._alone:
            before = self._frozen()
            number = len(before)
            if number >= most:
                return None
            self._hold(number)
            self._study.add_trial(
                create_trial(
                    state=State.RUNNING,
                    params=self._drawn(before, number),
                    distributions=self._distributions,
                )
            )
        return self._trial(self._frozen()[number])

    def left_over(self) -> list[Trial]:
        """Unfinished trials that no process holds; this one holds them from now on."""
        found = []
        for trial in self.all():
            if trial.state == "running" and trial.number not in self._held:
                try:
                    self._hold(trial.number)
                except RunInUseError:
                    continue
                now = self._trial(self._frozen()[trial.number])
                if now.state == "running":
                    found.append(now)
                else:  # it was concluded meanwhile
                    self._held.pop(trial.number).close()
        return found

    def report(self, number: int, values: list[float]) -> bool:
        """Note the evaluations of a trial; whether it should end.

        Args:
            number: The trial.
            values: All evaluations of its run so far; those after one that ends it don't count.
        """
        live = self._live(number)
        known = len(self._frozen()[number].intermediate_values)
        if known and live.should_prune():
            return True
        for index in range(known, len(values)):
            live.report(values[index], index + 1)
            if live.should_prune():
                return True
        return False

    def note_run(self, number: int, run: str) -> None:
        """Note the folder of a trial's run."""
        if self._frozen()[number].user_attrs.get("run") != run:
            self._live(number).set_user_attr("run", run)

    def conclude(
        self,
        number: int,
        state: Literal["done", "pruned", "failed"],
        *,
        value: float | None = None,
        error: str = "",
    ) -> None:
        """End a trial and release it.

        Args:
            number: The trial.
            state: How it ended.
            value: Its result, where it is done.
            error: Why it failed, one line.
        """
        from optuna.trial import TrialState as State

        states = {"done": State.COMPLETE, "pruned": State.PRUNED, "failed": State.FAIL}
        if error:
            self._live(number).set_user_attr("error", error)
        self._study.tell(number, value, states[state])
        self._held.pop(number).close()

    def best(self) -> list[Trial]:
        """The trials that are done, the best first; of equal ones the earlier."""
        done = [(trial, trial.value) for trial in self.all() if trial.state == "done"]
        sign = -1.0 if self._settings.is_largest_best else 1.0
        ranked = sorted(done, key=lambda each: (sign * (each[1] or 0.0), each[0].number))
        return [trial for trial, _ in ranked]

    def importances(self) -> dict[str, float]:
        """The part of each setting in whether a trial is among the best, in shares of 1.

        By PED-ANOVA (Watanabe et al. 2023, arXiv:2304.10255), the best being five trials or a
        tenth, whichever is more. Empty where fewer than ten trials are done.
        """
        from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances

        done = sum(trial.state == "done" for trial in self.all())
        if done < 10:
            return {}
        evaluator = PedAnovaImportanceEvaluator(target_quantile=max(0.1, 5 / done))
        shares: dict[str, float] = get_param_importances(self._study, evaluator=evaluator)
        return shares

    def close(self) -> None:
        """Release the trials that are held, which others may take over."""
        while self._held:
            self._held.popitem()[1].close()

    def _frozen(self) -> list["FrozenTrial"]:
        return self._study.get_trials(deepcopy=False)

    def _live(self, number: int) -> "LiveTrial":
        from optuna.trial import Trial as LiveTrial

        return LiveTrial(self._study, self._frozen()[number]._trial_id)

    def _trial(self, frozen: "FrozenTrial") -> Trial:
        names: dict[str, TrialState] = {"COMPLETE": "done", "PRUNED": "pruned", "FAIL": "failed"}
        reported = frozen.intermediate_values
        return Trial(
            number=frozen.number,
            state=names.get(frozen.state.name, "running"),
            overrides={name: self._space[name].value(of) for name, of in frozen.params.items()},
            value=frozen.value,
            evaluations=tuple(reported[step] for step in sorted(reported)),
            run=frozen.user_attrs.get("run", ""),
            error=frozen.user_attrs.get("error", ""),
        )

    def _drawn(self, before: list["FrozenTrial"], number: int) -> dict[str, Drawn]:
        """The values that a trial tries: by the seed, its number and the trials before it."""
        optuna = _optuna()
        study: Study = optuna.create_study(
            direction=self._direction, sampler=self._sampler(optuna, number)
        )
        study.add_trials(before)
        drawn = study.ask(self._distributions).params
        return {name: self._space[name].rounded(value) for name, value in drawn.items()}

    @property
    def _direction(self) -> str:
        return "maximize" if self._settings.is_largest_best else "minimize"

    def _sampler(self, optuna: ModuleType, number: int) -> "BaseSampler":
        seed = integer_seed(self._settings.seed, "sweep", number)
        if self._grid is not None:  # whose order is one for all trials
            order = integer_seed(self._settings.seed, "grid")
            grid: BaseSampler = optuna.samplers.GridSampler(self._grid, seed=order)
            return grid
        kinds = {"tpe": optuna.samplers.TPESampler, "random": optuna.samplers.RandomSampler}
        sampler: BaseSampler = kinds[self._settings.sampler](seed=seed)
        return sampler

    def _pruner(self, optuna: ModuleType) -> "BasePruner":
        pruners: dict[str, Callable[[], BasePruner]] = {
            "median": lambda: optuna.pruners.MedianPruner(n_warmup_steps=_SPARED_EVALUATIONS + 1),
            "halving": lambda: optuna.pruners.SuccessiveHalvingPruner(
                min_resource=_SPARED_EVALUATIONS + 1, reduction_factor=3
            ),
            "none": optuna.pruners.NopPruner,
        }
        return pruners[self._settings.pruner]()

    def _opened(self, optuna: ModuleType) -> "Study":
        """The study in the journal, new or as it was left."""
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend

        journal = separated(self._folder / JOURNAL)
        lock = FileLock(separated(self._folder / ".journal_lock"))
        with lock:
            _drop_torn_line(journal)
        backend = JournalFileBackend(str(journal), lock_obj=lock)  # type: ignore[arg-type]  # alike
        try:
            study: Study = optuna.create_study(
                storage=JournalStorage(backend),
                study_name="sweep",
                sampler=optuna.samplers.RandomSampler(),  # unused: see `_drawn`
                pruner=self._pruner(optuna),
                direction=self._direction,
                load_if_exists=True,
            )
        except (ValueError, KeyError) as error:
            raise CheckpointError(
                f"{journal} is damaged: {error}; restore it from a copy, or begin another sweep "
                "with -e NAME"
            ) from error
        return study

    def _require_same(self, description: dict[str, Json]) -> None:
        """Record the sweep's settings, or raise if the journal has others."""
        then: Json = self._study.user_attrs.get("description")
        if then is None:
            self._study.set_user_attr("description", description)
            return
        for what, value in description.items():
            require(
                then.get(what) == value,
                f"the sweep {self._folder} was begun with {what} {then.get(what)}, now it is "
                f"{value}; give the same again, or begin another sweep with -e NAME",
            )

    def _hold(self, number: int) -> None:
        """Hold a trial until it is concluded; RunInUseError where another process does."""
        folder = self._folder / _HELD / str(number)
        folder.mkdir(exist_ok=True)
        with ExitStack() as stack, warnings.catch_warnings():
            warnings.simplefilter("ignore", CoachWarning)  # of the process that has ended
            stack.enter_context(locked(folder))
            self._held[number] = stack.pop_all()


def _optuna() -> ModuleType:
    try:
        import optuna
    except ImportError as error:
        raise ConfigurationError(
            f"a sweep needs Optuna, which is not installed; {how_to_install('sweep')}"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    module: ModuleType = optuna
    return module


def _grid(space: SearchSpace) -> dict[str, tuple[Drawn, ...]]:
    grid = {}
    for name, dimension in space.items():
        values = dimension.grid()
        require(
            values is not None,
            f"a grid needs values that can be counted, not {name}={dimension}; write a choice, or "
            "a step where the range takes one",
        )
        assert values is not None
        grid[name] = values
    return grid


def _size(grid: Mapping[str, tuple[Drawn, ...]]) -> int:
    return math.prod(map(len, grid.values()))


def _drop_torn_line(journal: Path) -> None:
    """Drop a last line that was not written to its end, as on a full disk."""
    if not journal.exists():
        return
    with journal.open("rb+") as file:
        text = file.read()
        end = text.rfind(b"\n") + 1
        if end < len(text):
            file.truncate(end)
            os.fsync(file.fileno())
