"""Discrete choices of an action space, and the masks that forbid some of them."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError, UnknownNameError
from coach_rl.core.records import ACTION_MASK, ALLOWED, Action, Array, BoolArray
from coach_rl.core.spaces import Space

FORBIDDEN = -1e30
"""Logit or value of an action that a mask forbids: finite, as 0 * FORBIDDEN has to be 0."""


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
    for each in (f"{agent}/{key}", key):
        if each in shown.spaces:
            return each
    if key != ACTION_MASK:
        raise UnknownNameError(
            "observation key", key, shown.spaces, where=f"(the action_mask of agent '{agent}')"
        )
    return None


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
