"""The stage of an agent with an action mask."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
from coach_rl.architectures.action_masks import AllowedOutputs
from coach_rl.core.clock import Clock
from coach_rl.core.discrete_actions import choice_sizes, first_action, mask_key
from coach_rl.core.equal_spaces import without
from coach_rl.core.errors import EnvironmentFault, SpaceError
from coach_rl.core.records import ALLOWED, Array, BoolArray, IntArray, Observation
from coach_rl.core.spaces import Space


class ActionMasks(Stage):
    """Shows the agent's mask as a bool array [R, M] under `ALLOWED` instead of the level's key.

    M is the number of the agent's actions, its choices side by side. Networks don't observe it.

    Args:
        key: The observation key of the level's masks.
        sizes: Number of actions of each of the agent's choices.
        agent: The agent's name, for messages.
        entries: Entries of the level's mask that each of the agent's M actions needs, [M, K];
            None: its own entry alone.
    """

    output_rules = (AllowedOutputs(),)

    def __init__(
        self,
        key: str,
        sizes: tuple[int, ...],
        *,
        agent: str,
        entries: IntArray | None = None,
    ) -> None:
        self.key = key
        self._agent = agent
        self.entries = entries
        self.own_keys = frozenset((key,))
        self.kept: Mapping[str, Space] = {ALLOWED: spaces.Box(0, 1, (sum(sizes),), np.bool_)}
        self._begins = np.cumsum((0, *sizes[:-1]))

    def shown(self, space: spaces.Dict) -> spaces.Dict:
        return without(space, self.key)

    def enter(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """The observation with the agent's mask; a goal alone has none."""
        rest = {key: values for key, values in observation.items() if key != self.key}
        given = observation.get(self.key)
        if given is None:
            return rest
        allowed: BoolArray = np.asarray(given.reshape(len(rows), -1) > 0)
        if self.entries is not None:
            allowed = np.logical_and.reduce(allowed[:, self.entries], axis=2)
        return {**rest, ALLOWED: allowed}

    def check(self, observation: Observation, rows: IntArray, clock: Clock) -> None:
        """Raise `EnvironmentFault` where a choice has no action left."""
        allowed = observation[ALLOWED]
        if len(self._begins) == 1:
            stuck = ~np.logical_or.reduce(allowed, axis=1)[:, None]
        else:
            stuck = ~np.logical_or.reduceat(allowed, self._begins, axis=1)
        if not stuck.any():
            return
        place, choice = (int(each[0]) for each in stuck.nonzero())
        which = f" (choice {choice})" if len(self._begins) > 1 else ""
        raise EnvironmentFault(
            f"row {rows[place]} allows agent '{self._agent}' no action{which} at environment step "
            f"{clock.environment_steps}: '{self.key}' is all false; allow one, or end the episode "
            "as terminated there"
        )


def _action_masks(build: StageBuild) -> ActionMasks | None:
    """The stage of an agent that is shown a mask; SpaceError where it doesn't fit its actions.

    The agent's action i is allowed where the level allows what the OutputFilter makes of it.
    """
    agent = build.name
    acts_in = build.context.spaces.action
    key = mask_key(build.observation_space, build.params.action_mask, agent, acts_in)
    if key is None:
        return None
    sizes = choice_sizes(acts_in)
    part = build.observation_space[key]
    found = int(np.prod(part.shape or ()))
    wanted = sum(sizes)
    if not isinstance(part, spaces.MultiBinary | spaces.Box) or found != wanted:
        raise SpaceError(
            f"agent '{agent}' takes the observation '{key}' for its action mask, which has "
            f"{wanted} entries for {acts_in}: got {part}; correct it, name another key "
            "by action_mask=..., or observe it by action_mask=None"
        )
    own = build.output_filter.agent_space
    if own == acts_in:
        return ActionMasks(key, sizes, agent=agent)
    if not isinstance(own, spaces.Discrete):
        raise SpaceError(
            f"agent '{agent}' has an action mask '{key}' for {acts_in}, and its "
            f"OutputFilter leaves it {own}; masks pass a filter to Discrete actions alone; leave "
            "the filter out, or set action_mask=None"
        )
    made = build.output_filter.apply(np.arange(own.start, own.start + own.n, dtype=np.int64))
    assert not isinstance(made, dict), "a filter makes one array of actions"
    choices = (made - first_action(acts_in)).reshape(int(own.n), -1).astype(np.int64)
    entries = choices + np.cumsum((0, *sizes[:-1]))
    return ActionMasks(key, (int(own.n),), agent=agent, entries=entries)


KIND = StageKind(order=20, build=_action_masks)
