"""Where jobs run: from the words after `--on` to an executor."""

from coach_rl.core.errors import UnknownNameError
from coach_rl.studies.executors import Executor
from coach_rl.studies.job import Needs
from coach_rl.studies.local_pool import LocalPool
from coach_rl.studies.machine import carried_runs

LOCAL = "local"
PLACES = (LOCAL,)


def executor(on: str = LOCAL, jobs: int | None = None, *, needs: Needs) -> Executor:
    """The executor for a place; close it.

    Args:
        on: The place: `local`, processes of this machine.
        jobs: Runs at once; None: as many as the place carries.
        needs: What each run takes.

    Raises:
        UnknownNameError: There is no such place.
    """
    if on == LOCAL:
        return LocalPool(carried_runs(needs) if jobs is None else jobs)
    raise UnknownNameError("place to run on", on, PLACES)
