"""The function that makes a worker's object, with the code that the worker cannot import."""

import pickle
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Self

from coach_rl.core.errors import ConfigurationError


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

    def unpack(self) -> Callable[[], object]:
        """The function, its modules executed first."""
        known = set(sys.path)
        sys.path += [folder for folder in self.path if folder not in known]
        for name, (file, source) in self.modules.items():
            if name in sys.modules:
                continue
            module = sys.modules[name] = ModuleType(name)
            module.__file__ = file
            exec(compile(source, file, "exec", dont_inherit=True), module.__dict__)
        function: Callable[[], object] = pickle.loads(self.function)  # from this worker's parent
        return function


def _executed_file(name: str, module: ModuleType) -> str | None:
    """The file of a module that came from executing it rather than from an import, else None."""
    is_imported = name == "__main__" or getattr(module, "__spec__", None) is not None
    return None if is_imported else getattr(module, "__file__", None)
