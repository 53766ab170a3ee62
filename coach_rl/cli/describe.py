"""A preset for people: its panel, its resolved parameters by path, its levels and networks."""

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import describe_type
from coach_rl.experiment.panel import REQUIRED
from coach_rl.experiment.parameters_json import constructor_fields
from coach_rl.experiment.preset_file import Preset
from coach_rl.graph_managers.graph_manager import GraphManager


def describe_preset(preset: Preset, graph_manager: GraphManager) -> str:
    """Everything about a preset that can be changed, and what comes of it.

    Args:
        preset: The preset.
        graph_manager: What it returned, with its graph created.
    """
    parts = [
        f"{preset.reference.name}  ({preset.reference.path})",
        *_section('panel, set with -cp "name=value"', _table(list(_panel_rows(preset)))),
        *_section(
            'parameters, set with -cp "path.to.name=value"',
            _table(list(parameter_rows(graph_manager.parameters))),
        ),
        *_section("levels and networks", graph_manager.description().splitlines()),
    ]
    return "\n".join(parts)


def parameter_rows(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every value in a tree of parameters, with the path that `-cp` takes."""
    below: Mapping[str, Any] = {}
    if is_dataclass(value) and not isinstance(value, StepUnit | type):
        fields = constructor_fields(type(value))
        below = {field.name: getattr(value, field.name) for field in fields}
    elif isinstance(value, tuple) and any(is_dataclass(part) for part in value):
        below = {str(index): part for index, part in enumerate(value)}
    if not below:
        yield path, _shown(value)
    elif path and is_dataclass(value):
        yield path, f"({type(value).__name__})"
    for name, part in below.items():
        yield from parameter_rows(part, f"{path}.{name}" if path else name)


def _panel_rows(preset: Preset) -> Iterator[tuple[str, str, str]]:
    for argument in preset.panel.values():
        default = "(required)" if argument.default is REQUIRED else _shown(argument.default)
        yield argument.name, describe_type(argument.annotation), default


def _shown(value: Any) -> str:
    if isinstance(value, StepUnit):
        return f"{value.count}  ({type(value).__name__})"
    if isinstance(value, type) or callable(value):
        return str(getattr(value, "__qualname__", value))
    return f"{type(value).__name__}()" if is_dataclass(value) else repr(value)


def _section(title: str, lines: list[str]) -> list[str]:
    return ["", title, *(f"  {line}" for line in lines)]


def _table(
    rows: list[tuple[str, ...]] | list[tuple[str, str]] | list[tuple[str, str, str]],
) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
