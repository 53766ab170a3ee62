"""Inspections: their settings, and the points in the flow of data that they can observe.

A point costs nothing without an inspection: `after_calls` and `before_calls` wrap a method of one
object when an inspection begins.

A class names its points: `POINTS = (points_of_updates,)`, functions from an object to its points.
An object whose points depend on more than its class has a method `inspection_points()`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NoReturn, TypeAlias

from coach_rl.core.errors import ConfigurationError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import declared, walk
from coach_rl.core.ranges import NonEmpty, Positive, RisingPair
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space

Check = Literal["nan", "shape", "range", "stats", "staleness"]
Reaction = Literal["warn", "dump", "stop"]
MEANINGS: dict[Check, str] = {
    "nan": "numbers that are not finite",
    "shape": "columns whose shape or dtype changes",
    "range": "numbers outside their space, or outside range=LOW..HIGH",
    "stats": "mean, standard deviation, minimum and maximum of each column",
    "staleness": "age of what is learned from; staleness=MOST finds what is older",
}
"""The checks, and what each of them finds or reports."""
USUAL_POINTS = ("environment", "filter", "memory", "sampler", "batch", "network", "update")
"""The points of a level whose agent learns from a replay memory, from the simulator on."""
NONE = "off"
"""The text that stands for no inspections."""
_INTERVALS: dict[Check, int] = {"stats": 100, "staleness": 100}
"""Default intervals of checks, in calls; 1 for the others."""
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_CHECK = re.compile(
    rf"\s*(?P<check>\w+)\s*(?:=\s*(?:(?P<low>{_NUMBER})\s*\.\.\s*)?(?P<high>{_NUMBER})\s*)?"
    r"(?:@\s*(?P<every>\d+)\s*)?"
)


@parameter_class
class InspectParameters:
    """A point to inspect, the checks, their interval, and the reaction to what they find."""

    point: NonEmpty[str] = "batch"
    """The point, or a column of it, such as `batch/reward`; `filter` stands for all points below
    it."""
    level: str | None = None
    """The level to inspect; None: every level that has the point."""
    checks: NonEmpty[tuple[Check, ...]] = ("nan", "shape")
    """nan: numbers that are not finite. shape: columns whose shape or dtype changes. range: numbers
    outside `within`. stats: report mean, standard deviation, minimum and maximum of each column.
    staleness: report the age of what is learned from, and find what is older than `oldest`."""
    within: RisingPair | None = None
    """Bounds of the check `range`; None: those of the spaces of observations and actions."""
    oldest: Positive[int] | None = None
    """Greatest age allowed by the check `staleness`; None: any."""
    every: Positive[int] = 1
    """Interval of checks, in calls; the first call is always checked."""
    reaction: Reaction = "stop"
    """stop: end the run, with what was found in a file. dump: warn, write what was found to a file
    and continue. warn: warn and continue."""

    def __post_init__(self) -> None:
        for name, check in {"within": "range", "oldest": "staleness"}.items():
            require(
                getattr(self, name) is None or check in self.checks,
                f"InspectParameters.{name} is for the check '{check}', which is not among "
                f"{self.checks}; add it, or leave {name} out",
            )


def parse_inspections(text: str) -> tuple[InspectParameters, ...]:
    """Inspections as a user types them: `batch:nan,stats@100; network:range=-5..5:warn`.

    Each part is `[LEVEL.]POINT:CHECK[=BOUNDS][@EVERY],...[:REACTION]`. `off` stands for none.

    Raises:
        ConfigurationError: The text has another form; UnknownNameError for the name of a check or a
            reaction. Whether a point exists shows when the graph is built.
    """
    if text.strip() == NONE:
        return ()
    found: list[InspectParameters] = []
    for entry in filter(str.strip, text.split(";")):
        place, *rest = (part.strip() for part in entry.split(":"))
        if not place or not rest or len(rest) > 2 or not rest[0]:
            _refuse_form(entry)
        reaction: Any = rest[1] if len(rest) > 1 else "stop"
        if reaction not in ("warn", "dump", "stop"):
            raise UnknownNameError(
                "reaction", reaction, ("warn", "dump", "stop"), where=f"in '{entry.strip()}'"
            )
        level, dot, point = place.partition(".")
        if not dot or "/" in level:
            level, point = "", place
        for check in rest[0].split(","):
            _merge(found, _read(check, point, level or None, reaction, entry))
    if not found:
        _refuse_form(text)
    return tuple(found)


def _read(
    text: str, point: str, level: str | None, reaction: Reaction, entry: str
) -> InspectParameters:
    match = _CHECK.fullmatch(text)
    if match is None:
        _refuse_form(entry)
    name, low, high, every = match.group("check", "low", "high", "every")
    known: dict[str, Check] = {check: check for check in MEANINGS}
    if name not in known:
        raise UnknownNameError("check", name, MEANINGS, where=f"in '{entry.strip()}'")
    check = known[name]
    if high is not None and (check, low is None) not in (("range", False), ("staleness", True)):
        _refuse_form(entry)
    return InspectParameters(
        point=point,
        level=level,
        checks=(check,),
        within=(float(low), float(high)) if low is not None else None,
        oldest=int(float(high)) if high is not None and low is None else None,
        every=_INTERVALS.get(check, 1) if every is None else int(every),
        reaction=reaction,
    )


def _merge(found: list[InspectParameters], new: InspectParameters) -> None:
    """Put checks of one point and interval into one inspection."""
    for index, known in enumerate(found):
        same = replace(known, checks=new.checks, within=new.within, oldest=new.oldest) == new
        if same and not set(new.checks) & set(known.checks):
            within, oldest = known.within or new.within, known.oldest or new.oldest
            checks = (*known.checks, *new.checks)
            found[index] = replace(known, checks=checks, within=within, oldest=oldest)
            return
    if new not in found:
        found.append(new)


def _refuse_form(text: str) -> NoReturn:
    raise ConfigurationError(
        f"'{text.strip()}' is not an inspection; write POINT:CHECK,CHECK@EVERY:REACTION, e.g. "
        f"batch:nan,stats@100 or low.network:range=-5..5:warn (points: {', '.join(USUAL_POINTS)}; "
        f"checks: {', '.join(MEANINGS)}; reactions: warn, dump, stop; several separated by ;)"
    )


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
        if hasattr(part.value, "inspection_points"):
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
            f"{kind}.{method} cannot be inspected, because {kind} has __slots__; leave them out"
        ) from error
