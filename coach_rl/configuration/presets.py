"""Search for presets: by name among the shipped ones and those of installed packages, or a file.

Nothing here runs a preset: names and descriptions are read from the source, so listing them is
quick and one broken preset does not hide the others.
"""

import ast
import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from pathlib import Path

from coach_rl.configuration.entry_points import PRESETS, installed_entries, require_usable
from coach_rl.configuration.familiar_names import familiar_presets
from coach_rl.configuration.own_classes import classes_meant
from coach_rl.core.errors import MOST_LISTED, ConfigurationError, UnknownNameError, near_names
from coach_rl.core.shown_text import printable

DEFAULT_FUNCTION = "graph_manager"
"""The object a preset file defines: a function that returns a GraphManager, or a ready-made one."""

SHIPPED = "coach_rl.presets"
"""The package whose folder holds the shipped presets."""


@dataclass(frozen=True, kw_only=True)
class PresetReference:
    """A preset that exists: its file and the name in it to call."""

    path: Path
    """The preset's file."""
    function: str = DEFAULT_FUNCTION
    """The function (or ready-made GraphManager) in the file."""
    title: str = ""
    """The name that an installed package gives it; empty: that of its file and function."""

    @property
    def name(self) -> str:
        """Name in listings, and default name of its runs."""
        if self.title:
            return self.title
        plain = self.function == DEFAULT_FUNCTION
        return self.path.stem if plain else f"{self.path.stem}_{self.function}"


def find_preset(text: str) -> PresetReference:
    """The preset that `NAME`, `FILE.py` or either with `:FUNCTION` names.

    Args:
        text: The name of a shipped preset or of one in an installed package, in any case, or a
            path; or an algorithm's, such as PPO, on the task that its panel is given.

    Raises:
        UnknownNameError: No preset has that name.
        ConfigurationError: There is no such file, or it is no Python file, or the package's entry
            point is broken.
    """
    location, function = _split_function(text)
    path = Path(location).expanduser()
    if path.is_dir() and "/" in location:
        raise ConfigurationError(
            f"'{location}' is a folder and no preset; `coach runs {location}` lists the runs in "
            f"it, and `coach resume {location}` trains the newest further"
        )
    if path.suffix or "/" in location or "\\" in location:
        if not path.is_file():
            raise ConfigurationError(
                f"there is no preset file '{location}'; give a file that exists or a name "
                "from `coach -l`"
            )
        if path.suffix != ".py":
            raise ConfigurationError(
                f"the preset file '{location}' is no Python file; a preset is a .py file that "
                f"defines {DEFAULT_FUNCTION}"
            )
        return PresetReference(path=path.resolve(), function=function or DEFAULT_FUNCTION)
    shipped = shipped_presets()
    algorithms = any_task_presets() if function is None else {}
    by_lower = {name.lower(): preset for name, preset in (shipped | algorithms).items()}
    if location.lower() not in by_lower and function is not None:
        for environment in classes_meant(text)[:1]:
            raise ConfigurationError(
                f"'{text}' is an environment, and no preset; train an algorithm on it with "
                f"`coach train PPO -lvl {environment}`"
            )
    found = by_lower.get(location.lower()) or _installed(location, shipped)
    return found if function is None else replace(found, function=function, title="")


def shipped_presets() -> dict[str, PresetReference]:
    """The shipped presets by name: each public function in a file that returns a GraphManager.

    Files whose names begin with a small letter are shared by presets and are none themselves.
    """
    with resources.as_file(resources.files(SHIPPED)) as folder:
        files = sorted(folder.glob("[A-Z]*.py"))
    found = [
        PresetReference(path=file, function=function)
        for file in files
        for function in _functions(file)
    ]
    return {preset.name: preset for preset in sorted(found, key=lambda preset: preset.name)}


