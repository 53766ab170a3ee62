"""Command lines that make the runs of jobs again."""

import shlex
from collections.abc import Sequence
from dataclasses import replace

from coach_rl.core.errors import ConfigurationError
from coach_rl.experiment.override_text import parse_overrides
from coach_rl.experiment.overrides import said
from coach_rl.experiment.preset_file import load_preset
from coach_rl.experiment.presets import find_preset
from coach_rl.studies.job import Job
from coach_rl.studies.job_run import identity


def coach_line(jobs: Sequence[Job]) -> str | None:
    """The `coach` line that makes some jobs again, which differ by their seeds alone.

    Args:
        jobs: One or more; the runs go to an experiment of another name, `NAME_again`, since where
            they are now they are done.

    Returns:
        None where no line can say what the jobs change: a value of a type of their own.
    """
    job = jobs[0]
    if not _can_be_said(job):
        return None
    words = ["coach", "-p", shlex.quote(job.preset)]
    if job.overrides:
        words += ["-cp", in_quotes(said(job.overrides))]
    seeds = [str(each.task.seed) for each in jobs]
    words += ["--seeds", ",".join(seeds)] if len(seeds) > 1 else ["--seed", seeds[0]]
    task = job.task
    own = load_preset(find_preset(job.preset)).configure(job.overrides).parameters.threads
    settings = {
        "--device": (task.device, "auto"),
        "--threads": (task.threads or own, own),
        "--matmul_precision": (task.matmul_precision, "highest"),
    }
    for flag, (value, default) in settings.items():
        if value != default:
            words += [flag, str(value)]
    return " ".join([*words, "-e", shlex.quote(f"{job.name}_again")])


def in_quotes(changes: str) -> str:
    """Changes, which often have quotes of their own, as one word of a command line."""
    return shlex.quote(changes) if set(changes) & set('"$`\\!') else f'"{changes}"'


def _can_be_said(job: Job) -> bool:
    """True if the line's text is read as the same experiment."""
    try:
        again = replace(job, overrides=parse_overrides(said(job.overrides)))
        return identity(again) == identity(job)
    except ConfigurationError:
        return False
