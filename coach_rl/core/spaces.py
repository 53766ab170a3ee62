"""Observation and action spaces of Gymnasium, and batches of their values."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.errors import ActionError, SpaceError, UnknownNameError
from coach_rl.core.records import (
    ACTION_MASK,
    ALLOWED,
    Action,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
)

Space = gymnasium.Space[Any]
ROUNDING = 1e-6
"""Largest error that a cast of floats may make, as a part of the range that a Box declares."""
FORBIDDEN = -1e30
"""Logit or value of an action that a mask forbids: finite, as 0 * FORBIDDEN has to be 0."""
ActionUnit = Literal["half_range", "raw"]
"""The unit of sizes in a Box of actions: half-ranges of each element, so that they mean
the same in every Box; or the Box's own units, the same number for all elements."""


@dataclass(frozen=True, kw_only=True)
class EnvironmentSpaces:
    """The observation space and the action space of one row."""

    observation: spaces.Dict
    """A space per observation key; a plain, unnamed observation stands under `observation`."""
    action: Space
    """Box, Discrete, MultiDiscrete or MultiBinary, or a Dict of these."""
    nested: Space | None = field(default=None, compare=False)
    """The environment's own action space where it is a Dict or Tuple, whose parts `action` has by
    flat names; None: it is `action`."""

    @property
    def own_action(self) -> Space:
        """The action space as the environment declares it."""
        return self.action if self.nested is None else self.nested


class PolicySpace(ABC):
    """A space of a form of actions that brings its own policy; derive it from a space as well."""

    @property
    @abstractmethod
    def uniform_size(self) -> int:
        """Number of uniform numbers that a random action takes."""

    @abstractmethod
    def from_uniform(self, uniform: FloatArray, allowed: BoolArray | None) -> Array:
        """Random actions [R, ...] from such numbers, see `random_actions.actions_from_uniform`."""

    @property
    @abstractmethod
    def distribution(self) -> Any:
        """The `functional.distributions.Distribution` of a stochastic policy."""

    @property
    @abstractmethod
    def sampler(self) -> Any:
        """The `exploration_policies.sampling.Sampler` of a stochastic policy."""


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


def is_float_box(space: Space) -> bool:
    """Return whether a space is a Box of floats, of any shape."""
    return isinstance(space, spaces.Box) and bool(np.issubdtype(space.dtype, np.floating))


def acts_in_units(space: Space) -> bool:
    """Return whether bounds of a Box of floats, or of one in a Dict, are others than [-1, 1]."""
    match space:
        case spaces.Dict():
            return any(map(acts_in_units, space.values()))
        case spaces.Box() if is_float_box(space):
            return bool(((space.low != -1) | (space.high != 1)).any())
    return False


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


def choice_sizes(space: Space) -> tuple[int, ...]:
    """The number of actions of each discrete choice of a space; a Box has none.

    An action mask has that many entries, choice by choice; a binary element is a choice of two.
    """
    match space:
        case spaces.Discrete():
            return (int(space.n),)
        case spaces.MultiDiscrete():
            return tuple(int(size) for size in space.nvec.reshape(-1))
        case spaces.MultiBinary():
            return (2,) * int(np.prod(space.shape))
        case spaces.Dict():
            return tuple(size for part in space.spaces.values() for size in choice_sizes(part))
        case spaces.Tuple():
            return tuple(size for part in space.spaces for size in choice_sizes(part))
    return ()


def mask_key(shown: spaces.Dict, key: str | None, agent: str, space: Space) -> str | None:
    """The observation key of an agent's mask; None where it has none.

    That is the one under the agent's own name, `<agent>/<key>`, or the plain `key`.

    Args:
        shown: What the environment shows.
        key: The agent's setting.
        agent: The agent's name.
        space: Where it acts; a Box has nothing to mask.

    Raises:
        SpaceError: An observation has the name under which masks are passed on.
        UnknownNameError: There is no such key. The default one may be absent.
    """
    if ALLOWED in shown.spaces:
        raise SpaceError(
            f"agent '{agent}' observes '{ALLOWED}', the name under which agents pass action masks "
            "on; give the observation key another name"
        )
    if key is None or not choice_sizes(space):
        return None
    found = next((each for each in (f"{agent}/{key}", key) if each in shown.spaces), None)
    if found is None and key != ACTION_MASK:
        raise UnknownNameError(
            "observation key", key, shown.spaces, where=f"(the action_mask of agent '{agent}')"
        )
    return found


