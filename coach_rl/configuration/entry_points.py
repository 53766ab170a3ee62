"""Presets and commands of installed packages, by entry points.

    [project.entry-points."coach.presets"]
    Walk_PPO = "my_package.presets.walk"                    # a module with `graph_manager`
    Walk_SAC = "my_package.presets.walk:sac"                # or the function in it

    [project.entry-points."coach.commands"]
    gait = "my_package.commands:gait"                       # gait(words: list[str]) -> int | None

Listing them executes nothing: names are read from the metadata of packages, and modules are found
without importing the packages that they are in. A preset is executed when it is named, a command
when it is called.
"""

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from coach_rl.core.errors import ConfigurationError

PRESETS = "coach.presets"
COMMANDS = "coach.commands"


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


def installed_entries(group: str, taken: Collection[str] = ()) -> list[InstalledEntry]:
    """The entry points of a group, by name; those that cannot be used have a problem.

    Args:
        group: `PRESETS` or `COMMANDS`.
        taken: Names that are in use; of two packages with one name the first has it.
    """
    owners = dict.fromkeys((name.lower() for name in taken), "coach_rl")
    found = []
    for point in sorted(entry_points(group=group), key=_order):
        package, file = _package(point), _file_of(point.module)
        owner = owners.setdefault(point.name.lower(), package)
        problem = ""
        if owner != package:
            problem = f"{owner} has one of that name"
        elif file is None:
            problem = f"there is no module {point.module}"
        elif group == COMMANDS and not point.attr:
            problem = f"'{point.value}' names no function; write module:function"
        found.append(
            InstalledEntry(
                name=point.name,
                package=package,
                module=point.module,
                attribute=point.attr,
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
    except Exception as error:
        raise ConfigurationError(
            f"{where} cannot be used: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise ConfigurationError(f"{where} cannot be used: {entry.attribute} is no function")
    return found


def _order(point: EntryPoint) -> tuple[str, str]:
    return point.name.lower(), _package(point)


def _package(point: EntryPoint) -> str:
    return "unknown" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def _file_of(module: str) -> Path | None:
    """The file of a module, found without importing the packages that it is in; None without."""
    path, name = None, ""
    for part in module.split("."):
        name = f"{name}.{part}".lstrip(".")
        spec = PathFinder.find_spec(name, path)
        if spec is None:
            return None
        path = list(spec.submodule_search_locations or ())
    return Path(spec.origin) if spec is not None and spec.origin else None
