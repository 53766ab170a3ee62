"""A user's file as a module: a preset, and the files beside it that it imports.

The file is executed under a module name made of its content, so that classes defined in it keep
one identity and a run folder can bring the same module back from its copy of the source. Its folder
is put in front of Python's search path, as for a script, so it may import its neighbours. A run
folder keeps the preset's own source, not theirs: resuming and evaluating import them from where the
preset was, and a warning names those that have changed since.
"""

import ast
import hashlib
import re
import sys
import traceback
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from types import ModuleType

import coach_rl
from coach_rl.configuration.trust import PRESET_MODULE
from coach_rl.core.errors import ConfigurationError, suggestion


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
        ConfigurationError: The source does not parse or fails when run; says the line.
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
        package, file = name.partition(".")[0], Path(getattr(module, "__file__", None) or ".")
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
    digest = hashlib.sha256(source.encode()).hexdigest()[:12]
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
    return ConfigurationError(f"{kind} {where}: {type(error).__name__}: {error}{_advice(error)}")


def _advice(error: BaseException) -> str:
    """The correction of a name that coach_rl does not have, or of a relative import."""
    if "attempted relative import" in str(error):
        return "; write `import neighbour` for a file beside the preset, without the dot"
    misspelt = re.match(r"cannot import name '(\w+)' from 'coach_rl' ", str(error))
    return suggestion(misspelt[1], coach_rl.__all__) if misspelt else ""


def _digest(file: Path) -> str | None:
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()[:12]
    except OSError:
        return None


def _imported_packages(source: str) -> set[str]:
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return set()  # running the file says what is wrong, with its line
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.partition(".")[0] for module in modules}
