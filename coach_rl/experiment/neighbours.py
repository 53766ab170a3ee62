"""The files beside a preset, which it may import like a script its neighbours.

A run folder keeps the preset's own source, not theirs: resuming and evaluating import them from
where the preset was, and a warning names those that have changed since.
"""

import ast
import hashlib
import sys
from pathlib import Path

from coach_rl.core.errors import ConfigurationError


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
    if str(folder) in sys.path:
        sys.path.remove(str(folder))
    sys.path.insert(0, str(folder))
    for name in _imported_packages(source):
        own = [folder / f"{name}.py", folder / name / "__init__.py"]
        loaded = getattr(sys.modules.get(name), "__file__", None)
        if loaded is not None and Path(loaded) not in own and any(map(Path.is_file, own)):
            raise ConfigurationError(
                f"the preset imports '{name}' from {folder}, but {loaded} has been imported under "
                "that name already; rename one, or load the presets in different processes"
            )


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


def changed_neighbours(folder: Path, recorded: dict[str, str | None]) -> list[str]:
    """Return the recorded files that have changed or are gone."""
    return [name for name, digest in recorded.items() if _digest(folder / name) != digest]


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