def any_task_presets() -> dict[str, PresetReference]:
    """The presets that take any task, by algorithm: the functions of `any_task`."""
    with resources.as_file(resources.files(SHIPPED)) as folder:
        file = folder / "any_task.py"
    return {
        name: PresetReference(path=file, function=name, title=name) for name in _functions(file)
    }


def describe_presets() -> Iterator[tuple[str, str]]:
    """Every preset and the first line of its docstring, those of any task first.

    Those of installed packages come last, with the package's name, and with the reason where they
    cannot be used.
    """
    shipped = shipped_presets()
    for name, preset in (any_task_presets() | shipped).items():
        yield name, _first_docstring_line(preset)
    for entry in installed_entries(PRESETS, shipped):
        text = f"cannot be used: {entry.problem}"
        if entry.file is not None and not entry.problem:
            reference = PresetReference(
                path=entry.file, function=entry.attribute or DEFAULT_FUNCTION
            )
            text = _first_docstring_line(reference)
        yield entry.name, printable(f"{text} ({entry.package})".strip())


def _installed(name: str, shipped: Collection[str]) -> PresetReference:
    """The preset of that name in an installed package."""
    entries = installed_entries(PRESETS, shipped)
    entry = require_usable(entries, name)
    if entry is None or entry.file is None:
        installed = [each.name for each in entries if not each.problem]
        raise _unknown(name, [*any_task_presets(), *shipped, *installed])
    function = entry.attribute or DEFAULT_FUNCTION
    return PresetReference(path=entry.file, function=function, title=entry.name)


def _unknown(name: str, shipped: Iterable[str]) -> ConfigurationError:
    """The error about a name that no shipped preset has, with the presets that may be meant."""
    familiar = familiar_presets(name)
    if familiar and familiar[0].startswith("docs/"):
        return ConfigurationError(f"unknown preset '{name}'; it is not here: see {familiar[0]}")
    beside = f"{name}.py"
    having = [each for each in shipped if name.lower() in each.lower()][:MOST_LISTED]
    near = familiar or near_names(name, shipped) or having or _with_words_of(name, shipped)
    if Path(beside).expanduser().is_file():
        near = [beside]
    return UnknownNameError("preset", name, shipped, "`coach -l` lists them", near)


def _with_words_of(name: str, shipped: Iterable[str]) -> list[str]:
    """The presets that have all words of a name, as `ppo-cartpole`; or the algorithms in it."""
    words = {word.lower() for word in re.split(r"[\W_]+", name)}
    by_words = {preset: {*preset.lower().split("_")} for preset in shipped}
    every = [preset for preset, has in by_words.items() if words <= has]
    return every or [each for each in any_task_presets() if each.lower() in words]


def _split_function(text: str) -> tuple[str, str | None]:
    match = re.fullmatch(r"(.+):([A-Za-z_]\w*)", text)
    return (match[1], match[2]) if match else (text, None)


def _functions(file: Path) -> tuple[str, ...]:
    """The presets in a file; only the default one where it cannot be read."""
    return _functions_in(file.read_text(encoding="utf-8"))


@cache
def _functions_in(source: str) -> tuple[str, ...]:
    """The presets in a file's text, which is parsed once: all files are read at every search."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return (DEFAULT_FUNCTION,)
    return tuple(
        node.name
        for node in body
        if isinstance(node, ast.FunctionDef)
        and node.returns is not None
        and ast.unparse(node.returns).endswith("GraphManager")
        and not node.name.startswith("_")
    )


def _first_docstring_line(preset: PresetReference) -> str:
    """Return the first line of the docstring of the preset's function, or else of its file."""
    try:
        module = ast.parse(preset.path.read_text(encoding="utf-8"))
    except SyntaxError as error:
        return f"(cannot be read: {error.msg}, line {error.lineno})"
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        return f"(cannot be read: {error or 'it is nested too deeply'})"
    functions = [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef) and node.name == preset.function
    ]
    docstrings = [*map(ast.get_docstring, functions), ast.get_docstring(module)]
    return next((text.splitlines()[0] for text in docstrings if text), "")
