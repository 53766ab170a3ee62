"""Filters that agents have by themselves: none at all, action masks, actions scaled to a Box."""

import warnings

import numpy as np
from gymnasium import spaces

from coach_rl.core.box_ranges import has_finite_width, stretched
from coach_rl.core.errors import CoachWarning
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import Space, is_float_box

_WHOLE = "action"
"""The one part of actions that are no dict."""


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
    """An OutputFilter behind which the agent acts in [-1, 1] instead of its Box, or its Boxes.

    Elements without a finite width stay as they are, and so do those that are [-1, 1] already.

    Args:
        inner: What actions pass next, from the space on.
        space: The Box that `inner` leaves to the agent, or a Dict; its other parts stay as they
            are.
    """

    SAVED = (SavedAttribute("_inner", inline=True),)

    def parts(self) -> dict[str, object]:
        return {"inner": self._inner}

    def __init__(self, inner: OutputFilter, space: Space) -> None:
        self._inner = inner
        self.scaled: dict[str, tuple[BoolArray, spaces.Box, spaces.Box]] = {}
        """The elements that move, the scaled Box and the given one, by part."""
        for key, box in _boxes(space).items():
            moves = _moves(box)
            one = box.dtype.type(1)
            low, high = np.where(moves, -one, box.low), np.where(moves, one, box.high)
            scaled = spaces.Box(low, high, dtype=box.dtype.type)
            self.scaled[key] = (moves, scaled, box)
        scaled_parts = {key: scaled for key, (_, scaled, _) in self.scaled.items()}
        self.agent_space: Space = (
            spaces.Dict({**space.spaces, **scaled_parts})
            if isinstance(space, spaces.Dict)
            else scaled_parts[_WHOLE]
        )

    def apply(self, action: Action) -> Action:
        return self._inner.apply(self._mapped(action))

    def inverse(self, action: Action) -> Action:
        return self._mapped(self._inner.inverse(action), back=True)

    def _mapped(self, action: Action, *, back: bool = False) -> Action:
        if isinstance(action, dict):
            return {key: self._mapped_part(key, part, back) for key, part in action.items()}
        return self._mapped_part(_WHOLE, action, back)

    def _mapped_part(self, key: str, action: Array, back: bool) -> Array:
        if key not in self.scaled:
            return action
        moves, given, wanted = self.scaled[key]
        if back:
            given, wanted = wanted, given
        mapped = action.astype(wanted.dtype)
        mapped[:, moves] = stretched(
            action[:, moves],
            given.low[moves],
            given.high[moves],
            wanted.low[moves],
            wanted.high[moves],
        )
        return mapped


def needs_scaling(space: Space) -> bool:
    """Return whether an element of a Box, or of one in a Dict, moves when it is scaled."""
    return any(bool(_moves(box).any()) for box in _boxes(space).values())


def warn_of_endless(space: Space, owner: str) -> None:
    """Warn of elements of Boxes without finite bounds, which aren't scaled.

    Args:
        space: A Box or a Dict.
        owner: The agent, for the message.
    """
    for key, box in _boxes(space).items():
        endless = np.flatnonzero(~has_finite_width(box.low, box.high))
        if len(endless):
            part = f" '{key}'" if isinstance(space, spaces.Dict) else ""
            warnings.warn(
                f"{owner} draws elements {endless.tolist()} of its actions{part} from N(0, 1) at "
                f"first, as {box} has no width to scale them to; give it "
                "OutputFilter(action=(BoxMasking(low=..., high=...), "
                "LinearBoxToBoxMap(low=-1, high=1))), the map alone where bounds are finite",
                CoachWarning,
                stacklevel=3,
            )


def _boxes(space: Space) -> dict[str, spaces.Box]:
    """The Boxes of floats of a space, by part."""
    parts = space.spaces if isinstance(space, spaces.Dict) else {_WHOLE: space}
    return {
        key: part
        for key, part in parts.items()
        if isinstance(part, spaces.Box) and is_float_box(part)
    }


def _moves(box: spaces.Box) -> BoolArray:
    """Return which elements have a finite width, and aren't [-1, 1]."""
    low, high = box.low, box.high
    return np.asarray(has_finite_width(low, high) & (low < high) & ((low != -1) | (high != 1)))
