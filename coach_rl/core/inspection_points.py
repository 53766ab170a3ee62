"""Points in the flow of data that inspections can observe.

A point costs nothing without an inspection: `after_calls` and `before_calls` wrap a method of one
object when an inspection begins.

A class names its points: `POINTS = (points_of_updates,)`, functions from an object to its points.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeAlias, runtime_checkable

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parts import declared, walk
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space

Columns: TypeAlias = Mapping[str, Array]
"""Arrays by name, [rows, ...] each; the name is empty where a point has only one."""
Observer: TypeAlias = Callable[[Callable[[], Columns]], None]
"""Function that receives a getter of the data, and calls it only if it inspects them."""


@dataclass(frozen=True, kw_only=True)
class InspectionPoint:
    """A point of an object where data can be observed."""

    name: str
    """Its name, such as `batch`, or `filter/action` for one of several below a name."""
    watch: Callable[[Observer], None]
    """Begins to call an observer with all data that pass."""
    agent: str = ""
    """The agent that it belongs to; empty for the simulators."""
    spaces: Mapping[str, Space] = field(default_factory=dict)
    """Spaces that columns belong to, by the column's name."""
    ages: tuple[str, ...] = ()
    """Columns that are ages of what is learned from."""


@runtime_checkable
class Inspectable(Protocol):
    """An object whose points depend on more than its class."""

    def inspection_points(self) -> Sequence[InspectionPoint]:
        """Return its own; parts name theirs."""
        ...


def points_of(agent: object) -> list[InspectionPoint]:
    """The points of an agent and its parts, with the name of the agent that they belong to.

    Where two parts have points of one name, the second gets its part's name in front.
    """
    found: list[InspectionPoint] = []
    for part in walk(agent):
        own: list[InspectionPoint] = []
        for functions in declared(type(part.value), "POINTS"):
            for function in functions:
                own += function(part.value)
        if isinstance(part.value, Inspectable):
            own += part.value.inspection_points()
        name = getattr(part.agent, "name", "")
        for each in own:
            taken = {(other.agent, other.name) for other in found}
            point = replace(each, agent=each.agent or name)
            if (point.agent, point.name) in taken:
                point = replace(point, name=f"{part.name}/{point.name}")
            found.append(point)
    return found


PointsFunction: TypeAlias = Callable[[Any], Iterable[InspectionPoint]]
"""A function from an object to its points, which leave `agent` empty."""


def after_calls(
    owner: object, method: str, shown: Callable[..., Columns]
) -> Callable[[Observer], None]:
    """Make the `watch` of a point that shows what a method returns.

    Args:
        owner: The object.
        method: The method's name.
        shown: From the call's result and its arguments to columns; calls without any are skipped.
    """

    def watch(observe: Observer) -> None:
        call = getattr(owner, method)

        def watched(*args: object, **named: object) -> object:
            result = call(*args, **named)
            observe(lambda: shown(result, *args, **named))
            return result

        stand_before(owner, method, watched)

    return watch


def before_calls(
    owner: object, method: str, shown: Callable[..., Columns]
) -> Callable[[Observer], None]:
    """Make the `watch` of a point that shows what a method is called with; see `after_calls`."""

    def watch(observe: Observer) -> None:
        call = getattr(owner, method)

        def watched(*args: object, **named: object) -> object:
            observe(lambda: shown(*args, **named))
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
    """Replace a method by a wrapper, on this object alone."""
    try:
        object.__setattr__(owner, method, watched)  # frozen ones as well
    except AttributeError as error:
        kind = type(owner).__name__
        raise ConfigurationError(
            f"{kind}.{method} cannot be inspected, because {kind} has __slots__; leave them out"
        ) from error
