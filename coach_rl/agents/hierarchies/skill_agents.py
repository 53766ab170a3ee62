"""An agent for each option of a level: K skills with networks of their own.

LevelParameters(
    name="low",
    agent=SkillAgentsParameters.of(SACAgentParameters(name="skill"), count=4),
    goal_space=OptionSpace(count=4, rewards=(north, east, south, west)),
    horizon=10,
)

To its level it is an agent like any other. To its members it is a level without options: each sees,
does and learns only what happens while its own option is carried out.
"""

from dataclasses import dataclass, replace
from typing import Any, Self, cast

import numpy as np
from gymnasium import spaces

from coach_rl.agents.member_agents import MemberAgents, MemberRows
from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import description_of
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces


@parameter_class
class SkillAgentsParameters:
    """K agents, each of which learns one option."""

    agents: NonEmpty[tuple[AgentParameters, ...]]
    """The agents in the order of the options; their names are those of the skills in the log."""
    name: str = "skills"
    """The name of all of them where they are spoken of as one agent."""

    def __post_init__(self) -> None:
        names = [agent.name for agent in self.agents]
        require(
            len(set(names)) == len(names),
            f"the agents of '{self.name}' need different names, got {names}",
        )

    @classmethod
    def of(cls, agent: AgentParameters, *, count: int) -> Self:
        """K agents that differ in nothing but their names, `<name>_0` and so on."""
        described = cast(Any, agent)
        return cls(
            agents=tuple(replace(described, name=f"{agent.name}_{k}") for k in range(count)),
            name=f"{agent.name}s",
        )

    def build(self, context: AgentContext) -> "SkillAgents":
        """The agents; ConfigurationError unless their level has as many options."""
        level, count = context.place.level, len(self.agents)
        space = None if level is None else level.goal_space
        if not isinstance(space, OptionSpace) or space.count != count:
            raise ConfigurationError(
                f"agent '{self.name}' has {count} agents, one for each option, and needs a level "
                f"with goal_space=OptionSpace(count={count}), got {space}"
            )
        observed = dict(context.spaces.observation.spaces)
        del observed[OPTION_KEY]
        own = EnvironmentSpaces(observation=spaces.Dict(observed), action=context.spaces.action)
        members: dict[str, AnyAgent] = {}
        for agent in self.agents:
            members[agent.name] = agent.build(
                replace(
                    context,
                    spaces=own,
                    runtime=context.runtime.for_part("member", agent.name, signals=agent.name),
                    planned_steps=context.planned_steps // count,
                )
            )
        return SkillAgents(members)


@dataclass(kw_only=True)
class SkillRows(MemberRows):
    """The state that the agents of skills keep per row of one stack."""

    SAVED = ("latest",)

    latest: IntArray
    """[N] the option that the row carried out last; -1 where it has not begun."""


class SkillAgents(MemberAgents):
    """K agents as one; an `Agent`. Each row's decisions belong to the agent of its option.

    To an agent a row begins a new episode where another skill has acted there since.
    """

    def new_rows(self, num_envs: int, seed: int) -> SkillRows:
        return SkillRows(
            members={
                name: agent.new_rows(num_envs, integer_seed(seed, "member", name))
                for name, agent in self.members.items()
            },
            latest=np.full(num_envs, -1, np.int64),
        )

    def act(self, row_state: SkillRows, request: ActionRequest, clock: Clock) -> Action:
        option = request.observation[OPTION_KEY].argmax(axis=1)
        is_new = row_state.latest[request.rows] != option
        row_state.latest[request.rows] = option
        own = replace(
            request,
            observation=_without_option(request.observation),
            episode_start=request.episode_start | is_new,
        )
        chosen: dict[str, Array] = {}
        for number, (name, agent) in enumerate(self.members.items()):
            here = option == number
            if here.any():
                action = agent.act(row_state.members[name], own.rows_of(here), clock)
                _put(chosen, action if isinstance(action, dict) else {"": action}, here)
        return chosen.pop("") if "" in chosen else chosen

    def observe(self, row_state: SkillRows, outcome: Outcome, clock: Clock) -> None:
        option = outcome.observation[OPTION_KEY].argmax(axis=1)
        own = replace(outcome, observation=_without_option(outcome.observation))
        for number, (name, agent) in enumerate(self.members.items()):
            here = option == number
            if here.any():
                agent.observe(row_state.members[name], own.rows_of(here), clock)

    def cut_off(self, row_state: SkillRows, rows: IntArray, clock: Clock) -> None:
        for number, (name, agent) in enumerate(self.members.items()):
            here = rows[row_state.latest[rows] == number]
            if len(here):
                agent.cut_off(row_state.members[name], here, clock)

    def restart_rows(self, row_state: SkillRows) -> None:
        for name, agent in self.members.items():
            agent.restart_rows(row_state.members[name])
        row_state.latest[:] = -1

    def description(self) -> str:
        """The agents one after the other, for people."""
        lines = []
        for number, (name, agent) in enumerate(self.members.items()):
            own = description_of(agent).splitlines()
            lines += [f"option {number}: {name}", *(f"  {line}" for line in own)]
        return "\n".join(lines)


def _without_option(observation: Observation) -> Observation:
    return {key: values for key, values in observation.items() if key != OPTION_KEY}


def _put(chosen: dict[str, Array], action: dict[str, Array], here: BoolArray) -> None:
    """Put the actions of some rows, [R, ...] by part, into those of all rows of the request."""
    for part, values in action.items():
        if part not in chosen:
            chosen[part] = np.zeros((len(here), *values.shape[1:]), values.dtype)
        chosen[part][here] = values