def first_action(space: Space) -> Array:
    """Return the offset from a choice counted from 0 to a discrete action; 0 for a Box."""
    match space:
        case spaces.Discrete() | spaces.MultiDiscrete():
            return np.asarray(space.start, np.int64)
    return np.zeros((), np.float32)


def forbidden(space: Space, action: Action, allowed: Array) -> BoolArray:
    """Return which actions [R, ...] a mask forbids, [R].

    Args:
        space: Where they lie.
        action: [R, ...], or a dict of such arrays for a Dict space.
        allowed: [R, M]; an entry above 0 allows.
    """
    is_open = allowed.reshape(len(allowed), -1) > 0
    wrong = np.zeros(len(allowed), np.bool_)
    parts = space.spaces if isinstance(space, spaces.Dict) else {"": space}
    begin = 0
    for key, part in parts.items():
        chosen = (action[key] if isinstance(action, dict) else action) - first_action(part)
        for number, size in enumerate(choice_sizes(part)):
            own = is_open[:, begin : begin + size]
            column = chosen.reshape(len(allowed), -1)[:, number].astype(np.int64)
            wrong |= ~np.take_along_axis(own, column[:, None], axis=1)[:, 0]
            begin += size
    return wrong


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


def check_counts(actions: Action, count: int, owner: str = "") -> None:
    """Raise `ActionError` unless there is one action for each of so many rows.

    Args:
        actions: [rows, ...], or a dict of such arrays.
        count: R.
        owner: Beginning of the message, with what made them.
    """
    parts = actions.values() if isinstance(actions, dict) else (actions,)
    try:
        lengths = set(map(len, parts))
    except TypeError:  # a number
        lengths = {0}
    if lengths - {count}:
        got = ", ".join(map(str, sorted({np.shape(part) for part in parts})))
        raise ActionError(f"{owner}{count} rows were sent actions of shape {got}; send one per row")


def check_actions(space: Space, actions: Action, rows: IntArray | None = None) -> None:
    """Raise `ActionError` naming the first row whose action does not lie in `space`.

    Args:
        space: The space of one row's action.
        actions: [rows, ...], or a dict of such arrays for a Dict space.
        rows: Their numbers, for the message; None: they count from 0.
    """
    if isinstance(space, spaces.Dict):
        if not isinstance(actions, Mapping) or set(actions) != set(space.spaces):
            got = sorted(actions) if isinstance(actions, Mapping) else type(actions).__name__
            raise ActionError(f"the action needs the keys {sorted(space.spaces)}, got {got}")
        for key, part in space.spaces.items():
            check_actions(part, actions[key], rows)
        return
    if isinstance(actions, Mapping):
        raise ActionError(f"the action must be one array for {space}, got keys {sorted(actions)}")
    if actions.shape[1:] != space.shape:
        raise ActionError(
            f"an action for {space} has shape {space.shape} per row, got {actions.shape[1:]}"
        )
    allowed = inside(space, actions)
    if np.count_nonzero(allowed) < allowed.size:  # several times faster than `all`
        place = int(np.flatnonzero(~allowed.reshape(len(actions), -1).all(axis=1))[0])
        row = place if rows is None else rows[place]
        raise ActionError(
            f"action {actions[place]} of row {row} lies outside {space}; "
            "clip or round it, or let an OutputFilter do so"
        )


def inside(space: Space, values: Array) -> BoolArray:
    """Return which elements of values [rows, ...] of a space that is no Dict lie in it."""
    match space:
        case spaces.Box():
            within = np.asarray((values >= space.low) & (values <= space.high))
            is_cut = values.dtype.kind == "f" and not is_float_box(space)
            return within & (values == np.rint(values)) if is_cut else within
        case spaces.Discrete():
            integral = values.dtype.kind in "iu"
            return np.asarray(integral & (values >= space.start) & (values < space.start + space.n))
        case spaces.MultiDiscrete():
            integral = np.issubdtype(values.dtype, np.integer)
            return np.asarray(
                integral & (values >= space.start) & (values < space.start + space.nvec)
            )
        case spaces.MultiBinary():
            return np.asarray((values == 0) | (values == 1))
    raise SpaceError(f"cannot act in a {type(space).__name__} space")
