"""The meaning of the numbers of a space, and casts between spaces that mean the same."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.records import Array, FloatArray
from coach_rl.core.spaces import Space, is_float_box

ROUNDING = 1e-6
"""Largest error that a cast of floats may make, as a part of the range that a Box declares."""


def nested(space: Space, part: Callable[[str, Space], object], prefix: str = "") -> object:
    """A value in the form of a space: dicts and tuples of its parts.

    Args:
        space: The space.
        part: Returns a part by its flat name, which joins the keys that lead to it by slashes, and
            its space.
        prefix: Begins all names.
    """
    match space:
        case spaces.Dict():
            below = space.spaces.items()
            return {key: nested(each, part, f"{prefix}{key}/") for key, each in below}
        case spaces.Tuple():
            return tuple(
                nested(each, part, f"{prefix}{number}/") for number, each in enumerate(space.spaces)
            )
    return part(prefix[:-1], space)


def loss_of_cast(
    values: Array, dtype: npt.DTypeLike, tolerance: FloatArray | float = np.inf
) -> tuple[int, str] | None:
    """The first number that a cast changes: its place along the first axis, and a text.

    Integers and bools have to stay as they are, floats finite and within the tolerance. NaN and
    infinity stay what they are in floats.

    Args:
        values: [R, ...].
        dtype: What they are cast to.
        tolerance: Largest error of floats, [...]; see `cast_tolerance`.

    Returns:
        None if the cast keeps them all.
    """
    target = np.dtype(dtype)
    if values.dtype == target or np.can_cast(values.dtype, target, "safe"):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(target)
        if target.kind == "f":
            error = np.abs(np.subtract(cast, values, dtype=np.float64))  # NaN where both are inf
            changed = (error > tolerance) | np.isinf(error)
        else:
            changed = cast != values
    if not np.count_nonzero(changed):
        return None
    first = tuple(np.argwhere(changed)[0])
    return int(first[0]), f"{values[first]} ({values.dtype}), which {target} makes {cast[first]}"


def cast_tolerance(space: Space) -> FloatArray | float:
    """The error that a cast of a space's floats may make, [...]: a part of a finite range.

    It is never less than the space's dtype can keep of a range around 0.
    """
    if not isinstance(space, spaces.Box) or not is_float_box(space):
        return np.inf
    with np.errstate(invalid="ignore", over="ignore"):
        width = np.subtract(space.high, space.low, dtype=np.float64)
    part = max(ROUNDING, float(np.finfo(space.dtype).eps))
    return np.where((width > 0) & np.isfinite(width), part * width, np.inf)


def meaning_of(space: Space, *, bounds: bool = False) -> str:
    """Meaning of the numbers of a space as text, equal for spaces whose numbers mean the same.

    Dtypes are left out: the same numbers may be kept in several.

    Args:
        space: Any that environments here have.
        bounds: Whether those of a Box count, as they do for actions; compared as float32.
    """
    match space:
        case spaces.Dict():
            named = sorted((str(key), meaning_of(p, bounds=bounds)) for key, p in space.items())
            return f"{{{', '.join(f'{key}: {meaning}' for key, meaning in named)}}}"
        case spaces.Discrete():
            return f"Discrete({space.n}, start={space.start})"
        case spaces.MultiDiscrete():
            return f"MultiDiscrete({space.nvec.tolist()}, start={space.start.tolist()})"
        case spaces.Box() if bounds:
            return f"Box{space.shape} from {_bound(space.low)} to {_bound(space.high)}"
    return f"{type(space).__name__}{space.shape}"


def _bound(bound: Array) -> str:
    """A bound as text, one number where it is the same for all elements."""
    with np.errstate(over="ignore"):
        values = np.asarray(bound, np.float32)
    is_even = values.size and (values == values.flat[0]).all()
    return f"{values.flat[0]:g}" if is_even else str(values.tolist())


def without(space: spaces.Dict, key: str) -> spaces.Dict:
    """The space without one of its keys."""
    return spaces.Dict({name: part for name, part in space.spaces.items() if name != key})
