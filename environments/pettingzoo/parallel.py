"""PettingZoo's parallel environments: their description, and all agents as one environment."""

from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.core import RenderFrame

from coach_rl.core.errors import ConfigurationError, EnvironmentFault
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.records import AGENTS, REWARD, TERMINATED, TRUNCATED
from coach_rl.core.shown_text import name_of_class
from coach_rl.core.typed_values import thawed
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import (
    Env,
    Recipe,
    entry_point,
    guarded,
    imported,
    wrapped,
)

MAKER = "parallel_env"
"""Name of the function that makes an environment in every module of PettingZoo's."""
INFO = "info"
"""Prefix of an agent's own info, beside its reward and ends."""


@parameter_class
class PettingZooParameters(SingleEnvironmentsParameters):
    """A parallel environment of PettingZoo's kind: agents by name that act at the same time.

    Its spaces are Dicts by the agents' names, for an `AgentGroup`.
    """

    level: str = field(metadata={ADVICE: name_of_class})
    """A module that has a `parallel_env` (`mpe2.simple_spread_v3`), or the `module:Class` of a
    `pettingzoo.ParallelEnv`, or a `module:function` annotated to return one."""
    max_episode_steps: int | None = None
    """All agents are truncated after this many steps; None and -1: only by the environment."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one row after the other in this process. subprocess: rows spread over workers."""

    def code_names(self) -> tuple[str, ...]:
        named = () if ":" in self.level else (f"{self.level}:{MAKER}",)
        return (*named, *super().code_names())

    def recipe(self) -> Recipe:
        return ParallelRecipe(
            level=self.level,
            kwargs=self.kwargs,
            wrappers=self.wrappers,
            max_episode_steps=None if self.max_episode_steps == -1 else self.max_episode_steps,
        )


@dataclass(frozen=True, kw_only=True)
class ParallelRecipe(Recipe):
    """A picklable recipe of one parallel environment."""

    def make(self) -> Env:
        pettingzoo = imported("pettingzoo", kind="environment")
        parallel_env, makes = pettingzoo.ParallelEnv, (pettingzoo.ParallelEnv, pettingzoo.AECEnv)
        name = self.level if ":" in self.level else f"{self.level}:{MAKER}"
        maker = entry_point(name, kind="environment", makes=makes, unannotated=(MAKER,))
        made = guarded(maker, what=f"'{self.level}'", **thawed(self.kwargs))
        parallel = wrapped(made, self.wrappers, makes=makes)
        if not isinstance(parallel, parallel_env):
            raise ConfigurationError(
                f"'{self.level}' made a {type(parallel).__name__}, not a pettingzoo.ParallelEnv; "
                f"name what makes the parallel form, such as mpe2.simple_spread_v3:{MAKER}, or put "
                "pettingzoo.utils.conversions:turn_based_aec_to_parallel among the wrappers"
            )
        return AgentsAsOne(parallel, level=self.level, max_episode_steps=self.max_episode_steps)


class AgentsAsOne(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """A Gymnasium environment whose action has a part for each agent of a parallel environment.

    Observations and actions are dicts by the agents' names, the reward is the sum of theirs.
    Agents may leave before the others: from then on their part of the observation stays the last
    one, their part of the action is ignored and their reward is 0. The episode ends when all have
    left: truncated if any of the last was truncated, otherwise terminated. Each agent's reward and
    end are in the info under the names of `core.agent_info`, its own info under
    `agents/<name>/info`.

    Args:
        parallel: A `pettingzoo.ParallelEnv`; owned from now on.
        level: Its name, for messages.
        max_episode_steps: All agents are truncated after this many steps; None: never.

    Raises:
        ConfigurationError: It has no `possible_agents`.
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
        """Start an episode.

        Raises:
            EnvironmentFault: Some agents are missing at the start.
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
        """One step of the agents that are still there.

        Raises:
            EnvironmentFault: An agent appeared later, or left without an end.
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
            if name not in left:  # kept from now on; the environment may reuse its arrays
                self._seen[name] = deepcopy(observations[name])
        self._check_agents(left)
        own = {name: float(rewards[name]) if name in playing else 0.0 for name in self.names}
        over = not left
        cut = over and any(self._truncated[name] for name in playing)
        info = self._info(own, infos)
        return dict(self._seen), sum(own.values()), over and not cut, cut, info

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        frame: RenderFrame | list[RenderFrame] | None = self.parallel.render()
        return frame

    def close(self) -> None:
        self.parallel.close()

    def _playing(self) -> list[str]:
        """The agents whose own episode continues."""
        return [
            name for name in self.names if not (self._terminated[name] or self._truncated[name])
        ]

    def _check_agents(self, left: list[str]) -> None:
        """Raise `EnvironmentFault` unless the environment has exactly the agents that continue."""
        if self._elapsed >= self._limit:
            return
        present = set(self.parallel.agents)
        lost = [name for name in left if name not in present]
        if lost:
            raise EnvironmentFault(
                f"the agents {lost} left without being terminated or truncated, "
                "so the value of their last state is unknown"
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
        """The info of each agent, by the names of `core.agent_info`."""
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
