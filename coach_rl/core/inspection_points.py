"""Points in the flow of data where an inspection can look at what passes.

Nothing stands at a point as long as nobody looks: `after_calls` and `before_calls` put a function
before a method of one object when an inspection begins.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space

Columns: TypeAlias = Mapping[str, Array]
"""Arrays by name, [rows, ...] each; the name is empty where a point has only one."""
Look: TypeAlias = Callable[[Callable[[], Columns]], None]
"""Called with a function that returns what passes, which is called only where it is looked at."""


@dataclass(frozen=True, kw_only=True)
class InspectionPoint:
    """A point of an object where something can look at what passes."""

    name: str
    """Its name, such as `batch`, or `filter/action` for one of several below a name."""
    watch: Callable[[Look], None]
    """Begins to call a function with everything that passes."""
    agent: str = ""
    """The agent that it belongs to; empty for the simulators."""
    spaces: Mapping[str, Space] = field(default_factory=dict)
    """Spaces that columns belong to, by the column's name."""
    ages: tuple[str, ...] = ()
    """Columns that are ages of what is learned from."""


@runtime_checkable
class Inspectable(Protocol):
    """An object that has points where something can look at what passes."""

    def inspection_points(self) -> Sequence[InspectionPoint]:
        """Return its own, and those of its parts."""
        ...


def after_calls(
    owner: object, method: str, shown: Callable[..., Columns]
) -> Callable[[Look], None]:
    """Make the `watch` of a point that shows what a method returns.

    Args:
        owner: The object.
        method: The method's name.
        shown: From the call's result and its arguments to columns; without any, nobody looks.
    """

    def watch(look: Look) -> None:
        call = getattr(owner, method)

        def watched(*args: object, **named: object) -> object:
            result = call(*args, **named)
            look(lambda: shown(result, *args, **named))
            return result

        stand_before(owner, method, watched)

    return watch


def before_calls(
    owner: object, method: str, shown: Callable[..., Columns]
) -> Callable[[Look], None]:
    """Make the `watch` of a point that shows what a method is called with; see `after_calls`."""

    def watch(look: Look) -> None:
        call = getattr(owner, method)

        def watched(*args: object, **named: object) -> object:
            look(lambda: shown(*args, **named))
            return call(*args, **named)

        stand_before(owner, method, watched)

    return watch


def flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    """The leaves of nested mappings by their path: `observation/position`.

    Args:
        tree: What it holds under the empty name is not below a name of its own.
    """
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        parts = flat(value) if isinstance(value, Mapping) else {"": value}
        for path, leaf in parts.items():
            leaves["/".join(part for part in (name, path) if part)] = leaf
    return leaves


def stand_before(owner: object, method: str, watched: Callable[..., object]) -> None:
    """Let a function stand before a method, on this object alone."""
    try:
        object.__setattr__(owner, method, watched)  # frozen ones as well
    except AttributeError as error:
        kind = type(owner).__name__
        raise ConfigurationError(
            f"{kind}.{method} cannot be inspected, because {kind} has __slots__; leave them out"
        ) from error
