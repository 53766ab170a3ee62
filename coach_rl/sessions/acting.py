"""Acting without an environment: observations come from outside, and the actions go there.

    environment = OutsideParameters(level="CartPole-v1", spaces=spaces)     # instead of a real one
    actor = Actor(graph_manager, num_envs=1, seed=0)
    action = actor.act({"observation": observation}, greedy=True)           # [1]

The levels are those of an evaluation, without parts that act in training alone.
"""

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Action, BoolArray, Directive, EnvResponse, IntArray, Observation
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.parameters import LevelParameters


@runtime_checkable
class EndsOfItsOwn(Protocol):
    """Parameters of an agent of agents, whose own episodes may be over before the level's."""

    @property
    def own_ends(self) -> Mapping[str, tuple[str, ...]]:
        """Names of the infos that mark the end of each agent's own episode, by its name."""
        ...

    @property
    def needs_ends(self) -> bool:
        """True if who acts depends on whose own episode is over."""
        ...

    @property
    def info_keys(self) -> tuple[str, ...]:
        """The names of all infos that it reads."""
        ...


@parameter_class
class OutsideParameters:
    """An environment that is somewhere else; known of it are its spaces."""

    level: str
    """The task's name."""
    spaces: EnvironmentSpaces
    """The spaces that it shows and takes."""

    def build(self, *, num_envs: int) -> "OutsideEnvironment":
        """Stand-ins for that many environments."""
        return OutsideEnvironment(self.spaces, num_envs=num_envs)


class OutsideEnvironment(Saved):
    """The lowest environment of a stack: keeps actions, and returns the observations it is given.

    Args:
        spaces: What it shows and takes.
        num_envs: N.
    """

    def __init__(self, spaces: EnvironmentSpaces, *, num_envs: int) -> None:
        self.spaces = spaces
        self.num_envs = num_envs
        self.first: Observation = {}
        """The observation of an episode's start that `reset` shows, [N, ...] each."""
        self.action: Action = np.empty(0)
        """The actions that were sent last, [N, ...]."""

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:  # noqa: ARG002 - outside
        """Show what is in `first`."""
        return EnvResponse.reset(self.first, num_envs=self.num_envs)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:  # noqa: ARG002 - all
        """Keep the actions for the caller of `Actor.act`."""
        self.action = directive.action if isinstance(directive, Directive) else directive

    def recv(self) -> EnvResponse:
        """An empty answer: the results of actions arrive through `Actor.act`."""
        return EnvResponse.reset(self.first, num_envs=self.num_envs).empty_like()

    def close(self) -> None:
        """Nothing is open."""


class Actor:
    """The agents of a graph acting in N environments outside, without learning.

    Args:
        graph: Whose agents; its environment is an `OutsideParameters`.
        num_envs: N.
        seed: Seed of what is drawn where actions are sampled.
    """

    def __init__(self, graph: Graph, *, num_envs: int, seed: int) -> None:
        agents = graph.agents
        built = graph.evaluation.levels
        levels = [  # their goals as they are built, and have learned
            replace(
                level,
                goal_space=_without_function(own.params.goal_space),
                horizon_of=own.params.horizon_of,
                parts=tuple(part for part in level.parts if part.acts_in_evaluations),
            )
            for level, own in zip(graph.levels, built, strict=True)
        ]
        self._clock = graph.clock.for_evaluation()
        self._environment = OutsideEnvironment(
            graph.evaluation.simulators.spaces, num_envs=num_envs
        )
        self._stack = graph.arrangement.build_stack(
            tuple(levels),
            self._environment,
            agent=lambda index, _spaces: agents[graph.levels[index].name],
            clock=self._clock,
            seed=seed,
            purpose="acting",
        )
        described = [each.agent for each in graph.levels if isinstance(each.agent, EndsOfItsOwn)]
        keys = (key for each in described for key in each.info_keys)
        self._info = {key: np.zeros(num_envs, np.bool_) for key in keys}
        """[N] each: all that is known of infos is whose own episode is over."""
        self._has_begun = False

    @property
    def num_envs(self) -> int:
        """N."""
        return self._environment.num_envs

    def act(
        self, observation: Observation, *, begins: BoolArray, greedy: bool, over: Observation
    ) -> Action:
        """Choose actions [N, ...].

        Args:
            observation: What the environments show, [N, ...] each.
            begins: Where an episode begins with it, [N]; everywhere at the first call.
            greedy: Whether to leave out exploration.
            over: Where the own episodes of agents are over, bool by the name of the info that marks
                it; they stay over until their row begins again.
        """
        environment = self._environment
        self._clock.samples = not greedy
        for key, ended in self._info.items():
            ended[begins] = False
            ended |= over.get(key, False)
        if self._has_begun:
            answer = EnvResponse.step(
                np.arange(self.num_envs),
                observation=observation,
                first_observation=observation,
                reward=np.zeros(self.num_envs),
                terminated=np.zeros(self.num_envs, np.bool_),
                truncated=begins,
                info=self._info,
            )
            self._stack.pass_up(answer)
        else:
            environment.first = observation
            self._has_begun = True
            self._stack.levels[0].reset()
        self._stack.decide()
        return environment.action


def own_ends_of(levels: Sequence[LevelParameters]) -> dict[str, tuple[str, ...]]:
    """Names of the infos that mark the end of each agent's own episode, by its name."""
    found: dict[str, tuple[str, ...]] = {}
    for level in levels:
        own = level.agent.own_ends if isinstance(level.agent, EndsOfItsOwn) else {}
        for name, keys in own.items():
            found[name] = (*found.get(name, ()), *keys)
    return found


def needs_ends(level: LevelParameters) -> bool:
    """True if who acts on a level depends on whose own episode is over."""
    return isinstance(level.agent, EndsOfItsOwn) and level.agent.needs_ends


def _without_function(space: LevelSpace | None) -> LevelSpace | None:
    """The same goals without a reward function: it may read rewards and infos, and none arrive."""
    if not isinstance(space, GoalSpace) or not callable(space.reward):
        return space
    space = copy(space)
    object.__setattr__(space, "reward", "sparse")  # some are built otherwise than by their fields
    return space
