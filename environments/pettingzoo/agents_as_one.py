"""A PettingZoo parallel environment as one Gymnasium environment with Dict spaces."""

from copy import deepcopy
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.core import RenderFrame

from coach_rl.core.agent_info import AGENTS, REWARD, TERMINATED, TRUNCATED
from coach_rl.core.errors import ConfigurationError, EnvironmentFault

INFO = "info"
"""Prefix of an agent's own info, beside its reward and ends."""


class AgentsAsOne(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """All agents of a parallel environment seen as one that acts for each of them.

    Observations and actions are dicts by the agents' names, the reward is the sum of theirs.
    Agents may leave before the others: from then on their part of the observation stays the last
    one, their part of the action is ignored and their reward is 0. The episode is over when all
    have left: truncated where any of the last was cut off, terminated else. What each agent got
    stands in the info under the names of `core.agent_info`, the agent's own info under
    `agents/<name>/info`.

    Args:
        parallel: A `pettingzoo.ParallelEnv`; owned from now on.
        level: Its name, for messages.
        max_episode_steps: All agents are cut off after this many steps; None: only by themselves.

    Raises:
        ConfigurationError: It does not say beforehand which agents there can be.
    """

    def __init__(self, parallel: Any, *, level: str, max_episode_steps: int | None = None) -> None:
        names = getattr(parallel, "possible_agents", None)
        if not names or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(
                f"'{level}' must name its agents beforehand with strings, got possible_agents "
                f"{names!r}; without them there is nothing to give to the members of a group"
            )
        self.parallel = parallel
        self.names: list[str] = list(names)
        self.observation_space = spaces.Dict(
            {name: parallel.observation_space(name) for name in self.names}
        )
        self.action_space = spaces.Dict({name: parallel.action_space(name) for name in self.names})
        self.render_mode = getattr(parallel, "render_mode", None)
        self.metadata = dict(getattr(parallel, "metadata", {}))
        self._limit = np.inf if max_episode_steps is None else max_episode_steps
        self._elapsed = 0
        self._seen: dict[str, object] = {}
        self._terminated: dict[str, bool] = {}
        self._truncated: dict[str, bool] = {}

    @property
    def np_random(self) -> Any:
        """The parallel environment's own generator; None where it has none of that name."""
        return getattr(self.parallel.unwrapped, "np_random", None)

    @np_random.setter
    def np_random(self, value: np.random.Generator) -> None:
        self.parallel.unwrapped.np_random = value

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[dict[str, object], dict[str, object]]:
        """Begin an episode.

        Raises:
            EnvironmentFault: Not all agents are there from the beginning.
        """
        observations, infos = self.parallel.reset(seed=seed, options=options)
        missing = [name for name in self.names if name not in self.parallel.agents]
        if missing:
            raise EnvironmentFault(
                f"the agents {missing} are not there when the episode begins; "
                "agents may leave early, but they cannot come later"
            )
        self._elapsed = 0
        self._seen = {name: observations[name] for name in self.names}
        self._terminated = dict.fromkeys(self.names, False)
        self._truncated = dict.fromkeys(self.names, False)
        return dict(self._seen), self._info(dict.fromkeys(self.names, 0.0), infos)

    def step(
        self, action: dict[str, object]
    ) -> tuple[dict[str, object], float, bool, bool, dict[str, object]]:
        """Let the agents that are still there act.

        Raises:
            EnvironmentFault: An agent came later, or left without an end.
        """
        playing = self._playing()
        given = {name: action[name] for name in self.parallel.agents}
        observations, rewards, terminations, truncations, infos = self.parallel.step(given)
        self._elapsed += 1
        late = self._elapsed >= self._limit
        for name in playing:
            self._terminated[name] = bool(terminations[name])
            self._truncated[name] = bool(truncations[name]) or (late and not terminations[name])
            self._seen[name] = observations[name]
        left = self._playing()
        for name in playing:
            if name not in left:  # stays from now on, whatever becomes of the environment's arrays
                self._seen[name] = deepcopy(observations[name])
        self._check_agents(left)
        own = {name: float(rewards[name]) if name in playing else 0.0 for name in self.names}
        over = not left
        cut = over and any(self._truncated[name] for name in playing)
        info = self._info(own, infos)
        return dict(self._seen), sum(own.values()), over and not cut, cut, info

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        """A frame, as the parallel environment draws it."""
        frame: RenderFrame | list[RenderFrame] | None = self.parallel.render()
        return frame

    def close(self) -> None:
        """Close the parallel environment."""
        self.parallel.close()

    def _playing(self) -> list[str]:
        """The agents whose own episode continues."""
        return [
            name for name in self.names if not (self._terminated[name] or self._truncated[name])
        ]

    def _check_agents(self, left: list[str]) -> None:
        """Raise `EnvironmentFault` unless the environment names exactly those who continue."""
        if self._elapsed >= self._limit:
            return
        present = set(self.parallel.agents)
        lost = [name for name in left if name not in present]
        if lost:
            raise EnvironmentFault(
                f"the agents {lost} left without being terminated or truncated, "
                "so nobody knows what their last state is worth"
            )
        back = sorted(present - set(left))
        if back and left:
            raise EnvironmentFault(
                f"the agents {back} are there although their episode is over; "
                "agents may leave early, but they cannot come back"
            )

    def _info(
        self, rewards: dict[str, float], infos: dict[str, dict[str, object]]
    ) -> dict[str, object]:
        """Return the info of each agent, by the names of `core.agent_info`."""
        return {
            AGENTS: {
                name: {
                    REWARD: rewards[name],
                    TERMINATED: self._terminated[name],
                    TRUNCATED: self._truncated[name],
                    INFO: dict(infos.get(name, {})),
                }
                for name in self.names
            }
        }
