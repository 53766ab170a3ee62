"""The runs of a study: each that it asks for, and what has become of it.

A run is known by its parameters. Those that were made outside of the study, by hand or by an
earlier version of the code, are its own wherever their parameters are the same.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.strict_json import Json, read_json
from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import DEFAULT_ROOT
from coach_rl.studies.earlier_runs import is_run_of
from coach_rl.studies.job import Job
from coach_rl.studies.job_run import find_run, is_finished
from coach_rl.studies.scores import (
    SUCCESS,
    RunScores,
    failures_counted,
    read_scores,
    runs_below,
    success_metrics,
    with_failures,
)
from coach_rl.studies.study import Study
from coach_rl.studies.study_jobs import VARIANT, jobs_of

_AT_ANY_STEP = "success_any_rate"


@dataclass(frozen=True, kw_only=True)
class StudyRun:
    """A run that a study asks for."""

    job: Job
    """The run to be made."""
    folder: RunFolder | None
    """Its folder; None where it has not begun."""
    found: RunScores | None = None
    """Its evaluations and counters where they have been read already; None: they are read."""
    others: Sequence["StudyRun"] = field(default=(), repr=False, compare=False)
    """All runs of the study, which know whether success is reported on their level."""

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

    @cached_property
    def scores(self) -> RunScores | None:
        """Its evaluations and counters; None where it has not begun.

        Success that it doesn't report is 0 where another run on its level reports success.
        """
        own = self._read
        if own is None:
            return None
        others = [run._read for run in self.others if run is not self]
        return with_failures([own, *(each for each in others if each is not None)])[0]

    @cached_property
    def _read(self) -> RunScores | None:
        if self.found is not None or self.folder is None:
            return self.found
        return read_scores(self.folder.path)

    @cached_property
    def code(self) -> tuple[str, ...]:
        """Versions of the code that it was made with; several where it was resumed by another."""
        if self.folder is None:
            return ()
        manifest = read_manifest(self.folder)
        return tuple(dict.fromkeys(map(_code, (manifest, *manifest["resumes"]))))

    @cached_property
    def hosts(self) -> tuple[str, ...]:
        """The machines that it was made on; their processors in runs of earlier versions."""
        if self.folder is None:
            return ()
        manifest = read_manifest(self.folder)
        parts = [part.get("hardware", {}) for part in (manifest, *manifest["resumes"])]
        names = (part.get("host") or part.get("cpu") for part in parts)
        return tuple(dict.fromkeys(name for name in names if name))

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The command line that began it; empty where it is not recorded."""
        return () if self.folder is None else tuple(read_manifest(self.folder).get("command", ()))

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
    """The runs that a study asks for, in the order of its jobs.

    Args:
        study: The study.
        root: The folder of all experiments.
        earlier: Folders in which finished runs may be that were not made for the study.

    Raises:
        ConfigurationError: A variant does not resolve, or there is no such folder.
        CheckpointError: The manifest of a run is damaged.
    """
    for folder in earlier:
        if not folder.is_dir():
            raise ConfigurationError(f"there is no folder {folder} to look for earlier runs in")
    runs = [StudyRun(job=job, folder=find_run(job)) for job in jobs_of(study, root=root)]
    if not all(run.is_done for run in runs):
        candidates = list(_finished([root / study.name, *earlier]))
        runs = [run if run.is_done else _made_earlier(run, candidates) for run in runs]
    together: list[StudyRun] = []
    together += [replace(run, others=together) for run in runs]
    return together


def evaluation_of(folder: RunFolder, episodes: int) -> dict[str, float] | None:
    """Metrics of the last evaluation of so many episodes that was made of a finished run.

    Only those count that `coach evaluate` makes without other options: greedy, of the last
    checkpoint, in the run's own environment, on the starts that are the same for all runs.

    Raises:
        CheckpointError: The file of an evaluation is damaged.
    """
    steps, found = read_json(folder.summary)["env_steps"], None
    for path in sorted(folder.evaluations.glob("*.json"), key=lambda path: path.stat().st_mtime):
        document = read_json(path)
        try:
            options = (document["seed"], document.get("sampling"), document.get("overrides"))
            metrics = {name.partition("/")[2]: of for name, of in document["scalars"].items()}
            for level, scalars in document.get("levels", {}).items():
                metrics |= {f"{level}/{name.partition('/')[2]}": of for name, of in scalars.items()}
            is_plain = options[0] is None and not any(options[1:])
            if is_plain and (document["environment_steps"], metrics["episodes"]) == (
                steps,
                episodes,
            ):
                found = metrics
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is damaged: {error}") from error
    return found


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
    """Finished runs with their manifests; what cannot be read is said, and left out."""
    for folder in map(RunFolder, sorted({run for each in folders for run in runs_below(each)})):
        if is_finished(folder):
            try:
                yield folder, read_manifest(folder)
            except CheckpointError as error:
                warnings.warn(f"an earlier run is left out: {error}", CoachWarning, stacklevel=2)


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


def _code(part: Json) -> str:
    """The commit that a part of a run was made with, `*` where files differed; else the version."""
    git = (part.get("git") or {}).get("coach_rl")
    if git is None:
        return f"version {part['versions'].get('coach-rl', 'unknown')}"
    return f"{git['commit'][:8]}{'*' if git['dirty'] else ''}"
