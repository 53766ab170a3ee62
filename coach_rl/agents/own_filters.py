"""Filters that agents have by themselves: none at all, action masks, actions scaled to a Box."""

import warnings

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.errors import CoachWarning, EnvironmentFault, SpaceError
from coach_rl.core.interfaces import InputFilter, OutputFilter
from coach_rl.core.records import (
    ALLOWED,
    Action,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import (
    EnvironmentSpaces,
    Space,
    choice_sizes,
    first_action,
    has_finite_width,
    is_float_box,
    stretched,
)

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
            moves, one = _moves(box), box.dtype.type(1)
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


class MaskedInput(Saved):
    """An InputFilter that passes the agent's mask on beside the other observations.

    The other keys go through `inner`; networks observe those alone. The mask is a bool array [R, M]
    under `ALLOWED`, M the agent's choices side by side.

    Args:
        inner: The filter of the other keys.
        key: The observation key of the environment's masks.
        sizes: Number of actions of each of the agent's choices.
        agent: The agent's name, for messages.
        needed: Entries of the environment's mask that each of the agent's M actions needs, [M, K];
            None: its own entry alone.
    """

    SAVED = (SavedAttribute("_inner", inline=True),)

    def __init__(
        self,
        inner: InputFilter,
        key: str,
        sizes: tuple[int, ...],
        *,
        agent: str,
        needed: IntArray | None = None,
    ) -> None:
        self._inner, self.key, self._agent, self.needed = inner, key, agent, needed
        self._begins = np.cumsum((0, *sizes[:-1]))
        self.observation_space = inner.observation_space
        self.changed_keys = inner.changed_keys
        self.changes_reward = inner.changes_reward

    def parts(self) -> dict[str, object]:
        return {"inner": self._inner}

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        return self._inner.new_rows(num_rows)

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """The filtered observation, with the mask; a goal alone has none."""
        rest = {key: values for key, values in observation.items() if key != self.key}
        filtered = self._inner.observation(memory, rows, rest, starts=starts, learn=learn)
        shown = observation.get(self.key)
        if shown is None:
            return filtered
        mask: BoolArray = np.asarray(shown.reshape(len(rows), -1) > 0)
        if self.needed is not None:
            mask = np.logical_and.reduce(mask[:, self.needed], axis=2)
        return {**filtered, ALLOWED: mask}

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        return self._inner.reward(memory, rows, reward, ends=ends, learn=learn)

    def check(self, mask: BoolArray, rows: IntArray, clock: Clock) -> None:
        """Raise `EnvironmentFault` where a choice has no action left.

        Args:
            mask: [R, M].
            rows: [R], which act or whose last states are valued.
            clock: For the message.
        """
        if len(self._begins) == 1:
            stuck = ~np.logical_or.reduce(mask, axis=1)[:, None]
        else:
            stuck = ~np.logical_or.reduceat(mask, self._begins, axis=1)
        if not stuck.any():
            return
        place, choice = (int(each[0]) for each in stuck.nonzero())
        which = f" (choice {choice})" if len(self._begins) > 1 else ""
        raise EnvironmentFault(
            f"row {rows[place]} allows agent '{self._agent}' no action{which} at environment step "
            f"{clock.environment_steps}: '{self.key}' is all false; allow one, or end the episode "
            "as terminated there"
        )


def masked_input(
    inner: InputFilter, key: str, spaces_shown: EnvironmentSpaces, output: OutputFilter, agent: str
) -> MaskedInput:
    """The filter for a mask under `key`; SpaceError where it doesn't fit the agent's actions.

    Args:
        inner: The filter of the other keys.
        key: The mask's.
        spaces_shown: Of the environment.
        output: The agent's OutputFilter. Its action i is allowed where the environment allows what
            the filter makes of it.
        agent: The agent's name.
    """
    sizes = choice_sizes(spaces_shown.action)
    part = spaces_shown.observation[key]
    found, wanted = int(np.prod(part.shape or ())), sum(sizes)
    if not isinstance(part, spaces.MultiBinary | spaces.Box) or found != wanted:
        raise SpaceError(
            f"agent '{agent}' takes the observation '{key}' for its action mask, which has "
            f"{wanted} entries for {spaces_shown.action}: got {part}; correct it, name another key "
            "by action_mask=..., or observe it by action_mask=None"
        )
    own = output.agent_space
    if own == spaces_shown.action:
        return MaskedInput(inner, key, sizes, agent=agent)
    if not isinstance(own, spaces.Discrete):
        raise SpaceError(
            f"agent '{agent}' has an action mask '{key}' for {spaces_shown.action}, and its "
            f"OutputFilter leaves it {own}; masks pass a filter to Discrete actions alone; leave "
            "the filter out, or set action_mask=None"
        )
    made = output.apply(np.arange(own.start, own.start + own.n, dtype=np.int64))
    assert not isinstance(made, dict), "a filter makes one array of actions"
    choices = (made - first_action(spaces_shown.action)).reshape(int(own.n), -1).astype(np.int64)
    needed = choices + np.cumsum((0, *sizes[:-1]))
    return MaskedInput(inner, key, (int(own.n),), agent=agent, needed=needed)
