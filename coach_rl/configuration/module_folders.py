"""Folders that the user's own modules are imported from, such as `my_env` of `my_env:MyEnv`.

A module that a new experiment names is found in the working directory, as by `python -m`. The
manifest records the folder and the files imported from it. When the run is opened again, they are
imported from there, but only from folders that the user's own runs on this machine have used (see
`trust`): a run folder of another user cannot make Python search a folder by naming it.
"""

import sys
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType

from coach_rl.configuration.preset_module import imported_neighbours, search_first
from coach_rl.configuration.strict_json import Json
from coach_rl.configuration.trust import OURS_ALONE, PRESET_MODULE, own_folders

_INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages, which Python searches anyway."""


def let_import_named(names: Iterable[str], folder: Path) -> None:
    """Let Python search a folder first if it has one of the named modules.

    Args:
        names: Names of code, each as `module:name`.
        folder: The user's own folder, usually the working directory.
    """
    if any(_has(folder, package, is_dotted) for package, is_dotted in _own_packages(names)):
        search_first(folder)


def let_import_recorded(recorded: Mapping[str, Json]) -> None:
    """Let Python search those of the folders in a manifest that the user's own runs have used."""
    own = own_folders()
    for folder in recorded:
        if folder in own:
            search_first(Path(folder))


def imported_folders(names: Iterable[str]) -> dict[str, Json]:
    """Folders that named modules have been imported from, each with digests of its imported files.

    Installed packages are left out.

    Args:
        names: Names of code, each as `module:name`.
    """
    modules = (sys.modules.get(package) for package, _ in _own_packages(names))
    folders = {folder for module in modules if module and (folder := _home(module)) is not None}
    return {str(folder): imported_neighbours(folder) for folder in sorted(folders)}


def _own_packages(names: Iterable[str]) -> set[tuple[str, bool]]:
    """The top-level packages of the user's own modules; whether the module is below it."""
    own = {name.rpartition(":")[0] for name in OURS_ALONE.untrusted(names)}
    return {
        (name.partition(".")[0], "." in name)
        for name in own
        if name and not name.startswith(PRESET_MODULE)
    }


def _has(folder: Path, package: str, is_dotted: bool) -> bool:
    spec = PathFinder.find_spec(package, [str(folder)])
    # Any folder counts as a package without __init__.py, but only what is below it has code.
    return spec is not None and (spec.origin is not None or is_dotted)


def _home(module: ModuleType) -> Path | None:
    """The folder that a top-level module or package is in; None if it is installed or built in."""
    places = [*getattr(module, "__path__", ()), getattr(module, "__file__", None)]
    if module.__name__ == "__main__" or not isinstance(places[0], str):
        return None
    folder = Path(places[0]).absolute().parent
    is_library = folder.is_relative_to(sys.base_prefix) or folder.is_relative_to(sys.prefix)
    return None if is_library or set(_INSTALLED) & set(folder.parts) else folder
