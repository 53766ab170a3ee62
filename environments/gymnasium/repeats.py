"""Actions that are repeated within a step of a Gymnasium environment."""

from collections.abc import Mapping
from copy import deepcopy
from functools import reduce
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes, forbidden
from coach_rl.core.infos import is_agent_end, is_agent_reward
from coach_rl.core.records import ACTION_MASK
from coach_rl.environments.gymnasium.layout import (
    SUCCESS,
    Info,
    Layout,
    entry,
    flat_info,
    layout_of,
)
from coach_rl.environments.gymnasium.rows import flag, number, step_values


class RepeatedActions(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose step is several of the inner one's with the same action.

    The last inner step is one that ends the episode, or after which the observation's `action_mask`
    forbids the action. The observation is that of the last one. Rewards are summed, as are agents'
    own rewards in the info. A success, and an agent's own end, in any inner step is one of the
    step; other infos are the last that were given.

    Args:
        env: The environment, with its time limit.
        count: Inner steps in a step.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, count: int) -> None:
        super().__init__(env)
        self._count = count
        shown = getattr(env, "observation_space", None)
        allowed = shown.spaces.get(ACTION_MASK) if isinstance(shown, spaces.Dict) else None
        self._masked: Layout | None = None
        """Layout of the mask and of actions; None without a mask."""
        size = sum(choice_sizes(env.action_space)) if allowed is not None else 0
        if allowed is not None and np.prod(allowed.shape or ()) == size > 0:
            only = spaces.Dict({ACTION_MASK: allowed})
            self._masked = layout_of(only, env.action_space, level=str(env.unwrapped))

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        total = 0.0
        known = Info()
        for _ in range(self._count):
            # The environment may change its action in place.
            answer = step_values(self.env.step(deepcopy(action)))
            observation, reward, terminated, truncated, info = answer
            total += number(reward)
            known = _joined(known, flat_info(info))
            is_over = flag(terminated, "terminated") | flag(truncated, "truncated")
            if is_over or (self._masked and _is_forbidden(action, observation, self._masked)):
                break
        return observation, total, terminated, truncated, {**info, **known}


def _is_forbidden(action: object, observation: object, layout: Layout) -> bool:
    """Return whether the observation's mask forbids the action."""
    (allowed,) = layout.leaves(observation)
    parts = [np.asarray(reduce(entry, path, action))[None] for path in layout.action_paths]
    space = layout.spaces.action
    named = dict(zip(space.spaces, parts, strict=True)) if isinstance(space, spaces.Dict) else None
    return bool(forbidden(space, named or parts[0], allowed[None]).any())


def _joined(before: Mapping[str, Any], now: Info) -> Info:
    """The infos of several steps, from those before and those of the last one."""
    joined: dict[str, Any] = {**before, **now}
    for name in before.keys() & now.keys():
        if is_agent_reward(name):
            joined[name] = before[name] + now[name]
        elif name in SUCCESS or is_agent_end(name):
            joined[name] = max(before[name], joined[name])
    return joined
