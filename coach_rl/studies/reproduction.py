"""Command lines that make the runs of jobs again."""

import shlex
from collections.abc import Sequence

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.studies.job import Job
from coach_rl.studies.job_command import coach_words
from coach_rl.studies.job_run import can_be_typed


def coach_line(jobs: Sequence[Job]) -> str | None:
    """The `coach` line that makes some jobs again, which differ by their seeds alone.

    Args:
        jobs: One or more; the runs go to an experiment of another name, `NAME_again`, since where
            they are now they are done.

    Returns:
        None where no line can say what the jobs change: a value of a type of their own.
    """
    job = jobs[0]
    preset = load_preset(find_preset(job.preset))
    if not can_be_typed(job, preset):
        return None
    threads = preset.configure(job.overrides).parameters.threads
    seeds = [each.task.seed for each in jobs]
    words = coach_words(job, threads, seeds=seeds, name=f"{job.name}_again")
    return " ".join(
        in_quotes(word) if before == "-cp" else shlex.quote(word)
        for before, word in zip(("", *words), words, strict=False)
    )


def in_quotes(changes: str) -> str:
    """Changes, which often have quotes of their own, as one word of a command line."""
    return shlex.quote(changes) if set(changes) & set('"$`\\!') else f'"{changes}"'
