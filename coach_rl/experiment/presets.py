"""Where presets are: by name in the shipped folder, or a file of the user's own.

Nothing here runs a preset: names and descriptions are read from the source, so listing them is
quick and one broken preset does not hide the others.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from coach_rl.core.errors import ConfigurationError, UnknownNameError

DEFAULT_FUNCTION = "graph_manager"
"""What a preset file defines: a function that returns a GraphManager, or a ready-made one."""

SHIPPED = "coach_rl.presets"
"""The package whose folder holds the shipped presets."""


@dataclass(frozen=True, kw_only=True)
class PresetReference:
    """A preset that exists: its file and the name in it to call."""

    path: Path
    """The preset's file."""
    function: str = DEFAULT_FUNCTION
    """The function (or ready-made GraphManager) in the file."""

    @property
    def name(self) -> str:
        """What a run of it is called unless the user says otherwise."""
        plain = self.function == DEFAULT_FUNCTION
        return self.path.stem if plain else f"{self.path.stem}_{self.function}"


def find_preset(text: str) -> PresetReference:
    """The preset that `NAME`, `FILE.py` or either with `:FUNCTION` speaks of.

    Args:
        text: A shipped preset's name in any case, or a path.

    Raises:
        UnknownNameError: No shipped preset has that name.
        ConfigurationError: There is no such file.
    """
    location, function = _split_function(text)
    if location.endswith(".py") or "/" in location or "\\" in location:
        path = Path(location).expanduser()
        if not path.is_file():
            raise ConfigurationError(
                f"there is no preset file '{location}'; give a file that exists or a name "
                "from `coach -l`"
            )
        return PresetReference(path=path.resolve(), function=function)
    shipped = shipped_presets()
    by_lower = {name.lower(): name for name in shipped}
    if location.lower() not in by_lower:
        raise UnknownNameError("preset", location, shipped, "`coach -l` lists them")
    return PresetReference(path=shipped[by_lower[location.lower()]], function=function)


def shipped_presets() -> dict[str, Path]:
    """The files of the shipped presets, by name."""
    with resources.as_file(resources.files(SHIPPED)) as folder:
        files = sorted(folder.glob("*.py"))
    return {file.stem: file for file in files if not file.stem.startswith("_")}


def describe_presets() -> Iterator[tuple[str, str]]:
    """Every shipped preset and the first line of its docstring."""
    for name, path in shipped_presets().items():
        yield name, _first_docstring_line(path)


def _split_function(text: str) -> tuple[str, str]:
    match = re.fullmatch(r"(.+):([A-Za-z_]\w*)", text)
    return (match[1], match[2]) if match else (text, DEFAULT_FUNCTION)


def _first_docstring_line(path: Path) -> str:
    """From the preset's function, or from its file where the function has none."""
    try:
        module = ast.parse(path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        return f"(cannot be read: {error.msg}, line {error.lineno})"
    functions = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name == DEFAULT_FUNCTION
    ]
    docstrings = [*map(ast.get_docstring, functions), ast.get_docstring(module)]
    return next((text.splitlines()[0] for text in docstrings if text), "")
