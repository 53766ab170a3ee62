"""Places where jobs run: from the word after `--on` to an executor."""

from collections.abc import Sequence

from coach_rl.core.errors import UnknownNameError
from coach_rl.studies.executors import Executor
from coach_rl.studies.job import Job, Needs
from coach_rl.studies.local_pool import LocalPool, OnWarning
from coach_rl.studies.machine import carried_runs

LOCAL = "local"
PLACES = (LOCAL,)


def executor(
    on: str,
    jobs: Sequence[Job],
    *,
    at_once: int | None = None,
    on_warning: OnWarning | None = None,
) -> Executor:
    """The executor for a place; close it.

    Args:
        on: The place: `local`, processes of this machine.
        jobs: What it is for, one job or more.
        at_once: Jobs at once; None: as many as the place carries.
        on_warning: Called, in some thread, with a job and a warning of its run; None prints it.

    Raises:
        UnknownNameError: There is no such place.
    """
    check_place(on)
    if on == LOCAL:
        at_once = at_once or carried_runs(_most(jobs))
        return LocalPool(min(at_once, len(jobs)), on_warning=on_warning)
    raise AssertionError(f"'{on}' is a place, and has no executor")


def check_place(on: str) -> None:
    """Raise an `UnknownNameError` where there is no such place."""
    if on not in PLACES:
        raise UnknownNameError("place to run on", on, PLACES)


def _most(jobs: Sequence[Job]) -> Needs:
    """Needs that cover those of every job."""
    known = [job.needs.memory_gb for job in jobs if job.needs.memory_gb is not None]
    return Needs(
        cores=max(job.needs.cores for job in jobs),
        gpus=max(job.needs.gpus for job in jobs),
        memory_gb=max(known) if known else None,
    )
