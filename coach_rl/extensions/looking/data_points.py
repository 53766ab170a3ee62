"""Points where data pass, to which observers can be attached.

    for point in points_of(agent):  # of `points`
        point.watch(lambda shown: print(point.name, *shown()))

A point costs nothing while nothing is attached: `after_calls` and `before_calls` wrap a method of
one object when an observer comes.

Those of the engine's own classes are in `points`. Another class names its points: `POINTS =
(points_of_plans,)`, functions from an object to its points.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from coach_rl.core.parts import wrap_method
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

        wrap_method(owner, method, watched)

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
