"""Filters that agents have by themselves: none at all, and actions scaled to a Box."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import Space, has_finite_width, stretched


class UnfilteredInput(Saved):
    """Passes observations and rewards through."""

    changed_keys: frozenset[str] = frozenset()
    changes_reward = False

    def __init__(self, space: spaces.Dict) -> None:
        self.observation_space = space

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        return {}

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Return the argument."""
        return observation

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """Return the argument."""
        return reward


class UnfilteredOutput(Saved):
    """Passes actions through."""

    def __init__(self, space: Space) -> None:
        self.agent_space = space

    def apply(self, action: Action) -> Action:
        return action

    def inverse(self, action: Action) -> Action:
        return action


class ScaledOutput(Saved):
    """An OutputFilter behind which the agent acts in [-1, 1] instead of its Box.

    Elements without a finite width stay as they are, and so do those that are [-1, 1] already.

    Args:
        inner: What actions pass next, from the Box on.
        box: The Box that `inner` leaves to the agent.
    """

    SAVED = (SavedAttribute("_inner", inline=True),)

    def parts(self) -> dict[str, object]:
        return {"inner": self._inner}

    def __init__(self, inner: OutputFilter, box: spaces.Box) -> None:
        self._inner, self._box = inner, box
        self._moves = needs_scaling(box)
        one = box.dtype.type(1)
        self.agent_space = spaces.Box(
            np.where(self._moves, -one, box.low),
            np.where(self._moves, one, box.high),
            dtype=box.dtype.type,
        )

    def apply(self, action: Action) -> Action:
        assert not isinstance(action, dict), "a Box of actions is one array"
        return self._inner.apply(self._mapped(action, self.agent_space, self._box))

    def inverse(self, action: Action) -> Action:
        back = self._inner.inverse(action)
        assert not isinstance(back, dict), "a Box of actions is one array"
        return self._mapped(back, self._box, self.agent_space)

    def _mapped(self, action: Array, given: spaces.Box, wanted: spaces.Box) -> Array:
        moves = self._moves
        mapped = action.astype(wanted.dtype)
        mapped[:, moves] = stretched(
            action[:, moves],
            given.low[moves],
            given.high[moves],
            wanted.low[moves],
            wanted.high[moves],
        )
        return mapped


def needs_scaling(box: spaces.Box) -> BoolArray:
    """Return which elements of a flat Box of floats have a finite width, and aren't [-1, 1]."""
    moves = has_finite_width(box.low, box.high) & (box.low < box.high)
    return np.asarray(moves & ((box.low != -1) | (box.high != 1)))
