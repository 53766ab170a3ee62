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

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Self, cast

from gymnasium import spaces

from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.parts import description_of
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import ActionRequest, IntArray
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.members.member_agents import MemberRows, OneOfMembers
from coach_rl.extensions.members.members import BoundMember


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
        level = context.place.level
        count = len(self.agents)
        space = None if level is None else level.goal_space
        if not isinstance(space, OptionSpace) or space.count != count:
            raise ConfigurationError(
                f"agent '{self.name}' has {count} agents, one for each option, and needs a level "
                f"with goal_space=OptionSpace(count={count}), got {space}"
            )
        observed = dict(context.spaces.observation.spaces)
        if OPTION_KEY not in observed:
            raise ConfigurationError(
                f"agent '{self.name}' has an agent for each option, and '{OPTION_KEY}' is not "
                f"among its observations {sorted(observed)}; let it observe that, and act for all "
                "options"
            )
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
        return SkillAgents(members, observed)


class SkillRows(MemberRows):
    """The state that the agents of skills keep per row of one stack."""

    SAVED = ("latest",)


class SkillAgents(OneOfMembers):
    """K agents as one; an `Agent`. Each row's decisions belong to the agent of its option.

    Args:
        agents: By name, in the order of the options.
        observed: The observation keys that they see, without that of the option.
    """

    ROWS = SkillRows

    def __init__(self, agents: Mapping[str, AnyAgent], observed: Iterable[str]) -> None:
        seen = {key: key for key in observed}
        super().__init__(
            agents,
            tuple(BoundMember(name=name, agent_name=name, observations=seen) for name in agents),
        )

    def turns(self, row_state: SkillRows, request: ActionRequest, clock: Clock) -> IntArray:
        option: IntArray = request.observation[OPTION_KEY].argmax(axis=1)
        return option

    def description(self) -> str:
        lines = []
        for number, (name, agent) in enumerate(self.members.items()):
            own = description_of(agent).splitlines()
            lines += [f"option {number}: {name}", *(f"  {line}" for line in own)]
        return "\n".join(lines)
