"""An experiment adapted to its use: inspected, moved to another machine, or only evaluated.

What each part becomes is asked of its parameters, which know it by the role they take on, see
`core.roles`; nothing here knows the name of a field.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from coach_rl.configuration.parameters_json import constructor_fields
from coach_rl.core.inspection import InspectParameters
from coach_rl.core.roles import KeepingParameters, MovableParameters
from coach_rl.graph_managers.graph_manager import GraphManager


def inspected(
    graph_manager: GraphManager, inspections: tuple[InspectParameters, ...]
) -> GraphManager:
    """The same experiment with these inspections instead of its own."""
    changed = dataclasses.replace(graph_manager.parameters, inspect=inspections)
    return type(graph_manager)(changed)


def moved(parameters: object, device: str) -> object:
    """The parameters without what only the machine that a run comes from could do.

    An engine made with `auto` takes its mode from the checkpoint, and says so where it has to do
    without.

    Args:
        parameters: Those of an experiment.
        device: Where networks live from now on.
    """

    def moved_part(part: MovableParameters) -> MovableParameters:
        return part.moved_to(device)

    return _replaced(parameters, MovableParameters, moved_part)[0]


def without_memories(parameters: object) -> object:
    """The parameters with replay memories that keep nothing and take no room."""

    def emptied(memory: KeepingParameters) -> KeepingParameters:
        return memory.keeping_nothing()

    return _replaced(parameters, KeepingParameters, emptied)[0]


def _replaced(parameters: object, kind: type, change: Callable[[Any], object]) -> tuple[Any, int]:
    """The parameters with `change` made to every part of a kind, wherever it stands.

    Args:
        parameters: Frozen dataclasses and tuples.
        kind: The class that the parts belong to: one of `core.roles`.
        change: From a part, what is in it already changed, to the new one.

    Returns:
        The new tree, and how many such parts there are in it.
    """
    if isinstance(parameters, tuple):
        parts = [_replaced(part, kind, change) for part in parameters]
        count = sum(found for _, found in parts)
        return (tuple(part for part, _ in parts) if count else parameters), count
    if not dataclasses.is_dataclass(parameters) or isinstance(parameters, type):
        return parameters, 0
    changes: dict[str, object] = {}
    count = 0
    for each in constructor_fields(type(parameters)):
        new, found = _replaced(getattr(parameters, each.name), kind, change)
        if found:
            changes[each.name] = new
            count += found
    replaced: object = dataclasses.replace(parameters, **changes) if changes else parameters
    return (change(replaced), count + 1) if isinstance(replaced, kind) else (replaced, count)
