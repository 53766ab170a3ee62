"""A worker's object: the function that makes it, sent with its code, and calls of its methods."""

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Self

from coach_rl.core.errors import ConfigurationError
from coach_rl.processes.worker_errors import Failure


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
                f"it cannot be sent to a worker process: {error}; classes and functions that "
                "parameters name must stand at the top level of a file"
            ) from error
        modules = {
            name: (file, Path(file).read_text(encoding="utf-8"))
            for name, module in list(sys.modules.items())
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


def _executed_file(name: str, module: ModuleType) -> str | None:
    """The file of a module that came from executing it rather than from an import, else None."""
    is_imported = name == "__main__" or getattr(module, "__spec__", None) is not None
    return None if is_imported else getattr(module, "__file__", None)
