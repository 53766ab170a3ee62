"""Modules and names under their paths of earlier versions.

`moved_names.json`, written by `.ci/moved_names.py`, maps a module that has moved to its new path,
and `module:name` to `module:name` where a module was split or a name has changed. The folders of
earlier runs hold such names; imports of them work for one release, with a DeprecationWarning.
"""

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
        instead = f"; it was removed in 0.3.0, use {REMOVED[name]}" if name in REMOVED else ""
        raise AttributeError(f"module {module!r} has no attribute {name!r}{instead}", name=name)
    _warn(f"{module}.{name}", new.replace(":", "."))
    home, _, name_there = new.partition(":")
    return getattr(importlib.import_module(home), name_there)


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


_MACHINERY = {__file__, __file__.replace("moved_names", "lazy_names")}
