"""The runs of a study: each that it consists of, and its state.

A run is known by its parameters. Those that were made outside of the study, by hand or by an
earlier version of the code, are its own wherever their parameters are the same.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, is_dataclass, replace
from pathlib import Path

from coach_rl.configuration.parameters_json import TYPE_TAG, constructor_fields, encode, reference
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.strict_json import Json, read_json
from coach_rl.core.errors import CheckpointError, ConfigurationError, warn
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.studies.job import Job, find_run, is_finished
from coach_rl.extensions.studies.runs import Row, RunFrame
from coach_rl.extensions.studies.scores import (
    SUCCESS,
    RunScores,
    failures_counted,
    later_evaluations,
    read_scores,
    runs_below,
    success_metrics,
    with_failures,
)
from coach_rl.extensions.studies.study import VARIANT, Study, Variant, jobs_of
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import with_threads
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import DEFAULT_ROOT

_AT_ANY_STEP = "success_any_rate"


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """A run of a study."""

    job: Job
    """The run to be made."""
    folder: RunFolder | None
    """Its folder; None where it has not begun."""
    scores: RunScores | None = None
    """Its evaluations and counters; None where it has not begun. Success that it doesn't report is
    0 where another run on its level reports success."""

    @property
    def variant(self) -> str:
        """Name of its variant."""
        return self.job.labels[VARIANT]

    @property
    def seed(self) -> int:
        """Its seed."""
        return self.job.task.seed

    @property
    def is_done(self) -> bool:
        """True if it has trained to its end."""
        return self.folder is not None and is_finished(self.folder)

    def score(self, study: Study) -> float | None:
        """The study's metric after training; None where it is not known yet, or not reported."""
        return self.evaluation(study).get(study.metric)

    def success_at_any_step(self, study: Study) -> float | None:
        """Share of the episodes that succeed at any step, beside a score of those at the last.

        None where the study's metric is another one, or where it is not reported.
        """
        return self.evaluation(study).get(_AT_ANY_STEP) if study.metric == SUCCESS else None

    def evaluation(self, study: Study) -> Mapping[str, float]:
        """Metrics of the evaluation that scores it; empty where there is none."""
        if not self.is_done or self.scores is None or self.folder is None:
            return {}
        if study.episodes is None:
            return self.scores.final
        found = evaluation_of(self.folder, study.episodes) or {}
        return failures_counted(found, sorted(success_metrics([self.scores])))


def study_runs(
    study: Study, *, root: Path = DEFAULT_ROOT, earlier: Sequence[Path] = ()
) -> list[StudyRun]:
    """The runs of a study, in the order of its jobs.

    Args:
        study: The study.
        root: The folder of all experiments.
        earlier: Folders in which finished runs may be that were not made for the study.

    Raises:
        ConfigurationError: A variant does not resolve, or there is no such folder.
        CheckpointError: A run is damaged.
    """
    for folder in earlier:
        if not folder.is_dir():
            raise ConfigurationError(f"there is no folder {folder} with earlier runs")
    runs = [StudyRun(job=job, folder=find_run(job)) for job in jobs_of(study, root=root)]
    if not all(run.is_done for run in runs):
        candidates = list(_finished([root / study.name, *earlier]))
        runs = [run if run.is_done else _made_earlier(run, candidates) for run in runs]
    begun = [run.folder.path for run in runs if run.folder is not None]
    read = iter(with_failures([read_scores(path) for path in begun]))
    return [run if run.folder is None else replace(run, scores=next(read)) for run in runs]


def evaluation_of(folder: RunFolder, episodes: int) -> Mapping[str, float] | None:
    """Metrics of the last evaluation of so many episodes that was made of a finished run.

    Only those count that `coach evaluate` makes without other options: greedy, of the last
    checkpoint, in the run's own environment, on the starts that are the same for all runs.

    Raises:
        CheckpointError: The file of an evaluation is damaged.
    """
    steps = read_json(folder.summary)["env_steps"]
    found = [
        each.metrics
        for each in later_evaluations(folder.path)
        if each.is_plain
        and each.environment_steps == steps
        and each.metrics.get("episodes") == episodes
    ]
    return found[-1] if found else None


def evaluate_missing(study: Study, runs: Iterable[StudyRun]) -> Iterable[StudyRun]:
    """Make the evaluations that score a study's finished runs, where they are missing.

    Yields:
        Each run before it is evaluated.
    """
    for run in runs:
        if study.episodes is None or run.folder is None or not run.is_done:
            continue
        if evaluation_of(run.folder, study.episodes) is None:
            yield run
            evaluate_run(run.folder.path, episodes=EnvironmentEpisodes(study.episodes))


def _finished(folders: Sequence[Path]) -> Iterable[tuple[RunFolder, Json]]:
    """Finished runs with their manifests; damaged ones are left out with a warning."""
    for folder in map(RunFolder, sorted({run for each in folders for run in runs_below(each)})):
        if is_finished(folder):
            try:
                yield folder, read_manifest(folder)
            except CheckpointError as error:
                warn(f"an earlier run is left out: {error}")


