"""Changes of a preset in a TOML file, by the names and paths of `-cp`.

    preset = "CartPole_PPO"                     # optional: the only preset that it is for
    learning_rate = 3e-4
    agent.algorithm.clip = 0.1
    agent.exploration = "EpsilonGreedy(epsilon=0.1)"

A table is a part of a path. A text is read as the command line reads it, and is itself where it is
nothing else: `"None"` is no value, a component is written like a call.
"""

import json
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, is_dataclass
from datetime import date, datetime, time
from pathlib import Path

from coach_rl.configuration.overrides import (
    Component,
    InPlaceOf,
    parameter_paths,
    parse_overrides,
    short_name,
)
from coach_rl.configuration.parameters_json import constructor_fields
from coach_rl.configuration.preset_file import REQUIRED, Preset, documented, is_same_setting
from coach_rl.configuration.strict_json import read_text
from coach_rl.core.errors import (
    MOST_LISTED,
    CheckpointError,
    ConfigurationError,
    ProblemsError,
    require,
)
from coach_rl.core.steps import EnvironmentSteps, StepUnit

_PRESET = "preset"
"""The key that names the preset."""
_SIMPLE = (bool, int, float, str)
_MOST_CHARACTERS, _MOST_VALUES = 200_000, 1_000
"""Size of a file at most; those of the largest presets have 40,000 characters and 320 values."""
_MOST_DOTS = 1_000
"""Dots in a line at most: reading a path takes time with the square of its parts."""
_LONGEST_PATH = 200
_DEEPEST = 20
"""Characters of a path, and lists inside each other, at most."""


@dataclass(frozen=True, kw_only=True)
class ConfigFile:
    """The values in a TOML file."""

    file: Path
    """The file."""
    values: Mapping[str, object]
    """Values by panel name or path."""
    preset: str | None
    """The name of the preset that it is for; None: of any that has its paths."""

    def place(self, *paths: str) -> str:
        """The file, and the lines that set these paths."""
        lines = [number for number, path in _keys(self.file) if path in paths]
        known = f", line{'s' * (len(lines) > 1)} {' and '.join(map(str, lines))}" if lines else ""
        return f"{self.file}{known}"

    def check_preset(self, name: str) -> None:
        """Raise `ConfigurationError` where it is for another preset."""
        if self.preset not in (None, name):
            raise ConfigurationError(
                f"{self.place(_PRESET)}: the file is for the preset {self.preset}, not for {name}; "
                f"`coach describe {name} --toml` writes one, or leave out its line '{_PRESET}'"
            )

    @contextmanager
    def blamed(self, build: Callable[[Mapping[str, object]], object]) -> Iterator[None]:
        """Errors of an experiment with the values; they name the lines that cause them.

        Args:
            build: Builds it again with some of the values by path.
        """
        try:
            yield
        except ConfigurationError as error:
            problems = error.problems if isinstance(error, ProblemsError) else ()
            if len(problems) > MOST_LISTED:
                raise ConfigurationError(
                    f"{self.file} has {len(problems)} mistakes; the first: {problems[0]}"
                ) from error
            causes = self._causes([*self.values], build, str(error))
            if not causes:
                raise
            place = self.place(*causes)
            if problems:
                raise ProblemsError([f"{place}: {each}" for each in problems]) from error
            raise ConfigurationError(f"{place}: {error}") from error

    def _causes(
        self, paths: list[str], build: Callable[[Mapping[str, object]], object], message: str
    ) -> list[str]:
        """Those of some paths without which the error has another message, or is none."""
        others = {key: value for key, value in self.values.items() if key not in paths}
        if not paths or _message(build, others) == message:
            return []
        if len(paths) == 1:
            return paths
        half = len(paths) // 2
        parts = paths[:half], paths[half:]
        return [path for part in parts for path in self._causes(part, build, message)]


def read_config(file: Path) -> ConfigFile:
    """The values in a TOML file.

    Raises:
        ConfigurationError: It cannot be read; the message has the file and the line.
    """
    try:
        text = read_text(file.expanduser())
        require(len(text) <= _MOST_CHARACTERS, f"more than {_MOST_CHARACTERS:,} characters")
        for number, line in enumerate(text.splitlines(), start=1):
            require(
                line.count(".") <= _MOST_DOTS, f"more than {_MOST_DOTS:,} dots in line {number}"
            )
        document = tomllib.loads(text)
        preset = document.pop(_PRESET, None)
        values = [*_flat(document)]
        require(len(values) <= _MOST_VALUES, f"more than {_MOST_VALUES:,} values")
    except CheckpointError as error:
        raise ConfigurationError(str(error)) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{file} is no TOML: {error}") from error
    except ConfigurationError as error:
        raise ConfigurationError(f"{file} cannot be used: it has {error}") from error
    except (ValueError, RuntimeError) as error:  # of long numbers, homes, NUL in a path, nesting
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise ConfigurationError(f"cannot read {file}: {reason}") from error
    found = ConfigFile(file=file, values=dict(values), preset=preset)
    if preset is not None and not isinstance(preset, str):
        raise ConfigurationError(f"{found.place(_PRESET)}: '{_PRESET}' must be a name")
    if len(found.values) < len(values):
        paths = [path for path, _ in values]
        twice = next(path for path in paths if paths.count(path) > 1)
        raise ConfigurationError(f"{found.place(twice)}: {twice} is given twice; give one")
    for path, value in found.values.items():
        if isinstance(value, date | datetime | time):
            raise ConfigurationError(f"{found.place(path)}: {path} is a date, and no parameter is")
    return found


