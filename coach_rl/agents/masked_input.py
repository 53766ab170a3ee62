"""The InputFilter of an agent with an action mask."""

import numpy as np
from gymnasium import spaces

from coach_rl.architectures.action_masks import AllowedOutputs
from coach_rl.core.clock import Clock
from coach_rl.core.errors import EnvironmentFault, SpaceError
from coach_rl.core.interfaces import InputFilter, OutputFilter
from coach_rl.core.records import ALLOWED, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import EnvironmentSpaces, choice_sizes, first_action


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
    output_rules = (AllowedOutputs(),)

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
    found = int(np.prod(part.shape or ()))
    wanted = sum(sizes)
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
