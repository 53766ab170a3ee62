"""Groups of runs in folders as a study, so that they can be reported as one."""

from collections.abc import Sequence

from coach_rl.core.runtime import Runtime
from coach_rl.runs.folder import RunFolder
from coach_rl.studies.job import Job
from coach_rl.studies.run_groups import RunGroup
from coach_rl.studies.scores import RunScores
from coach_rl.studies.study import Study, Variant
from coach_rl.studies.study_jobs import VARIANT
from coach_rl.studies.study_runs import StudyRun


def study_of_groups(
    groups: Sequence[RunGroup], *, metric: str, baseline: str | None, folders: Sequence[str]
) -> tuple[Study, list[StudyRun]]:
    """The study whose variants are some groups of runs, and its runs.

    A variant's changes are the settings of its first run that differ between the groups.

    Args:
        groups: The groups.
        metric: What scores a run in its final evaluation.
        baseline: The group that the others are compared with; None for none.
        folders: The folders that were given, which the study asks about.
    """
    firsts = [group.runs[0] for group in groups]
    names = dict.fromkeys(name for run in firsts for name in run.settings.chosen)
    differing = [name for name in names if len({repr(_setting(run, name)) for run in firsts}) > 1]
    variants = tuple(
        Variant(
            name=group.name,
            preset=first.preset or "(a program)",
            level=", ".join(group.levels),
            changes={name: of for name in differing if (of := _setting(first, name)) is not None},
            seeds=tuple(sorted({run.seed for run in group.runs})),
        )
        for group, first in zip(groups, firsts, strict=True)
    )
    study = Study(
        name="runs",
        question=f"{metric} of the runs in {', '.join(folders)}",
        variants=variants,
        seeds=tuple(sorted({run.seed for group in groups for run in group.runs})),
        metric=metric,
        baseline=baseline,
    )
    runs = [
        StudyRun(job=_job(group.name, run), folder=RunFolder(run.path), found=run)
        for group in groups
        for run in group.runs
    ]
    return study, runs


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