def _made_earlier(run: StudyRun, candidates: Sequence[tuple[RunFolder, Json]]) -> StudyRun:
    """The run, with the folder of an earlier one that has its parameters, where there is one."""
    job = run.job
    of_seed = [found for found in candidates if found[1]["task"]["seed"] == run.seed]
    if of_seed:
        experiment = load_preset(find_preset(job.preset)).configure(job.overrides)
        for folder, manifest in of_seed:
            if is_run_of(manifest, experiment, job.task):
                return StudyRun(job=job, folder=folder)
    return run


def is_run_of(manifest: Json, graph_manager: GraphManager, task: Runtime) -> bool:
    """Return whether a manifest is that of a run with these parameters, on any device.

    Args:
        manifest: A run's manifest.
        graph_manager: The experiment, resolved.
        task: Seed, threads, precision.
    """
    parameters = {
        **manifest["parameters"],
        "checkpoints": encode(graph_manager.parameters.checkpoints),
        "threads": graph_manager.parameters.threads,  # the task has those of the run
    }
    task = with_threads(task, graph_manager.parameters.threads)
    recorded_task = {**manifest["task"], "device": task.device}
    return (
        manifest["graph_manager"] == reference(type(graph_manager))
        and parameter_difference(parameters, graph_manager.parameters) is None
        and parameter_difference(recorded_task, task) is None
    )


def parameter_difference(recorded: Json, value: object, path: str = "") -> str | None:
    """The path of the first parameter that differs from a record; None if none does.

    Args:
        recorded: Parameters as `encode` wrote them once.
        value: Parameters of today.
        path: Their path.
    """
    if is_dataclass(value) and not isinstance(value, type):
        if not (isinstance(recorded, dict) and recorded.get(TYPE_TAG) == reference(type(value))):
            return path
        names = [field.name for field in constructor_fields(type(value))]
        gone = [name for name in recorded if name not in (TYPE_TAG, *names)]
        if gone:
            return _join(path, gone[0])
        for field in constructor_fields(type(value)):
            of = getattr(value, field.name)
            below = _join(path, field.name)
            if field.name not in recorded:
                found = None if of == _default(field) else below
            else:
                found = parameter_difference(recorded[field.name], of, below)
            if found is not None:
                return found
        return None
    if isinstance(value, tuple) and isinstance(recorded, list) and len(value) == len(recorded):
        parts = (
            parameter_difference(old, new, _join(path, str(index)))
            for index, (old, new) in enumerate(zip(recorded, value, strict=True))
        )
        return next((found for found in parts if found is not None), None)
    return None if recorded == encode(value) else path


def _default(field: Field[object]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def study_frame(study: Study, runs: Sequence[StudyRun]) -> RunFrame:
    """The frame of the runs that have begun, with the evaluations that score finished ones.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
    """
    rows = [
        Row(group=run.variant, run=run.scores, evaluation=run.evaluation(study))
        for variant in study.variants
        for run in runs
        if run.variant == variant.name and run.scores is not None
    ]
    return RunFrame(groups=tuple(dict.fromkeys(row.group for row in rows)), rows=tuple(rows))


def study_of_frame(
    frame: RunFrame, *, metric: str, baseline: str | None, folders: Sequence[str]
) -> tuple[Study, list[StudyRun]]:
    """The study whose variants are the groups of a frame, and its runs.

    A variant's changes are the settings of its first run that differ between the groups.

    Args:
        frame: The runs.
        metric: What scores a run in its final evaluation.
        baseline: The group that the others are compared with; None for none.
        folders: The folders, for the study's question.
    """
    firsts = [frame.where(group=group).runs[0] for group in frame.groups]
    names = dict.fromkeys(name for run in firsts for name in run.settings.chosen)
    differing = [name for name in names if len({repr(_setting(run, name)) for run in firsts}) > 1]
    variants = tuple(
        Variant(
            name=group,
            preset=first.preset or "(a program)",
            level=", ".join(frame.where(group=group).levels),
            changes={name: of for name in differing if (of := _setting(first, name)) is not None},
            steps=_steps(first),
            seeds=tuple(sorted({run.seed for run in frame.where(group=group).runs})),
        )
        for group, first in zip(frame.groups, firsts, strict=True)
    )
    study = Study(
        name="runs",
        question=f"{metric} of the runs in {', '.join(folders)}",
        variants=variants,
        seeds=tuple(sorted({run.seed for run in frame.runs})),
        metric=metric,
        baseline=baseline,
    )
    runs = [
        StudyRun(job=_job(row.group, row.run), folder=RunFolder(row.run.path), scores=row.run)
        for row in frame.rows
    ]
    return study, runs


def _steps(run: RunScores) -> int | None:
    """The environment steps that a run trains for; None where its length is another unit's."""
    steps = run.settings.resolved.get("schedule.training")
    return steps if isinstance(steps, int) and steps > 0 else None


def _setting(run: RunScores, name: str) -> object:
    """A setting of a run; None where it has none of this name."""
    value = run.settings.chosen.get(name, run.settings.resolved.get(name))
    return tuple(value) if isinstance(value, list) else value


def _job(group: str, run: RunScores) -> Job:
    """The job that a run would be, for its names."""
    return Job(
        preset=run.preset,
        task=Runtime(seed=run.seed),
        name=run.experiment,
        root=run.path.parent.parent,
        labels={VARIANT: group},
    )
