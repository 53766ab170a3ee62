"""Observation and action spaces of Gymnasium, and batches of their values."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ActionError, SpaceError
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray

Space = gymnasium.Space[Any]


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


def is_float_box(space: Space) -> bool:
    """Return whether a space is a Box of floats, of any shape."""
    return isinstance(space, spaces.Box) and bool(np.issubdtype(space.dtype, np.floating))


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
