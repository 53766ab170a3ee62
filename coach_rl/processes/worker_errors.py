"""Errors of workers: a process that is gone, and errors raised in one that reach its parent."""

import re
import site
import sysconfig
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Self

import coach_rl
from coach_rl.core.errors import (
    CheckpointError,
    CoachError,
    ConfigurationError,
    EnvironmentFault,
    NonFiniteError,
    RunError,
    SpaceError,
)

LIBRARIES = tuple(
    {*site.getsitepackages(), sysconfig.get_path("stdlib"), *map(str, coach_rl.__path__)}
)
"""Folders of code that is not the user's."""
_KINDS = (SpaceError, ConfigurationError, CheckpointError, NonFiniteError, EnvironmentFault)


class WorkerLost(RunError):
    """A worker is gone: killed, out of memory, preempted, or ended because it hung.

    Args:
        message: What happened, as a clause: "its worker process died (exit code 3)".
        is_hung: Whether it exceeded its time limit.
    """

    def __init__(self, message: str, *, is_hung: bool = False) -> None:
        super().__init__(message)
        self.is_hung = is_hung


class RemoteTraceback(Exception):
    """The cause of an error that was raised elsewhere: its traceback as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


@dataclass(frozen=True, kw_only=True)
class Failure:
    """An error raised in a worker, in a form that can be sent."""

    kind: type[CoachError]
    """A class of errors that are made from their message alone."""
    message: str
    traceback: str

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """The failure of the error that is being handled."""
        kind = next((each for each in _KINDS if isinstance(error, each)), RunError)
        text = str(error)
        if not isinstance(error, CoachError):
            text = f"a worker failed: {type(error).__name__}: {text}"
        return cls(kind=kind, message=text, traceback=traceback.format_exc())

    def raise_here(self) -> NoReturn:
        """Raise the error, with its traceback as the cause."""
        raise self.kind(self.message) from RemoteTraceback(self.traceback)


def place_in(dump: str) -> str:
    """File and line of the user's code in what `faulthandler` wrote; empty if it wrote nothing."""
    frames = re.findall(r'File "(.+)", line (\d+) in', dump)  # the innermost first
    chosen = [frame for frame in frames if not frame[0].startswith((*LIBRARIES, "<"))] or frames
    return f" ({Path(chosen[0][0]).name}, line {chosen[0][1]})" if chosen else ""
