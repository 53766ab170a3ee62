"""Actions drawn from uniform numbers, evenly over a space and only those that are allowed."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray
from coach_rl.core.spaces import PolicySpace, Space


def uniform_size(space: Space) -> int:
    """Return the number of uniform numbers that `actions_from_uniform` needs per action."""
    match space:
        case spaces.Discrete():
            return 1
        case spaces.Box() | spaces.MultiDiscrete() | spaces.MultiBinary():
            return int(np.prod(space.shape))
        case spaces.Dict():
            return sum(uniform_size(part) for part in space.spaces.values())
        case PolicySpace():
            return space.uniform_size
    raise SpaceError(
        f"cannot act in a {type(space).__name__} space; allowed: "
        "Box, Discrete, MultiDiscrete, MultiBinary, Dict of these"
    )


def allowed_choice(allowed: BoolArray, uniform: FloatArray) -> IntArray:
    """Choices [R], from 0, that are equally likely among the allowed ones.

    Args:
        allowed: [R, n]; where nothing is allowed, the first is chosen.
        uniform: Numbers in [0, 1), [R].
    """
    count = allowed.sum(axis=1)
    # The product may round up to the count itself.
    number = np.minimum((uniform * count).astype(np.int64), count - 1)
    choice: IntArray = (allowed.cumsum(axis=1) > number[:, None]).argmax(axis=1)
    return choice


def actions_from_uniform(
    space: Space, uniform: FloatArray, allowed: BoolArray | None = None
) -> Action:
    """Random actions over the whole of `space`.

    A bounded side of a Box is covered uniformly, a side without bounds gets a logistic number of
    scale 1, a half-bounded side an exponential one beyond its bound.

    Args:
        space: Where the actions lie.
        uniform: Numbers in [0, 1), shape [rows, uniform_size(space)].
        allowed: Which discrete actions are allowed, [rows, sum of choice_sizes(space)]; None: all.

    Returns:
        Actions in the dtype of the space, shape [rows, ...]; a dict of them for a Dict space.
    """
    rows = len(uniform)
    is_plain = not isinstance(space, spaces.Dict | PolicySpace)
    if allowed is not None and is_plain and choice_sizes(space):
        by_choice = np.split(allowed, np.cumsum(choice_sizes(space))[:-1], axis=1)
        columns = [
            allowed_choice(part, uniform[:, number]) for number, part in enumerate(by_choice)
        ]
        chosen = np.stack(columns, axis=1).reshape(rows, *(space.shape or ()))
        return (first_action(space) + chosen).astype(space.dtype)
    match space:
        case spaces.Discrete():
            return np.asarray(space.start + (uniform[:, 0] * space.n).astype(np.int64))
        case spaces.MultiDiscrete():
            flat = uniform * space.nvec.reshape(-1)
            start = space.start.reshape(-1)
            drawn = (start + flat.astype(np.int64)).reshape(rows, *space.shape)
            return drawn.astype(space.dtype, copy=False)
        case spaces.MultiBinary():
            return (uniform >= 0.5).astype(space.dtype).reshape(rows, *space.shape)
        case spaces.Box():
            return _box_from_uniform(space, uniform).reshape(rows, *space.shape)
        case spaces.Dict():
            parts: dict[str, Array] = {}
            begin = first = 0
            for key, part in space.spaces.items():
                size = uniform_size(part)
                choices = sum(choice_sizes(part))
                own = None if allowed is None else allowed[:, first : first + choices]
                action = actions_from_uniform(part, uniform[:, begin : begin + size], own)
                if isinstance(action, dict):
                    raise SpaceError(f"action part '{key}' is a Dict inside a Dict; flatten it")
                parts[key] = action
                begin += size
                first += choices
            return parts
        case PolicySpace():
            return space.from_uniform(uniform, allowed)
    raise SpaceError(f"cannot act in a {type(space).__name__} space")


def _box_from_uniform(space: spaces.Box, uniform: FloatArray) -> Array:
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    below, above = np.isfinite(low), np.isfinite(high)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        exponential = -np.log1p(-uniform)
        logistic = np.log(np.maximum(uniform, 1e-12)) + exponential
        value = np.where(below & above, low + uniform * (high - low), logistic)
        wide = below & above & ~np.isfinite(high - low)  # the difference overflows
        value = np.where(wide, low * (1 - uniform) + high * uniform, value)
        value = np.where(below & ~above, low + exponential, value)
        value = np.where(~below & above, high - exponential, value)
    if np.issubdtype(space.dtype, np.integer):
        value = np.floor(low + uniform * (high.astype(np.float64) - low + 1))
    return value.astype(space.dtype)
