"""Putting inspectors into the memories of an experiment whose parameters are already there."""

import dataclasses
from typing import Any

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import InspectParameters
from coach_rl.graph_managers import GraphManager

FIELD = "inspect"
"""The parameter of a memory that takes inspections."""


def inspected(
    graph_manager: GraphManager, inspections: tuple[InspectParameters, ...]
) -> GraphManager:
    """The same experiment with these inspections added to every memory that takes any.

    Raises:
        ConfigurationError: There is no such memory.
    """
    changed, places = _with(graph_manager.parameters, inspections)
    if not places:
        raise ConfigurationError(
            "there is no sampler to inspect: no agent of this experiment has a replay memory; "
            "leave --inspect out, or choose an off-policy preset"
        )
    return type(graph_manager)(changed)


def _with(node: Any, inspections: tuple[InspectParameters, ...]) -> tuple[Any, int]:
    """The node with the inspections wherever they fit below it, and how many places those are."""
    if isinstance(node, tuple):
        parts = [_with(part, inspections) for part in node]
        places = sum(count for _, count in parts)
        return (tuple(part for part, _ in parts), places) if places else (node, 0)
    if not dataclasses.is_dataclass(node) or isinstance(node, type):
        return node, 0
    changes: dict[str, Any] = {}
    places = 0
    for field in dataclasses.fields(node):
        value = getattr(node, field.name)
        if field.name == FIELD and isinstance(value, tuple):
            changes[FIELD], found = (*value, *inspections), 1
        else:
            changed, found = _with(value, inspections)
            if found:
                changes[field.name] = changed
        places += found
    return (dataclasses.replace(node, **changes), places) if places else (node, 0)
