"""Trust in the code that a run's folder names.

A manifest names classes, functions and modules, and its folder has a copy of a preset. Another
user's folder may name anything. So before anything is imported or called, its module has to be
one of coach_rl or of an environment package we adapt, one that the user names (`--trust MODULE`,
`trust=("MODULE",)`), or one that an own run on this machine has used. The latter are remembered in
the user's state folder, where a run folder cannot write:

    ~/.local/state/coach_rl/own_code     (Linux, or below $XDG_STATE_HOME; platformdirs elsewhere)
        module my_environments
        folder /home/me/walking
        preset <sha256 of its source> /home/me/walk.py
"""

import contextlib
import importlib
import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from importlib.resources import files
from itertools import filterfalse
from pathlib import Path
from typing import Self

import platformdirs

from coach_rl.configuration.file_writing import sha256_of
from coach_rl.configuration.presets import shipped_presets
from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import CodeNamingParameters

OURS = "coach_rl"
ADAPTED = ("ale_py", "gymnasium", "gymnasium_robotics", "mpe2", "pettingzoo", "popgym", "torch.nn")
"""Modules whose classes may be named, and the environments that they register; no functions."""
PRESET_MODULE = "coach_preset_"
"""Beginning of the names of presets' modules, which end in a digest of their content."""
MAKERS = ("parallel_env", "env")
"""The functions that may be: they make environments in PettingZoo's modules."""
TAGS = ("$type", "$enum", "$reference")
"""Keys in JSON whose values name code."""


@dataclass(frozen=True, kw_only=True)
class Trust:
    """The modules that are trusted besides ours."""

    modules: frozenset[str] = frozenset()
    """Names of modules; whatever is below them is trusted as well."""

    def plus(self, *modules: str) -> Self:
        """The same with more modules."""
        return replace(self, modules=self.modules | set(modules))

    def untrusted(self, names: Iterable[str]) -> list[str]:
        """Those names, `module:name`, whose modules are not trusted."""
        return sorted(set(filterfalse(self._has, names)))

    def require(self, names: Iterable[str], source: object) -> None:
        """Raise a `ConfigurationError` unless all names, `module:name`, are trusted.

        Args:
            names: What is named.
            source: Whatever names it, for the error.
        """
        missing = self.untrusted(names)
        if missing:
            modules = ",".join(sorted(set(map(_module, missing))))
            raise ConfigurationError(
                f"{source} names {', '.join(missing)}: code that no run of yours on this machine "
                "has used, and that is not run; if you would run programs of its author, add "
                f"--trust {modules} (in Python trust={tuple(modules.split(','))})"
            )

    def _has(self, name: str) -> bool:
        module = _module(name)
        if _is_below(module, (OURS, *self.modules)):
            return True
        return _is_below(module, ADAPTED) and _is_class_or_id(module, name)


OURS_ALONE = Trust()
"""Trust in nothing but coach_rl and the environment packages it adapts."""


def users_trust(modules: Collection[str] = ()) -> Trust:
    """Trust in what the user's own runs on this machine have used, and in modules that are named.

    Raises:
        ConfigurationError: What should be trusted is not the name of a module.
    """
    for module in modules:
        if not re.fullmatch(r"[A-Za-z_]\w*(\.\w+)*", module):
            raise ConfigurationError(
                f"--trust takes the names of modules, e.g. my_package.environments, got '{module}'"
            )
    return Trust(modules=frozenset([*modules, *_own("module ")]))


def is_own_preset(source: str, file: str) -> bool:
    """Return whether an own run on this machine had a preset with this text, at this place."""
    return _preset_line(source, file) in _own_code()


def shipped_preset(source: str) -> Path | None:
    """The file of the shipped preset with this text; None where it is no preset of the package.

    A trained agent of the package may have been made by an earlier text of its preset.
    """
    paths = {preset.path.name: preset.path for preset in shipped_presets().values()}
    for file in paths.values():
        if file.read_text(encoding="utf-8") == source:
            return file
    return paths.get(_presets_of_trained_agents().get(sha256_of(source), ""))


