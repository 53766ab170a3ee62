"""Environments in the user's files, for messages about names that nearly are `module:Class`."""

import ast
import re
from itertools import islice
from pathlib import Path

MOST_FILES = 200
"""Files of a folder that are read."""


def classes_meant(text: str, folder: Path | None = None) -> list[str]:
    """The environments that a text may mean, as `module:Class`; files are read, not imported.

    Args:
        text: `module.Class`, `module.py:Class`, `module.py`, `module` or `Class`.
        folder: Where the files are; None: the working directory.
    """
    folder = Path.cwd() if folder is None else folder
    words = [word for word in re.split(r"[:.]", text) if word not in ("", "py")]
    return [
        f"{file.stem}:{name}"
        for file in islice(sorted(folder.glob("*.py")), MOST_FILES)
        for name in environment_classes(file)
        if words in ([file.stem], [file.stem, name], [name])
    ]


def environment_classes(file: Path) -> list[str]:
    """The classes at the top of a file that derive from an environment or a wrapper of one."""
    try:
        body = ast.parse(file.read_text(encoding="utf-8")).body
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        node.name
        for node in body
        if isinstance(node, ast.ClassDef)
        and any(re.search(r"(Env|Wrapper)\b", ast.unparse(base)) for base in node.bases)
    ]
