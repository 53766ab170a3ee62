"""Places where jobs run: from the word after `--on` to an executor."""

from collections.abc import Sequence

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.executors import Executor
from coach_rl.studies.job import Job, Needs
from coach_rl.studies.local_pool import LocalPool, OnWarning
from coach_rl.studies.machine import carried_runs
from coach_rl.studies.ray_cluster import RayCluster
from coach_rl.studies.slurm import Slurm

LOCAL, RAY, SLURM = "local", "ray", "slurm"
PLACES = (LOCAL, RAY, f"{RAY}:HOST:PORT", SLURM, f"{SLURM}:PARTITION")


def executor(
    on: str,
    jobs: Sequence[Job],
    *,
    at_once: int | None = None,
    on_warning: OnWarning | None = None,
) -> Executor:
    """The executor for a place; close it.

    Args:
        on: The place, one of `PLACES`: processes of this machine, or a cluster.
        jobs: What it is for, one job or more.
        at_once: Jobs at once on this machine; None: as many as it carries.
        on_warning: Called, in some thread of this machine's pool, with a job and a warning of its
            run; None prints it.

    Raises:
        UnknownNameError: There is no such place.
        ConfigurationError: It cannot be reached, or decides itself how many jobs run at once.
    """
    check_place(on)
    place, _, detail = on.partition(":")
    if place == LOCAL:
        at_once = at_once or carried_runs(_most(jobs))
        return LocalPool(min(at_once, len(jobs)), on_warning=on_warning)
    if at_once is not None:
        raise ConfigurationError(
            f"--jobs counts processes of this machine, and {place} decides itself how many jobs "
            "run at once, by what each of them needs; leave it out"
        )
    return RayCluster(detail or None) if place == RAY else Slurm(detail or None)


def check_place(on: str) -> None:
    """Raise an `UnknownNameError` where there is no such place."""
    place, colon, detail = on.partition(":")
    if place not in (LOCAL, RAY, SLURM) or (colon and (place == LOCAL or not detail)):
        raise UnknownNameError("place to run", on, PLACES)


def _most(jobs: Sequence[Job]) -> Needs:
    """Needs that cover those of every job."""
    known = [job.needs.memory_gb for job in jobs if job.needs.memory_gb is not None]
    return Needs(
        cores=max(job.needs.cores for job in jobs),
        gpus=max(job.needs.gpus for job in jobs),
        memory_gb=max(known) if known else None,
    )
