"""Environments in the user's files, for messages about names that nearly are `module:Class`."""

import ast
import re
from itertools import islice
from pathlib import Path
from typing import Any

from coach_rl.core.errors import near_names
from coach_rl.core.shown_text import name_of_class

MOST_FILES = 200
"""Files of a folder that are read."""
MOST_MEANT = 5
"""Environments that a message names."""


def classes_meant(text: str, folder: Path | None = None) -> list[str]:
    """The environments that a text may mean, as `module:Class`; files are read, not imported.

    Args:
        text: `module.Class`, `./module.py:Class`, `module.py`, `module`, `Class`, `Class()` or
            `Class(argument=1)`; the module may be misspelt where the class is not.
        folder: Where the files are; None: the working directory.
    """
    folder = Path.cwd() if folder is None else folder
    named = text.partition("(")[0]
    words = [word for word in re.split(r"[:./\\]", named) if word not in ("", "py")]
    there = [
        (file.stem, name)
        for file in islice(sorted(folder.glob("*.py")), MOST_FILES)
        for name in environment_classes(file)
    ]
    exact = [(stem, name) for stem, name in there if words in ([stem], [stem, name], [name])]
    near = [
        (stem, name)
        for stem, name in there
        if len(words) > 1 and words[-1] == name and near_names(words[-2], [stem])
    ]
    return [f"{stem}:{name}" for stem, name in (exact or near)[:MOST_MEANT]]


def name_of_environment(level: object) -> str:
    """The end of an error message: the name of an environment given instead of its name."""
    spec: Any = getattr(level, "spec", None)
    if spec is not None and type(level).__module__.startswith("gymnasium."):
        return f"; give its name, {spec.id!r}"
    return name_of_class(level)


def environment_classes(file: Path) -> list[str]:
    """The classes and functions at the top of a file that make environments.

    The classes derive from an environment or a wrapper of one, or from such a class above them; the
    functions are annotated to return one.
    """
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    found: list[str] = []
    for node in body:
        match node:
            case ast.ClassDef(name=name, bases=[*makes]):
                pass
            case ast.FunctionDef(name=name, returns=ast.expr() as returned):
                makes = [returned]
            case _:
                continue
        kinds = [ast.unparse(each) for each in makes]
        if any(kind in found or re.search(r"(Env|Wrapper)\b", kind) for kind in kinds):
            found.append(name)
    return found