def config_text(preset: Preset, parameters: object, overrides: Mapping[str, object]) -> str:
    """The text of a TOML file that gives a preset the values that it has.

    The panel and what has been changed by path are set; all other parameters stand below in
    comments.

    Args:
        preset: The preset.
        parameters: The resolved parameters.
        overrides: Changes that have been made, by panel name or path.
    """
    name = preset.reference.name
    lines = [f"# coach train {name} --config FILE", f"{_PRESET} = {json.dumps(name)}", ""]
    panel = preset.panel_values(
        {path: value for path, value in overrides.items() if path in preset.panel}
    )
    by_path = {path: value for path, value in overrides.items() if path not in preset.panel}

    def is_covered(path: str, names: Iterable[str]) -> bool:
        return any(is_same_setting(path, name, preset.panel) for name in names)

    for argument in preset.panel.values():
        value = panel[argument.name]
        is_set = value is not REQUIRED and not is_covered(argument.name, by_path)
        text = _toml(value) if is_set else None
        lines += [f"# {argument.meaning}"] if argument.meaning else []
        lines.append(f"# {argument.name} = ..." if text is None else f"{argument.name} = {text}")
    if by_path:
        resolved = {path: value for path, value, _ in parameter_paths(parameters)}
        by_path |= {
            path: resolved[path] for path, value in by_path.items() if isinstance(value, InPlaceOf)
        }
        lines += ["", "# changed parameters"]
        lines += [f"{path} = {_required(path, value)}" for path, value in by_path.items()]
    lines += ["", "# all other parameters: without the '# ' a line sets one"]
    meanings: dict[str, str] = {}
    for path, value, _ in parameter_paths(parameters):
        if is_dataclass(value) and not isinstance(value, StepUnit):
            meanings |= {f"{path}.{key}": text for key, text in documented(type(value)).items()}
        is_leaf = value is None or isinstance(value, (*_SIMPLE, tuple, StepUnit))
        text = _toml(value) if is_leaf and not is_covered(path, (*by_path, *panel)) else None
        if text is not None:
            meaning = re.split(r"(?<=[.;]) ", meanings.get(path, ""), maxsplit=1)[0].rstrip(".;")
            lines.append(f"# {path} = {text}" + (f"  # {meaning}" if meaning else ""))
    return "\n".join(lines)


def _message(build: Callable[[Mapping[str, object]], object], values: Mapping[str, object]) -> str:
    """The message of the error of an experiment with some values; empty without one."""
    try:
        build(values)
    except ConfigurationError as error:
        return str(error)
    return ""


def _flat(document: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The values of a document by path."""
    for key, value in document.items():
        path = f"{prefix}{key}"
        require(len(path) <= _LONGEST_PATH, f"a path of more than {_LONGEST_PATH} characters")
        require(bool(key), f"an empty name in the path '{path}'")
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        else:
            yield path, _read(value)


def _read(value: object, depth: int = 0) -> object:
    """A value as the command line has it."""
    if isinstance(value, list):
        require(depth < _DEEPEST, f"more than {_DEEPEST} lists inside each other")
        return tuple(_read(part, depth + 1) for part in value)
    if isinstance(value, str):
        try:
            return parse_overrides(f"value={value}").get("value", value)
        except ConfigurationError:
            return value
    return value


def _keys(file: Path) -> Iterator[tuple[int, str]]:
    """The numbers of the lines that set a value, each with its path."""
    table = ""
    lines = file.expanduser().read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, start=1):
        key, equals, _ = line.partition("=")
        if line.lstrip().startswith("["):
            table = f"{_plain(line.partition(']')[0])}."
        elif equals:
            yield number, table + _plain(key)


def _plain(key: str) -> str:
    """A key without its quotes and blanks, and a header without its brackets."""
    return re.sub(r"[\s\"'\[]", "", key)


def _required(path: str, value: object) -> str:
    text = _toml(value)
    if text is None:
        raise ConfigurationError(f"the value of {path} cannot be written as TOML; leave it out")
    return text


def _toml(value: object) -> str | None:
    """A value as TOML, from which `_read` makes it again; None where there is no such text."""
    match value:
        case bool():
            return str(value).lower()
        case EnvironmentSteps():
            return str(value.count)
        case int():
            return str(value)
        case float():
            return str(value)
        case str():
            return json.dumps(value if _read(value) == value else repr(value), ensure_ascii=False)
        case tuple() if value and all(isinstance(part, _SIMPLE) for part in value):
            return f"[{', '.join(str(_toml(part)) for part in value)}]"
    text = _written(value)
    return None if text is None else json.dumps(text, ensure_ascii=False)


def _written(value: object) -> str | None:
    """A value as the command line takes it; None where it cannot be written."""
    if value is None or isinstance(value, (*_SIMPLE, Component)):
        return repr(value)
    if isinstance(value, tuple):
        parts = [_written(part) for part in value]
        whole = [part for part in parts if part is not None]
        return f"({''.join(f'{part}, ' for part in whole)})" if whole == parts else None
    if isinstance(value, Mapping):
        entries = {repr(key): _written(part) for key, part in value.items()}
        if None in entries.values():
            return None
        return f"{{{', '.join(f'{key}: {part}' for key, part in entries.items())}}}"
    if is_dataclass(value) and not isinstance(value, type):
        fields = {
            each.name: _written(getattr(value, each.name))
            for each in constructor_fields(type(value))
        }
        if None not in fields.values():
            arguments = ", ".join(f"{name}={text}" for name, text in fields.items())
            return f"{short_name(type(value))}({arguments})"
    return None
