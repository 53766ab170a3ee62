"""A preset for people: its panel, levels, parameters by path, components, and its networks."""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import is_dataclass
from typing import Literal, get_args, get_origin

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured, settings
from coach_rl.configuration.config_file import config_text
from coach_rl.configuration.extensions import import_offers
from coach_rl.configuration.overrides import fitting, parameter_paths, short_name
from coach_rl.configuration.parameters_json import constructor_fields
from coach_rl.configuration.paths_of_fields import paths_named
from coach_rl.configuration.preset_file import REQUIRED, Preset, documented, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core import AgentParameters, EnvironmentParameters
from coach_rl.core.ranges import has_range
from coach_rl.core.runtime import Runtime
from coach_rl.core.shown_text import printable_lines
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import describe_type
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.telemetry.description import described
from coach_rl.telemetry.tables import plain_lines, written

Row = tuple[str, ...]
SECTIONS: dict[str, Callable[[Graph], Iterator[Row]]] = {}
"""Functions to the rows of further sections, by title; what extensions offer to `describe` adds
them."""
_WIDEST = 60
"""Characters of a table's column; a longer cell moves the rest of its own line alone."""


def describe(given: Given) -> int:
    """Print all that can be changed in a preset, or write it as TOML; the exit code."""
    preset = load_preset(find_preset(given.preset))
    built, overrides = configured(given, preset)
    if given.toml:
        print(config_text(preset, built.parameters, overrides))
        return 0
    with closing(built) as graph_manager, paths_named(built.parameters):
        graph_manager.create_graph(settings(given, Runtime))
        print(printable_lines(describe_preset(preset, graph_manager)))
    return 0


def describe_preset(preset: Preset, graph_manager: GraphManager) -> str:
    """Table of everything in a preset that can be changed, and of the graph that results.

    Args:
        preset: The preset.
        graph_manager: What it returned, with its graph created.
    """
    parameters = graph_manager.parameters
    graph = graph_manager.graph
    meaning = inspect.getdoc(preset.definition) if inspect.isfunction(preset.definition) else None
    parts = [
        f"{preset.reference.name}  ({preset.reference.path})",
        *(meaning or "").partition("\n\nArgs:")[0].splitlines(),
        *_section('panel, set with -cp "name=value"', _table(_panel_rows(preset))),
        *_section("search space of `coach sweep`", preset.search.split("; ") * bool(preset.search)),
        *_section("tasks, set with -lvl", [", ".join(preset.levels)] * bool(preset.levels)),
        *_section(
            'parameters, set with -cp "path.to.name=value"', _table(parameter_rows(parameters))
        ),
        *_section(
            'components, set with -cp "path=Name(argument=value)"',
            _table(component_rows(parameters)),
        ),
        *_section("arguments of components", _table(_argument_rows(parameters))),
        *_section("levels and networks", described(graph_manager).splitlines()),
        *_sections_of_extensions(graph),
    ]
    return "\n".join(parts)


def parameter_rows(parameters: object) -> Iterator[Row]:
    """Every parameter: the path that `-cp` takes, its value, its meaning, and what is allowed."""
    meanings = _meanings(parameters, "")
    for path, value, annotation in parameter_paths(parameters):
        allowed = f"; allowed: {describe_type(annotation)}" if _is_limited(annotation) else ""
        if is_dataclass(value) and not isinstance(value, StepUnit):
            meanings |= _meanings(value, f"{path}.")
        yield path, _shown(value), meanings.get(path, "") + allowed


def component_rows(parameters: object) -> Iterator[Row]:
    """Every path that takes a component of another class, with the names of all that fit."""
    for path, value, annotation in parameter_paths(parameters):
        kinds = fitting(annotation)
        if any(kind is not type(value) for kind in kinds):
            yield path, ", ".join(map(short_name, kinds))


def _sections_of_extensions(graph: Graph) -> Iterator[str]:
    """The lines of the sections that extensions add."""
    import_offers("describe")
    for title, rows in SECTIONS.items():
        yield from _section(title, _table(rows(graph)))


def _is_limited(annotation: object) -> bool:
    """Return whether a type declares ranges or words."""
    is_word = get_origin(annotation) is Literal
    return is_word or has_range(annotation) or any(map(_is_limited, get_args(annotation)))


def _panel_rows(preset: Preset) -> Iterator[Row]:
    for argument in preset.panel.values():
        default = "(required)" if argument.default is REQUIRED else _shown(argument.default)
        yield argument.name, describe_type(argument.annotation), default, argument.meaning


def _argument_rows(parameters: object) -> Iterator[Row]:
    """The arguments of components that fit somewhere and are not there already.

    Those of agents and environments are left out: there are many, and they are shown as parameters
    once one is switched to.
    """
    paths = list(parameter_paths(parameters))
    kinds = {kind for _, _, annotation in paths for kind in fitting(annotation)}
    kinds -= {type(value) for _, value, _ in paths}
    kinds -= {*fitting(AgentParameters), *fitting(EnvironmentParameters)}
    for kind in sorted(kinds, key=short_name):
        meanings = documented(kind)
        for field in constructor_fields(kind):
            yield f"{short_name(kind)}.{field.name}", _first_sentence(meanings.get(field.name, ""))


def _meanings(value: object, prefix: str) -> dict[str, str]:
    found = documented(type(value)).items()
    return {f"{prefix}{name}": _first_sentence(meaning) for name, meaning in found}


def _first_sentence(text: str) -> str:
    return re.split(r"(?<=[.]) (?=[A-Z])", text, maxsplit=1)[0].rstrip(".")


def _shown(value: object) -> str:
    if isinstance(value, StepUnit):
        return f"{value.count}  ({type(value).__name__})"
    if is_dataclass(value) and not isinstance(value, type):
        return f"({type(value).__name__})"
    if isinstance(value, tuple) and any(inspect.isfunction(item) for item in value):
        return f"({', '.join(_shown(item) for item in value)})"
    if isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        return f"({', '.join(type(item).__name__ for item in value)})"
    return str(getattr(value, "__qualname__", None) or repr(value))


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)] if lines else []


def _table(rows: Iterable[Row]) -> list[str]:
    cells = list(rows)
    return plain_lines(written([""] * len(cells[0]), cells), widest=_WIDEST) if cells else []
