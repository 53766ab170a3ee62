"""Points where data pass, to which observers can be attached.

    for point in points_of(agent):
        point.watch(lambda shown: print(point.name, *shown()))

A point costs nothing while nothing is attached: `after_calls` and `before_calls` wrap a method of
one object when an observer comes.

A class names its points: `POINTS = (points_of_updates,)`, functions from an object to its points.
An object whose points depend on more than its class has a method `data_points()`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parts import declared, walk
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space

Columns: TypeAlias = Mapping[str, Array]
"""Arrays by name, [rows, ...] each; the name is empty where a point has only one."""
Observer: TypeAlias = Callable[[Callable[[], Columns]], None]
"""Function that receives a getter of the data, and calls it only if it reads them."""


@dataclass(frozen=True, kw_only=True)
class DataPoint:
    """A point of an object where data pass."""

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
    is_acting: bool = False
    """True if data pass only where the agent acts, which may be in another process."""


def points_of(agent: object) -> list[DataPoint]:
    """The points of an agent and its parts, with the name of the agent that they belong to.

    Where two parts have points of one name, the second gets its part's name in front.
    """
    found: list[DataPoint] = []
    for part in walk(agent):
        own: list[DataPoint] = []
        for functions in declared(type(part.value), "POINTS"):
            for function in functions:
                own += function(part.value)
        if hasattr(part.value, "data_points"):
            own += part.value.data_points()
        name = getattr(part.agent, "name", "")
        for each in own:
            taken = {(other.agent, other.name) for other in found}
            point = replace(each, agent=each.agent or name)
            if (point.agent, point.name) in taken:
                point = replace(point, name=f"{part.name}/{point.name}")
            found.append(point)
    return found


PointsFunction: TypeAlias = Callable[[Any], Iterable[DataPoint]]
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
    return _calls(owner, method, shown, after=True)


def before_calls(
    owner: object, method: str, shown: Callable[..., Columns]
) -> Callable[[Observer], None]:
    """Make the `watch` of a point that shows what a method is called with; see `after_calls`."""
    return _calls(owner, method, shown, after=False)


def _calls(
    owner: object, method: str, shown: Callable[..., Columns], *, after: bool
) -> Callable[[Observer], None]:
    def watch(observe: Observer) -> None:
        call = getattr(owner, method)

        def watched(*args: object, **named: object) -> object:
            if not after:
                observe(lambda: shown(*args, **named))
            result = call(*args, **named)
            if after:
                observe(lambda: shown(result, *args, **named))
            return result

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
            f"{kind}.{method} cannot be observed, because {kind} has __slots__; leave them out"
        ) from error
