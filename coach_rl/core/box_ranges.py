"""The bounds of Boxes, and values within them."""

from typing import Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Action, Array, BoolArray
from coach_rl.core.spaces import Space, is_float_box

ActionUnit = Literal["half_range", "raw"]
"""The unit of sizes in a Box of actions: half-ranges of each element, so that they mean
the same in every Box; or the Box's own units, the same number for all elements."""


def acts_in_units(space: Space) -> bool:
    """Return whether bounds of a Box of floats, or of one in a Dict, are others than [-1, 1]."""
    match space:
        case spaces.Dict():
            return any(map(acts_in_units, space.values()))
        case spaces.Box() if is_float_box(space):
            return bool(((space.low != -1) | (space.high != 1)).any())
    return False


def has_finite_width(low: Array, high: Array) -> BoolArray:
    """Return where bounds of a Box are finite and their difference fits into float32, [...]."""
    with np.errstate(over="ignore", invalid="ignore"):
        width = np.asarray(high, np.float32) - np.asarray(low, np.float32)
    return np.asarray(np.isfinite(width))


def require_finite_width(space: spaces.Box, purpose: str) -> None:
    """Raise `SpaceError` unless half the range of every element can be computed.

    Args:
        space: A Box of floats.
        purpose: What the Box is for, with its requirement, as the beginning of the message.
    """
    if has_finite_width(space.low, space.high).all():
        return
    if np.isfinite(space.low).all() and np.isfinite(space.high).all():
        remedy = "LinearBoxToBoxMap(low=-1, high=1) in an OutputFilter maps a Box this wide"
    else:
        remedy = "BoxMasking(low=..., high=...) in an OutputFilter gives it bounds"
    raise SpaceError(f"{purpose}, got {space}; {remedy}")


def stretched(
    values: Array, from_low: Array, from_high: Array, to_low: Array, to_high: Array
) -> Array:
    """Values [R, ...] of one range in another, linearly, element by element.

    Each bound is mapped exactly onto the other's; values outside a range come to its bound.
    """
    fraction = np.subtract(values, from_low, dtype=np.float64)
    fraction /= np.subtract(from_high, from_low, dtype=np.float64)
    fraction = np.clip(fraction, 0.0, 1.0)
    result = (to_low * (1.0 - fraction) + to_high * fraction).astype(to_low.dtype)
    return np.asarray(np.clip(result, to_low, to_high))


def clipped_to_space(space: Space, actions: Action) -> Action:
    """Actions [R, ...] with the elements of every Box clipped to its bounds, in the Box's dtype."""
    if isinstance(space, spaces.Dict) and isinstance(actions, dict):
        return {key: _clipped(space[key], part) for key, part in actions.items()}
    assert not isinstance(actions, dict), "a dict of actions needs a Dict space"
    return _clipped(space, actions)


def _clipped(space: Space, actions: Array) -> Array:
    if isinstance(space, spaces.Box):
        clipped = np.minimum(np.maximum(actions, space.low), space.high)
        return clipped.astype(space.dtype, copy=False)
    return actions
