"""Filters that agents have by themselves: none at all, action masks, actions scaled to a Box."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.errors import EnvironmentFault, SpaceError
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
    has_finite_width,
    stretched,
)


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
        if mask.all():
            return
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
    """
    if ALLOWED in shown.spaces:
        raise SpaceError(
            f"agent '{agent}' observes '{ALLOWED}', the name under which agents pass action masks "
            "on; give the observation key another name"
        )
    if key is None or not choice_sizes(space):
        return None
    return next((each for each in (f"{agent}/{key}", key) if each in shown.spaces), None)


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
    first = getattr(spaces_shown.action, "start", np.zeros((), np.int64))
    assert not isinstance(made, dict), "a filter makes one array of actions"
    choices = (made - first).reshape(int(own.n), -1)
    needed = choices + np.cumsum((0, *sizes[:-1]))
    return MaskedInput(inner, key, (int(own.n),), agent=agent, needed=needed)
