"""The user's own modules: a preset's file, the files beside it, and modules that parameters name.

A preset's file is executed under a module name made of its content, so that classes defined in it
keep one identity and a run folder can restore the same module from its copy of the source. Its
folder is put in front of Python's search path, as for a script, so it may import its neighbours. A
run folder keeps the preset's own source, not theirs: resuming and evaluating import them from where
the preset was, and a warning names those that have changed since.

A module that a new experiment names, such as `my_env` of `my_env:MyEnv`, is found in the working
directory, as by `python -m`. The manifest records the folder and the files imported from it. When
the run is opened again, they are imported from there, but only from folders that the user's own
runs on this machine have used (see `trust`): a run folder of another user cannot make Python search
a folder by naming it.
"""

import ast
import os
import re
import sys
import traceback
from collections.abc import Iterable, Mapping
from importlib.machinery import PathFinder
from itertools import islice
from pathlib import Path
from types import ModuleType

import coach_rl
from coach_rl.configuration.file_writing import sha256_of, sha256_of_file
from coach_rl.configuration.strict_json import Json
from coach_rl.configuration.trust import OURS_ALONE, PRESET_MODULE, own_folders
from coach_rl.core.errors import ConfigurationError, suggestion
from coach_rl.core.shown_text import shown_error

_INSTALLED = ("site-packages", "dist-packages")
"""Folders of installed packages, which Python searches anyway."""


def load_module(
    module_name: str, source: str, *, path: Path, file: Path, kind: str = "preset"
) -> ModuleType:
    """The module of a preset's source, executed once per process.

    Args:
        module_name: The name it is registered under.
        source: Its text.
        path: Where the text was read, for tracebacks.
        file: What the preset sees as `__file__`: where it came from, so that the files beside it
            are found and can be imported.
        kind: What the file is, for errors.

    Raises:
        ConfigurationError: The source does not parse or fails when run; the message has the line.
    """
    let_import_from(file.parent, source)
    if module_name in sys.modules:
        return sys.modules[module_name]
    module = ModuleType(module_name)
    module.__file__ = str(file)
    sys.modules[module_name] = module
    try:
        exec(compile(source, str(path), "exec", dont_inherit=True), module.__dict__)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, KeyboardInterrupt):
            raise
        raise file_error(path, error, kind) from error
    return module


def let_import_from(folder: Path, source: str) -> None:
    """Put a preset's folder in front of Python's search path, where it stays.

    So an environment that the preset names is found when it is built, in worker processes as well.

    Args:
        folder: Where the preset is.
        source: Its text.

    Raises:
        ConfigurationError: It imports a file of its folder under whose name another preset's file
            has been imported already.
    """
    search_first(folder)
    for name in _imported_packages(source):
        own = [folder / f"{name}.py", folder / name / "__init__.py"]
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is not None and Path(loaded) not in own and any(map(Path.is_file, own)):
            raise ConfigurationError(
                f"the preset imports '{name}' from {folder}, but {loaded} has been imported under "
                "that name already; rename one, or load the presets in different processes"
            )


def search_first(folder: Path) -> None:
    """Put a folder in front of Python's search path."""
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))


def imported_neighbours(folder: Path) -> dict[str, str | None]:
    """The files of a preset's folder that have been imported, each with a digest of its content.

    Args:
        folder: Where the preset is.

    Returns:
        Digests by path below the folder. Modules of coach_rl and installed packages are left out.
    """
    found = {}
    for name, module in list(sys.modules.items()):
        package = name.partition(".")[0]
        text = getattr(module, "__file__", None) or ""
        if not os.path.normpath(text).startswith(str(folder)):  # quicker than thousands of Paths
            continue
        file = Path(text)
        if package != "coach_rl" and file.is_relative_to(folder):
            below = file.relative_to(folder)
            if below.parts[:1] in ((package,), (f"{package}.py",)):
                found[str(below)] = _digest(file)
    return dict(sorted(found.items()))


def changed_neighbours(folder: Path, recorded: Mapping[str, str | None]) -> list[str]:
    """Return the recorded files in whose place another one is imported now.

    A file that is neither in its folder nor where Python searches is left out: what needs it fails,
    and nothing else depends on it.
    """
    places = (folder, *map(Path, sys.path))
    return [
        name
        for name, digest in recorded.items()
        for file in islice(filter(Path.is_file, (place / name for place in places)), 1)
        if _digest(file) != digest
    ]


def preset_module(path: Path, source: str) -> str:
    """The name of a preset's module: its file's, and a digest of its text."""
    digest = sha256_of(source)[:12]
    stem = re.sub(r"\W", "_", path.stem)
    return f"{PRESET_MODULE}{stem}_{digest}"


def file_error(path: Path, error: BaseException, kind: str = "preset") -> ConfigurationError:
    """An error that the code of a user's file has raised, with the line of the file."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.filename == str(path):
        lines.append(error.lineno)
        error = SyntaxError(error.msg)
    where = f"{path}:{lines[-1]}" if lines else str(path)
    return ConfigurationError(f"{kind} {where}: {shown_error(error)}{_advice(error)}")


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
    own = own_folders() if recorded else set()
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


def _advice(error: BaseException) -> str:
    """The correction of a name that coach_rl does not have, or of a relative import."""
    if "attempted relative import" in str(error):
        return "; write `import neighbour` for a file beside the preset, without the dot"
    misspelt = re.match(r"cannot import name '(\w+)' from 'coach_rl' ", str(error))
    return suggestion(misspelt[1], coach_rl.__all__) if misspelt else ""


def _digest(file: Path) -> str | None:
    try:
        return sha256_of_file(file)[:12]
    except OSError:
        return None


def _imported_packages(source: str) -> set[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return set()  # running the file raises an error with its line
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.partition(".")[0] for module in modules}


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
