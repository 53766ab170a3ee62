"""Messages between a worker and its parent: the object to make, and the errors of its calls."""

import pickle
import re
import site
import sys
import sysconfig
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, NoReturn, Self

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
from coach_rl.core.shown_text import shortened, shown_error

LIBRARIES = tuple(
    {*site.getsitepackages(), sysconfig.get_path("stdlib"), *map(str, coach_rl.__path__)}
)
"""Folders of code that is not the user's."""
MOST_OF_A_TRACEBACK = 20_000
"""Characters of a traceback that are kept; it repeats the error's message."""
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
        text = f"a worker failed: {shown_error(error)}"
        if isinstance(error, CoachError):
            text = str(error)
        trace = shortened(traceback.format_exc(), MOST_OF_A_TRACEBACK)
        return cls(kind=kind, message=text, traceback=trace)

    def raise_here(self) -> NoReturn:
        """Raise the error, with its traceback as the cause."""
        raise self.kind(self.message) from RemoteTraceback(self.traceback)


# Not by cloudpickle, by value: a class of a preset would be another one in the worker than that
# which parameters name, and `isinstance` false between them.
@dataclass(frozen=True, kw_only=True)
class WorkerPayload:
    """A pickled function, and the source of modules that cannot be imported."""

    function: bytes
    modules: Mapping[str, tuple[str, str]]
    """File and source of modules that were executed under a name of our own: presets."""
    path: tuple[str, ...]
    """Search path for other modules."""

    @classmethod
    def of(cls, function: Callable[[], object]) -> Self:
        """The payload of a function.

        Raises:
            ConfigurationError: A part of it cannot be pickled.
        """
        try:
            content = pickle.dumps(function)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise ConfigurationError(
                f"this experiment cannot be sent to a worker process: {error}; classes and "
                "functions that its parameters name must stand at the top level of a file"
            ) from error
        modules = {
            name: (file, Path(file).read_text(encoding="utf-8"))
            for name, module in sys.modules.copy().items()  # another thread may import
            if name.encode() in content and (file := _executed_file(name, module)) is not None
        }
        return cls(function=content, modules=modules, path=tuple(sys.path))

    def make(self) -> object:
        """The function's result, after executing its modules."""
        known = set(sys.path)
        sys.path += [folder for folder in self.path if folder not in known]
        for name, (file, source) in self.modules.items():
            if name in sys.modules:
                continue
            module = sys.modules[name] = ModuleType(name)
            module.__file__ = file
            exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
        function: Callable[[], object] = pickle.loads(self.function)  # from this worker's parent
        return function()


class ServedObject:
    """An object whose methods are called from another process.

    Args:
        make: Makes it; its error is the outcome of each call.
    """

    def __init__(self, make: Callable[[], object]) -> None:
        self.object: Any = None
        """None if it could not be made."""
        self._failure: Failure | None = None
        try:
            self.object = make()
        except BaseException as error:  # also an exit: it is not this process's to decide
            self._failure = Failure.of(error)

    def call(
        self, method: str, arguments: tuple[object, ...]
    ) -> tuple[Literal["done"], Any] | tuple[Literal["failed"], Failure]:
        """The outcome of a call: "done" and the result, or "failed" and the failure."""
        if self._failure is not None:
            return "failed", self._failure
        try:
            return "done", getattr(self.object, method)(*arguments)
        except BaseException as error:
            return "failed", Failure.of(error)

    def close(self) -> object:
        """The result of the object's `close`; None if it has none."""
        close = getattr(self.object, "close", None)
        return None if close is None else close()


def place_in(dump: str) -> str:
    """File and line of the user's code in what `faulthandler` wrote; empty if it wrote nothing."""
    frames = re.findall(r'File "(.+)", line (\d+) in', dump)  # the innermost first
    chosen = [frame for frame in frames if not frame[0].startswith((*LIBRARIES, "<"))] or frames
    return f" ({Path(chosen[0][0]).name}, line {chosen[0][1]})" if chosen else ""


def _executed_file(name: str, module: ModuleType) -> str | None:
    """The file of a module that came from executing it rather than from an import, else None."""
    is_imported = name == "__main__" or getattr(module, "__spec__", None) is not None
    return None if is_imported else getattr(module, "__file__", None)