def own_folders() -> set[str]:
    """The folders that own runs on this machine have imported modules from."""
    return _own("folder ")


def remember_own_code(
    names: Iterable[str], preset: tuple[str, str] | None, folders: Iterable[str] = ()
) -> None:
    """Remember what a run that the user begins uses.

    Args:
        names: All code that its manifest names, as `module:name`.
        preset: Source and file of its preset; None for a run without one.
        folders: The folders that its modules have been imported from.
    """
    if preset is not None:  # which is known by its whole text
        names = [name for name in names if not name.startswith(PRESET_MODULE)]
    lines = [f"module {module}" for module in {*map(_module, OURS_ALONE.untrusted(names))}]
    lines += [f"folder {folder}" for folder in folders]
    if preset is not None:
        lines.append(_preset_line(*preset))
    known = _own_code()
    new = [line for line in lines if line not in known and "\n" not in line]
    if not new:
        return
    try:
        _file().parent.mkdir(parents=True, exist_ok=True)
        with _file().open("a", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in new))
    except OSError:
        return  # a home that cannot be written to: resuming will require --trust


def code_in_json(document: Json) -> Iterator[str]:
    """All that the tags of a JSON document name."""
    for key, part in _nodes(document):
        if key in TAGS:
            yield str(part)


def texts_like_code(document: Json) -> Iterator[str]:
    """All texts of a JSON document that have the form `module:name`."""
    texts = (part for _, part in _nodes(document) if isinstance(part, str))
    return filter(re.compile(r"[A-Za-z_]\w*(\.\w+)*:[^\s:]+").fullmatch, texts)


def _nodes(document: Json, key: str = "") -> Iterator[tuple[str, Json]]:
    """A JSON document and all parts of it, each with its key; empty for the parts of lists."""
    yield key, document
    match document:
        case dict():
            for name, part in document.items():
                yield from _nodes(part, name)
        case list():
            for part in document:
                yield from _nodes(part)


def code_in_parameters(parameters: object) -> Iterator[str]:
    """All that parameters import by name when they are built, see `CodeNamingParameters`."""
    if isinstance(parameters, CodeNamingParameters):
        yield from parameters.code_names()
    if isinstance(parameters, Mapping):
        for part in parameters.values():
            yield from code_in_parameters(part)
    elif isinstance(parameters, tuple | list):
        for part in parameters:
            yield from code_in_parameters(part)
    elif is_dataclass(parameters) and not isinstance(parameters, type):
        for field in fields(parameters):
            yield from code_in_parameters(getattr(parameters, field.name))


def _module(name: str) -> str:
    return name.rpartition(":")[0] or name


def _is_below(module: str, roots: Iterable[str]) -> bool:
    return any(f"{module}.".startswith(f"{root}.") for root in roots)


def _is_class_or_id(module_name: str, name: str) -> bool:
    """Return whether a module of `ADAPTED` has a class of that name, or may register that id."""
    attribute = name.rpartition(":")[2]
    try:
        found = getattr(importlib.import_module(module_name), attribute, None)
    except ImportError:
        return True  # not installed; building it raises an error with the command
    if isinstance(found, type):
        return _is_below(found.__module__, ADAPTED)
    return found is None or attribute in MAKERS


def _preset_line(source: str, file: str) -> str:
    return f"preset {sha256_of(source)} {file}"


@cache
def _presets_of_trained_agents() -> dict[str, str]:
    """Files of the presets in the package's trained agents, by the checksum of their text."""
    table = files(OURS).joinpath("trained", "presets.json")
    names: dict[str, str] = json.loads(table.read_text("utf-8"))
    return names


def _own(kind: str) -> set[str]:
    """The code that own runs on this machine have used, of the lines that begin with a word."""
    return {line.removeprefix(kind) for line in _own_code() if line.startswith(kind)}


def _own_code() -> set[str]:
    lines: set[str] = set()
    with contextlib.suppress(OSError, UnicodeDecodeError):
        lines |= set(_file().read_text(encoding="utf-8").splitlines())
    return lines


def _file() -> Path:
    return platformdirs.user_state_path("coach_rl") / "own_code"
