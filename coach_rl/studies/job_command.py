"""The command line that makes the run of a job alone."""

from collections.abc import Sequence

from coach_rl.configuration.overrides import said
from coach_rl.studies.job import Job


def coach_words(
    job: Job, threads: int, *, seeds: Sequence[int] = (), name: str | None = None
) -> tuple[str, ...]:
    """The words of a `coach` command line that makes the run of a job.

    Args:
        job: Its changes can be typed, see `can_be_typed`.
        threads: The number that its preset states after its changes, which needs no flag.
        seeds: Several seeds to make it with; empty for its own.
        name: Another experiment's name; None for its own.
    """
    words = ["coach", "-p", job.preset]
    if job.overrides:
        words += ["-cp", said(job.overrides)]
    many = ",".join(map(str, seeds))
    words += ["--seeds", many] if len(seeds) > 1 else ["--seed", str(job.task.seed)]
    settings = {
        "--device": (job.task.device, "auto"),
        "--threads": (job.task.threads or threads, threads),
        "--matmul_precision": (job.task.matmul_precision, "highest"),
    }
    for flag, (value, default) in settings.items():
        if value != default:
            words += [flag, str(value)]
    return (*words, "-e", job.name if name is None else name)
