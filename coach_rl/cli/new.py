"""`coach new`: files to begin with, from the templates beside this file."""

import keyword
import re
import sys
from importlib.machinery import PathFinder
from importlib.resources import files
from pathlib import Path
from string import Template

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import program, word
from coach_rl.core.errors import ConfigurationError

_NEXT = {
    "preset": "train:      {coach} train {file}",
    "environment": "check:      {coach} check {module}:{name}\n"
    "train:      {coach} train PPO -lvl {module}:{name}",
    "agent": "train:      {coach} train {file}",
}
"""The commands that the file of each kind is for."""


def write_new(given: Given) -> int:
    """Write a file of a kind, and its test; the exit code."""
    folder = given.to or Path()
    names = _names(given.kind, given.name, folder)
    file = folder / f"{names['module']}.py"
    test = folder / f"test_{names['module']}.py"
    templates = files("coach_rl.cli").joinpath("templates")
    written: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, template in ((file, given.kind), (test, f"{given.kind}_test")):
            text = templates.joinpath(f"{template}.py.txt").read_text("utf-8")
            with path.open("x", encoding="utf-8") as opened:  # follows no link
                written.append(path)
                opened.write(Template(text).substitute(names))
    except (OSError, ValueError) as error:
        for path in written:
            path.unlink()
        if isinstance(error, FileExistsError) and folder.is_dir():
            raise ConfigurationError(
                f"{error.filename} exists, and nothing is written; choose another name, or another "
                "folder with --to"
            ) from error
        reason = getattr(error, "strerror", None) or error
        raise ConfigurationError(
            f"cannot write to {folder}: {reason}; choose another folder with --to, or another name"
        ) from error
    hint = _NEXT[given.kind].format(
        coach=program("coach"),
        file=word(file.absolute()),
        module=names["module"],
        name=names["Class"],
    )
    print(f"written:    {file}, {test}")
    print(f"test:       {program('pytest')} {word(test.absolute())}")
    print(hint)
    return 0


def _names(kind: str, name: str, folder: Path) -> dict[str, str]:
    """The name as it was given, as that of a class, and as that of a module.

    Raises:
        ConfigurationError: It is no name in Python, or that of another module.
    """
    class_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    module = name if kind == "preset" else snake
    for each in (name, class_name, module):
        if not each.isidentifier() or not each.isascii() or keyword.iskeyword(each):
            raise ConfigurationError(
                f"'{name}' cannot name {'an' if kind[0] in 'ae' else 'a'} {kind}; use letters, "
                "digits and underscores, such as Docking"
            )
    found = PathFinder.find_spec(module)
    own = found is not None and found.origin is not None and Path(found.origin).parent == folder
    if module in sys.stdlib_module_names or (found is not None and not own):
        raise ConfigurationError(
            f"there is a module {module} already, which Python would import instead; choose "
            "another name"
        )
    return {"name": name, "Class": class_name, "module": module}
