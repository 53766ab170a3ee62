"""Ranges of parameters, declared in their types and checked by `parameter_class` and `-cp`.

    learning_rate: Positive[float] = 1e-3
    rate: Annotated[float, Interval(gt=0, le=1)] = 0.005
    layers: tuple[Positive[int], ...] = (64, 64)

A number that is bounded from below is finite. The bounds are those of the package
`annotated_types`. Other metadata of a type is left alone.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_origin

from annotated_types import Ge, Gt, Interval, Le, Lt, MinLen

from coach_rl.core.steps import StepUnit

T = TypeVar("T")


@dataclass(frozen=True)
class Rising:
    """The lower of two bounds comes first."""

    strictly: bool = True
    """If False, they may be equal."""


Positive = Annotated[T, Gt(0)]
"""A number above 0."""
NonNegative = Annotated[T, Ge(0)]
"""A number that is 0 or more."""
UnitInterval = Annotated[float, Interval(ge=0, le=1)]
"""A number from 0 to 1, both included."""
Threads = Annotated[int, Interval(ge=1, le=1024)]
"""Threads of an operation, in a number that no machine refuses."""
NonEmpty = Annotated[T, MinLen(1)]
"""Something with one element or more."""
RisingPair = Annotated[tuple[float, float], Rising()]
"""A lower and an upper bound that differ."""


def is_in_range(value: object, metadata: Iterable[object]) -> bool:
    """Return whether a value keeps to the bounds in a type's metadata."""
    number = value.count if isinstance(value, StepUnit) else value
    for bound in metadata:
        for side in bound if isinstance(bound, Interval) else (bound,):
            if not _holds(number, side):
                return False
    return True


def has_range(annotation: object) -> bool:
    """Return whether a type, or a part of it, declares a range."""
    return get_origin(annotation) is Annotated or any(map(has_range, get_args(annotation)))


def describe_range(metadata: Iterable[object]) -> str:
    """The bounds in a type's metadata as a user reads them: `> 0`, `in [0, 1]`."""
    return ", ".join(text for bound in metadata if (text := _described(bound)))


def _holds(value: Any, bound: object) -> bool:
    match bound:
        case Gt(gt=low):
            return bool(low < value < math.inf)
        case Ge(ge=low):
            return bool(low <= value < math.inf)
        case Lt(lt=high):
            return bool(value < high)
        case Le(le=high):
            return bool(value <= high)
        case MinLen(min_length=least):
            return len(value) >= least
        case Rising(strictly=strictly):
            low, high = value
            return bool(low < high or (low == high and not strictly))
    return True


def _described(bound: object) -> str:
    match bound:
        case Interval(gt=above, ge=low, lt=below, le=high):
            left = f"[{low}" if above is None else f"({above}"
            return f"in {left}, {high}]" if below is None else f"in {left}, {below})"
        case Gt(gt=low):
            return f"> {low}"
        case Ge(ge=low):
            return f">= {low}"
        case Lt(lt=high):
            return f"< {high}"
        case Le(le=high):
            return f"<= {high}"
        case MinLen(min_length=least):
            return f"of length >= {least}"
        case Rising(strictly=strictly):
            return "with low < high" if strictly else "with low <= high"
    return ""
