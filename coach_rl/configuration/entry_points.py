"""Presets, commands and extensions of installed packages, by entry points.

    [project.entry-points."coach.presets"]
    Walk_PPO = "my_package.presets.walk"                    # a module with `graph_manager`
    Walk_SAC = "my_package.presets.walk:sac"                # or the function in it

    [project.entry-points."coach.commands"]
    gait = "my_package.commands:gait"                       # gait(words: list[str]) -> int | None

    [project.entry-points."coach.extensions"]
    gaits = "my_package.gaits"                              # a package with an extension.toml

Listing them executes nothing: names are read from the metadata of packages, and modules are found
without importing the packages that they are in. A preset is executed when it is named, a command
when it is called. The metadata is read here and not by `importlib.metadata`, where one malformed
line of any package is an error for all of them.
"""

import importlib
import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from typing import TypeAlias

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.shown_text import printable

PRESETS = "coach.presets"
COMMANDS = "coach.commands"
EXTENSIONS = "coach.extensions"
_GROUPS = (PRESETS, COMMANDS, EXTENSIONS)
EntryPoint: TypeAlias = tuple[str, str, str, str]
"""Group, name, value, and the package with its version."""
_FILE = "entry_points.txt"
_MOST_BYTES = 1_000_000
_LONGEST_NAME = 80
"""Bytes of a file and characters of a name that are read; packages come nowhere near them."""


@dataclass(frozen=True, kw_only=True)
class InstalledEntry:
    """An entry point of an installed package."""

    name: str
    """The name by which the command line knows it."""
    package: str
    """The package that has it, with its version."""
    module: str
    """The module that it names."""
    attribute: str
    """The name in the module; empty where it names the module alone."""
    file: Path | None
    """The file of the module; None where there is none."""
    problem: str
    """Reason why it cannot be used; empty where it can, as far as is known without executing it."""


def installed_entries(
    group: str, taken: Collection[str] = (), points: Sequence[EntryPoint] | None = None
) -> list[InstalledEntry]:
    """The entry points of a group, by name; those that cannot be used have a problem.

    Args:
        group: `PRESETS`, `COMMANDS` or `EXTENSIONS`.
        taken: Names that are in use; of two packages with one name the first has it.
        points: What `entry_points` returned; None reads them now.
    """
    points = entry_points() if points is None else points
    named = [point[1:] for point in points if point[0] == group]
    owners = dict.fromkeys((name.lower() for name in taken), "coach_rl")
    found = []
    for name, value, package in sorted(named, key=lambda point: point[0].lower()):
        module, _, attribute = (part.strip() for part in value.partition("[")[0].partition(":"))
        is_named = all(map(str.isidentifier, module.split(".")))
        file = _file_of(module) if is_named else None
        owner = owners.setdefault(name.lower(), package)
        problem = ""
        if not (name and is_named):
            problem = f"'{name} = {value[:_LONGEST_NAME]}' is malformed; write name = module"
        elif owner != package:
            problem = f"{owner} has one of that name"
        elif file is None:
            problem = f"there is no module {module[:_LONGEST_NAME]}"
        elif group == COMMANDS and not attribute:
            problem = f"'{value}' names no function; write module:function"
        found.append(
            InstalledEntry(
                name=name,
                package=package,
                module=module,
                attribute=attribute,
                file=file,
                problem=problem,
            )
        )
    return found


def require_usable(entries: Iterable[InstalledEntry], name: str) -> InstalledEntry | None:
    """The entry of a name in any case; None where there is none.

    Raises:
        ConfigurationError: There is one, and it cannot be used.
    """
    named = [entry for entry in entries if entry.name.lower() == name.lower()]
    usable = [entry for entry in named if not entry.problem]
    if named and not usable:
        raise ConfigurationError(
            f"'{name}' of the package {named[0].package} cannot be used: {named[0].problem}; "
            "correct its entry point, or uninstall it"
        )
    return usable[0] if usable else None


def load_command(entry: InstalledEntry) -> Callable[[Sequence[str]], object]:
    """The function of a command; its module is imported.

    Raises:
        ConfigurationError: The module cannot be imported, or has no such function.
    """
    where = f"the command '{entry.name}' of the package {entry.package}"
    try:
        found = importlib.import_module(entry.module)
        for part in entry.attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise ConfigurationError(
            f"{where} cannot be used: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{where} cannot be used: {entry.attribute} is no function")
    return found


def entry_points() -> list[EntryPoint]:
    """The entry points of all installed packages, without control characters."""
    found = []
    for package, file in _metadata():
        try:
            with file.open("rb") as opened:
                text = opened.read(_MOST_BYTES).decode(errors="backslashreplace")
        except OSError:
            continue
        section = ""
        for line in map(str.strip, text.split("\n")):
            if line.startswith("["):
                section = line.strip("[] ")
            elif section in _GROUPS and line and line[0] not in "#;":
                name, _, value = map(str.strip, line.partition("="))
                found.append((section, printable(name[:_LONGEST_NAME]), printable(value), package))
    return found


def _metadata() -> Iterator[tuple[str, Path]]:
    """Each installed package, with its version, that has entry points, and the file of these.

    Of several of one name, the first in Python's search path is the one that is imported.
    """
    seen = set()
    for folder in sys.path:
        found: list[str] = []
        with suppress(OSError):
            found = sorted(os.listdir(folder or "."))
        for about in found:
            stem, ending = os.path.splitext(about)
            name, version, *_ = [*stem.split("-"), ""]
            key = name.lower().replace(".", "_")
            if ending in (".dist-info", ".egg-info") and key not in seen:
                seen.add(key)
                file = Path(folder, about, _FILE)
                if file.is_file():  # opening a pipe would wait for its writer
                    yield printable(f"{name} {version}".strip()), file


def _file_of(module: str) -> Path | None:
    """The file of a module, found without importing the packages that it is in; None without."""
    path = None
    name = ""
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec is not None and spec.origin else None
