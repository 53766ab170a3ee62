"""Telling people what a run is doing while something takes long."""

from collections.abc import Callable

OnActivity = Callable[[str], None]
"""Called with what takes long before it begins, and with an empty text when it is over."""

COMPILING = "compiling"
RECORDING = "recording"


def ignore_activity(_activity: str) -> None:
    """Ignore the activity."""


def waiting_for(evaluations: int) -> str:
    """Waiting for evaluations that another process makes."""
    return f"waiting for {evaluations} background evaluation{'s' * (evaluations > 1)}"


def is_first_step(activity: str) -> bool:
    """True for the slow work of a first gradient step: nothing has been learned since the start."""
    return activity.startswith((COMPILING, RECORDING))
