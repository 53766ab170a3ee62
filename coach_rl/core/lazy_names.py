"""Public names: imported when they are first used (PEP 562), and found under earlier paths.

    if TYPE_CHECKING:
        from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
    else:
        __getattr__, __dir__ = lazy_names(__name__)

    __all__ = ["PPOAgent", "PPOAgentParameters"]

Type checkers and editors read the imports. The running program reads them too, at the first use of
a name, so there is one list; importing the package alone imports nothing, least of all torch.

`moved_names.json`, written by `.ci/moved_names.py`, maps a module that has moved to its new path,
and `module:name` to `module:name` where a module was split or a name has changed. The folders of
earlier runs hold such names; imports of them work for one release, with a DeprecationWarning.
"""

import ast
import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import types
import warnings
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from opcode import opmap

from coach_rl.core.errors import near_names
from coach_rl.core.familiar_names import CLASSES


def lazy_names(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package with its imports under `TYPE_CHECKING`.

    Args:
        package: The package's `__name__`.
    """
    module = sys.modules[package]

    @cache
    def origins() -> dict[str, tuple[str, str]]:
        return imports_for_type_checkers(_source(package))

    def get_attribute(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        if name not in origins():
            return moved_attribute(package, name)
        origin, name_there = origins()[name]
        try:
            thing = getattr(importlib.import_module(origin), name_there)
        except AttributeError as error:  # which Python would take for a lack of the name
            raise ImportError(
                f"cannot import name {name!r} from {package!r}: importing {origin} raised "
                f"AttributeError: {error}",
                name=name,
            ) from error
        setattr(module, name, thing)  # later lookups bypass this function
        return thing

    def names() -> list[str]:
        return sorted({*vars(module), *origins()})

    return get_attribute, names


def imports_for_type_checkers(source: str) -> dict[str, tuple[str, str]]:
    """Names that a source imports under `if TYPE_CHECKING:`, with their module and name there."""
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _source(package: str) -> str:
    spec = sys.modules[package].__spec__
    read = getattr(spec.loader if spec else None, "get_source", None)
    source = read(package) if read else None
    if source is None:
        raise ImportError(f"the source of {package} cannot be read, which names what it offers")
    return str(source)


PACKAGE = "coach_rl."
REMOVED = {
    "AttentionDiscretization": "BoxMasking and BoxDiscretization",
    "ObservationMoveAxisFilter": "a wrapper, e.g. gymnasium.wrappers.TransformObservation",
    "ObservationSqueezeFilter": "a wrapper, e.g. gymnasium.wrappers.ReshapeObservation",
    "RewardEwmaNormalizationFilter": "RewardNormalizationFilter or RewardReturnScalingFilter",
}
"""Names that version 0.3.0 has removed, and their replacements."""


@cache
def moved_names() -> dict[str, str]:
    """New paths by old ones, `module` or `module:name` each."""
    table: dict[str, str] = json.loads(
        files("coach_rl.core").joinpath("moved_names.json").read_text("utf-8")
    )
    return table


def current_name(name: str) -> str:
    """The `module:name` that a `module:name` of an earlier version has now."""
    if name in moved_names():
        return moved_names()[name]
    module, _, rest = name.partition(":")
    return f"{moved_names().get(module, module)}:{rest}"


class MovedModuleFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules under their earlier paths; a last resort of `sys.meta_path`."""

    def find_spec(
        self, fullname: str, *_: object, **__: object
    ) -> importlib.machinery.ModuleSpec | None:
        """A spec if the module has moved."""
        if not fullname.startswith(PACKAGE) or not (
            fullname in moved_names() or _names_of(fullname) or _is_package(fullname)
        ):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=_is_package(fullname))

    def exec_module(self, module: types.ModuleType) -> None:
        """Replace the module by the one that has moved, or fill in its names."""
        old = module.__name__
        if new := moved_names().get(old):
            _warn(old, new)
            sys.modules[old] = importlib.import_module(new)
        else:
            module.__getattr__ = _attributes(old)  # type: ignore[method-assign] # PEP 562


def find_moved_modules() -> None:
    """Install the finder of modules under their earlier paths."""
    if not any(isinstance(finder, MovedModuleFinder) for finder in sys.meta_path):
        sys.meta_path.append(MovedModuleFinder())


def moved_attribute(module: str, name: str) -> object:
    """An attribute of a module under its earlier name; AttributeError if there was none."""
    new = moved_names().get(f"{module}:{name}")
    if new is None:
        raise _unknown(module, name)
    _warn(f"{module}.{name}", new.replace(":", "."))
    home, _, name_there = new.partition(":")
    return getattr(importlib.import_module(home), name_there)


def _unknown(module: str, name: str) -> Exception:
    """The error about a name that a module does not have, with those that may have been meant.

    An import statement would replace an AttributeError by one without them.
    """
    if name in REMOVED:
        instead = f"; it was removed in 0.3.0, use {REMOVED[name]}"
    else:
        public = vars(sys.modules[module]).get("__all__", ())
        near = CLASSES.get(name) or near_names(name, public)
        instead = f"; did you mean {' or '.join(near)}?" if near else ""
    caller = sys._getframe(3)
    if caller.f_code.co_code[caller.f_lasti] == opmap["IMPORT_FROM"]:
        return ImportError(f"cannot import name {name!r} from {module!r}{instead}", name=name)
    return AttributeError(f"module {module!r} has no attribute {name!r}{instead}", name=name)


def _attributes(module: str) -> Callable[[str], object]:
    def get_attribute(name: str) -> object:
        thing = moved_attribute(module, name)
        setattr(sys.modules[module], name, thing)
        return thing

    return get_attribute


@cache
def _names_of(module: str) -> bool:
    return any(name.startswith(f"{module}:") for name in moved_names())


@cache
def _is_package(name: str) -> bool:
    return any(old.startswith(f"{name}.") for old in moved_names())


def _warn(old: str, new: str) -> None:
    message = f"{old} is deprecated and will be removed in the next release; use {new}"
    warnings.warn(message, DeprecationWarning, stacklevel=_level_of_importer())


def _level_of_importer() -> int:
    """The stack level, for `_warn`, of the first frame outside this package's import machinery."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in _MACHINERY:
        level, frame = level + 1, frame.f_back
        while frame.f_back is not None and "importlib" in frame.f_code.co_filename:
            frame = frame.f_back  # `warn` does not count these
    return level


_MACHINERY = {__file__}
