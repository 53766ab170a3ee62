"""PettingZoo's environments, parallel and turn-based: all agents as one environment."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.core import RenderFrame

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import ConfigurationError, EnvironmentFault, require
from coach_rl.core.infos import AGENTS, REWARD, TERMINATED, TRUNCATED
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.records import ACTION_MASK
from coach_rl.core.shown_text import name_of_class
from coach_rl.core.typed_values import thawed
from coach_rl.environments.gymnasium.layout import as_dict
from coach_rl.environments.gymnasium.masks import INFO, shown_mask, with_mask, with_mask_space
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import (
    Env,
    Recipe,
    entry_point,
    guarded,
    imported,
    named_in,
    wrapped,
)
from coach_rl.environments.gymnasium.rows import flag, number, start_pair, step_values

T = TypeVar("T")

PARALLEL = "parallel_env"
TURN_BASED = "env"
"""Names of the functions that make an environment in modules of PettingZoo's."""
ACTIVE = "active_agent"
"""Key of an agent's own info in turn-based environments."""
TURN = "turn"
"""Prefix of the observations that show whose turn it is."""
OWN_INFO = "info"
"""Prefix of an agent's own info, beside its reward and ends."""


@parameter_class
class PettingZooParameters(SingleEnvironmentsParameters):
    """An environment of PettingZoo's kind: agents by name that act at the same time, or in turn.

    A turn-based one (AEC) takes a step for each turn, in which the actions of the other agents are
    ignored. `turn/<agent>` is 1 where it is the agent's turn, for a group with `EnvironmentTurns`.
    Its spaces are Dicts by the agents' names, for an `AgentGroup`. With
    `action_mask="info:KEY"` the masks are in each agent's own info.
    """

    level: str = field(metadata={ADVICE: name_of_class})
    """A module that has a `parallel_env` (`mpe2.simple_spread_v3`) or else an `env`
    (`pettingzoo.classic.tictactoe.tictactoe`), or the `module:Class` of a `pettingzoo.ParallelEnv`
    or `AECEnv`, or a `module:function` annotated to return one."""
    max_episode_steps: int | None = None
    """All agents are truncated after this many steps; None and -1: only by the environment."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one row after the other in this process. subprocess: rows spread over workers."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.action_mask is None or self.action_mask.startswith(INFO),
            "PettingZooParameters.action_mask must be 'info:KEY', a key of each agent's own info, "
            f"got {self.action_mask!r}",
        )

    def code_names(self) -> tuple[str, ...]:
        makers = () if ":" in self.level else (PARALLEL, TURN_BASED)
        named = tuple(f"{self.level}:{maker}" for maker in makers)
        return (*named, *super().code_names())

    def recipe(self) -> Recipe:
        return ParallelRecipe(
            level=self.level,
            kwargs=self.kwargs,
            wrappers=self.wrappers,
            max_episode_steps=None if self.max_episode_steps == -1 else self.max_episode_steps,
            action_mask=self.action_mask,
        )


@dataclass(frozen=True, kw_only=True)
class ParallelRecipe(Recipe):
    """A picklable recipe of one parallel environment."""

    action_mask: str | None = None
    """Source of masks, `info:KEY`; None: they are in the observations, if there are any."""

    def make(self) -> Env:
        pettingzoo = imported("pettingzoo", kind="environment")
        makes = (pettingzoo.ParallelEnv, pettingzoo.AECEnv)
        name = self.level
        if ":" not in name:
            parallel = named_in(name, PARALLEL, kind="environment")
            name = f"{name}:{TURN_BASED if parallel is None else PARALLEL}"
        maker = entry_point(
            name, kind="environment", makes=makes, unannotated=(PARALLEL, TURN_BASED)
        )
        made = guarded(maker, what=f"'{self.level}'", **thawed(self.kwargs))
        parallel = wrapped(made, self.wrappers, makes=makes)
        is_turn_based = isinstance(parallel, pettingzoo.AECEnv)
        if is_turn_based:
            conversions = imported("pettingzoo.utils.conversions", kind="environment")
            parallel = conversions.turn_based_aec_to_parallel(parallel)
        return AgentsAsOne(
            parallel,
            level=self.level,
            max_episode_steps=self.max_episode_steps,
            action_mask=self.action_mask,
            shows_turns=is_turn_based,
        )


class AgentsAsOne(gymnasium.Env[dict[str, Any], dict[str, Any]]):
    """A Gymnasium environment whose action has a part for each agent of a parallel environment.

    Observations and actions are dicts by the agents' names, the reward is the sum of theirs.
    Agents may leave before the others: from then on their part of the observation stays the last
    one, their part of the action is ignored and their reward is 0; an agent that terminates needs
    no last observation, one that is truncated does. The episode ends when all have
    left: truncated if any of the last was truncated, otherwise terminated. Each agent's reward and
    end are in the info under the names of `core.agent_info`, its own info under
    `agents/<name>/info`.

    Args:
        parallel: A `pettingzoo.ParallelEnv`; owned from now on.
        level: Its name, for messages.
        max_episode_steps: All agents are truncated after this many steps; None: never.
        action_mask: Source of masks, `info:KEY`; None: they are in the observations, if there are
            any.
        shows_turns: Whether observations show whose turn it is; it has an `aec_env` then.

    Raises:
        ConfigurationError: It has no `possible_agents`.
    """

    def __init__(
        self,
        parallel: Any,
        *,
        level: str,
        max_episode_steps: int | None = None,
        action_mask: str | None = None,
        shows_turns: bool = False,
    ) -> None:
        names = getattr(parallel, "possible_agents", None)
        if not names or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(
                f"'{level}' must name its agents beforehand with strings, got possible_agents "
                f"{names!r}; without them there is nothing to give to the members of a group"
            )
        self.parallel = parallel
        self.names: list[str] = list(names)
        self.action_space = spaces.Dict({name: parallel.action_space(name) for name in self.names})
        shown = {name: parallel.observation_space(name) for name in self.names}
        self._mask = None if action_mask is None else action_mask.removeprefix(INFO)
        self._choices = {name: choice_sizes(part) for name, part in self.action_space.items()}
        if action_mask is not None:
            shown = {
                name: with_mask_space(part, self._choices[name], action_mask)
                for name, part in shown.items()
            }
        self._shows_turns = shows_turns
        if shows_turns:
            shown[TURN] = spaces.Dict({name: spaces.Discrete(2) for name in self.names})
        self.observation_space = spaces.Dict(shown)
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
            EnvironmentFault: Some agents, or their observations or masks, are missing at the start.
        """
        observations, infos = start_pair(self.parallel.reset(seed=seed, options=options))
        missing = [name for name in self.names if name not in self.parallel.agents]
        if missing:
            raise EnvironmentFault(
                f"the agents {missing} are not there when the episode begins; "
                "agents may leave early, but they cannot come later"
            )
        self._elapsed = 0
        self._terminated = dict.fromkeys(self.names, False)
        self._truncated = dict.fromkeys(self.names, False)
        self._seen = {name: self._shown(name, observations, infos) for name in self.names}
        return self._observation(), self._info(dict.fromkeys(self.names, 0.0), infos)

    def step(
        self, action: dict[str, object]
    ) -> tuple[dict[str, object], float, bool, bool, dict[str, object]]:
        """One step of the agents that are still there.

        Raises:
            EnvironmentFault: An agent appeared later, or left without an end, or a part of the
                answer is missing or no number, flag or dict.
        """
        playing = self._playing()
        given = {name: action[name] for name in self.parallel.agents}
        answer = step_values(self.parallel.step(given))
        observations, rewards, terminations, truncations, infos = answer
        if self._shows_turns:  # players that are out may have had their turns since
            game = self.parallel.aec_env
            mover = self.parallel.aec_env.agent_selection
            if mover in game.agents:
                observations = {**observations, mover: game.observe(mover)}
                infos = {**infos, mover: game.infos.get(mover, {})}
        self._elapsed += 1
        late = self._elapsed >= self._limit
        own = dict.fromkeys(self.names, 0.0)
        for name in playing:
            own[name] = _of_agent(name, rewards, "reward", number)
            terminated = _of_agent(name, terminations, "termination", flag)
            truncated = _of_agent(name, truncations, "truncation", flag)
            self._terminated[name] = terminated
            self._truncated[name] = truncated or (late and not terminated)
            shown = as_dict(observations, "the observations")
            if shown.get(name) is not None or not terminated:  # that of a dead agent is never used
                self._seen[name] = self._shown(name, shown, infos)
        left = self._playing()
        for name in playing:
            if name not in left:  # kept from now on; the environment may reuse its arrays
                self._seen[name] = deepcopy(self._seen[name])
        out = {name for name in terminations if terminations[name] or truncations.get(name)}
        self._check_agents(left, waiting=out if self._shows_turns else set())
        over = not left
        cut = over and any(self._truncated[name] for name in playing)
        info = self._info(own, infos)
        return self._observation(), sum(own.values()), over and not cut, cut, info

    def render(self) -> RenderFrame | list[RenderFrame] | None:
        frame: RenderFrame | list[RenderFrame] | None = self.parallel.render()
        return frame

    def close(self) -> None:
        self.parallel.close()

    def _observation(self) -> dict[str, object]:
        """The observations of all agents, and whose turn it is."""
        if not self._shows_turns:
            return dict(self._seen)
        turn = self.parallel.aec_env.agent_selection
        return {**self._seen, TURN: {name: int(name == turn) for name in self.names}}

    def _shown(
        self,
        name: str,
        observations: object,
        infos: object,
    ) -> object:
        """An agent's observation, with its mask.

        One that allows nothing, as of an agent that waits for its turn, becomes one that allows
        everything: what it does then has no effect.
        """
        seen = _of_agent(name, observations, "observation", lambda part, _: part)
        own = _own_info(name, infos)
        if self._mask is not None:
            given = own.get(self._mask)
            if given is None and not (self._terminated[name] or self._waits(name)):
                raise EnvironmentFault(
                    f"the info of agent '{name}' has no '{self._mask}', which action_mask names; "
                    f"it has {', '.join(map(str, own)) or 'nothing'}"
                )
            if given is None:
                given = np.zeros(sum(self._choices[name]), np.bool_)
            source = f"{INFO}{self._mask}' of agent '{name}"
            seen = with_mask(seen, shown_mask(given, self._choices[name], source))
        if isinstance(seen, dict) and ACTION_MASK in seen and not np.any(seen[ACTION_MASK]):
            seen = {**seen, ACTION_MASK: np.ones_like(seen[ACTION_MASK])}
        return seen

    def _playing(self) -> list[str]:
        """The agents whose own episode continues."""
        return [
            name for name in self.names if not (self._terminated[name] or self._truncated[name])
        ]

    def _waits(self, name: str) -> bool:
        """Return whether it is another agent's turn, or no one's because this one's is cut off."""
        return self._shows_turns and (
            self._truncated[name] or self.parallel.aec_env.agent_selection != name
        )

    def _check_agents(self, left: list[str], *, waiting: set[str]) -> None:
        """Raise `EnvironmentFault` unless the environment has exactly the agents that continue.

        Args:
            left: Those agents.
            waiting: Agents that are out, and may be there until their turn would come.
        """
        if self._elapsed >= self._limit:
            return
        present = set(self.parallel.agents) - waiting
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

    def _info(self, rewards: dict[str, float], infos: object) -> dict[str, object]:
        """The info of each agent, by the names of `core.agent_info`.

        Without `active_agent`, PettingZoo's text of whose turn it is.
        """
        return {
            AGENTS: {
                name: {
                    REWARD: rewards[name],
                    TERMINATED: self._terminated[name],
                    TRUNCATED: self._truncated[name],
                    OWN_INFO: {
                        key: value
                        for key, value in _own_info(name, infos).items()
                        if not (self._shows_turns and key == ACTIVE)
                    },
                }
                for name in self.names
            }
        }


def _of_agent(name: str, values: object, what: str, read: Callable[[Any, str], T]) -> T:
    """An agent's own part of what the environment has returned, as `read` returns it.

    Raises:
        EnvironmentFault: There is none, or `read` refuses it.
    """
    parts = as_dict(values, f"the {what}s")
    if name not in parts:
        others = ", ".join(map(str, parts)) or "no agent"
        raise EnvironmentFault(f"there is no {what} of agent '{name}', but of {others}")
    return read(parts[name], f"the {what} of agent '{name}'")


def _own_info(name: str, infos: object) -> Mapping[Any, Any]:
    """An agent's own info; empty if the environment gives none."""
    return as_dict(as_dict(infos, "the infos").get(name, {}), f"the info of agent '{name}'")
