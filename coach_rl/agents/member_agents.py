"""Several agents as one: their parts of an action, and their joint learning, saving and state."""

from collections.abc import Mapping
from dataclasses import dataclass
from posixpath import commonpath
from typing import ClassVar

from gymnasium import spaces

from coach_rl.agents.flattened_output import DISCRETE, FlatParts
from coach_rl.core.agents import (
    AnyAgent,
    EndingAgent,
    PacedAgent,
    RowState,
    TrainingReport,
    following,
)
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.records import Action, Array
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.spaces import Space, is_float_box
from coach_rl.core.state import State


class ActionPart:
    """Some keys of a Dict action space as the space one agent acts in.

    One key is the agent's space unchanged. Several keys become one space that any agent can
    act in, with the elements of the keys in a row: Boxes of floats a flat Box; Discrete,
    MultiDiscrete and MultiBinary a flat MultiDiscrete. Keys of both kinds stay a Dict, which is
    for agents that can act in one, by their names without a prefix that all share.

    Args:
        keys: Which, in this order; one at least.
        whole: The space they belong to.
    """

    def __init__(self, keys: tuple[str, ...], whole: spaces.Dict) -> None:
        self.keys = keys
        parts: dict[str, Space] = {key: whole[key] for key in keys}
        self.names: dict[str, str] = {}
        """The agent's names of keys that stay a Dict."""
        self.flat: FlatParts | None = None
        """The form of keys that become one array."""
        if len(keys) == 1:
            self.space = parts[keys[0]]
        elif all(isinstance(part, DISCRETE) for part in parts.values()) or all(
            map(is_float_box, parts.values())
        ):
            self.flat = FlatParts(parts, {})
            self.space = self.flat.space
        else:
            prefix = f"{commonpath(keys)}/"
            self.names = {key: key.removeprefix(prefix) for key in keys}
            self.space = spaces.Dict({self.names[key]: part for key, part in parts.items()})

    def split(self, action: Action) -> dict[str, Array]:
        """The agent's actions [R, ...] by key, [R, ...] each."""
        if isinstance(action, dict):
            return {key: action[name] for key, name in self.names.items()}
        return {self.keys[0]: action} if self.flat is None else self.flat.split(action)


@dataclass(kw_only=True)
class MemberRows(Saved):
    """The state that agents keep together per row of one stack."""

    SAVED: ClassVar[SavedNames] = ("members",)

    members: dict[str, RowState]
    """Each member's own row state."""

    def decisions(self) -> State:
        return {name: following(rows, name).decisions() for name, rows in self.members.items()}

    def follow(self, decisions: State) -> None:
        for name, rows in self.members.items():
            following(rows, name).follow(decisions[name])


class MemberAgents(Saved):
    """The shared half of an agent made of others; `AgentGroup` and `SkillAgents` choose who acts.

    Args:
        members: The agents by name.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("members", inline=True),)

    def __init__(self, members: Mapping[str, AnyAgent]) -> None:
        self.members = dict(members)
        for name, agent in self.members.items():
            if isinstance(agent, EndingAgent):
                raise ConfigurationError(
                    f"member '{name}' ends its own options ({type(agent).__name__}.ends), which "
                    "is for an agent that has its level alone; choose another agent"
                )

    @property
    def is_on_policy(self) -> bool:
        """True if any member is."""
        agents = self.members.values()
        return any(isinstance(agent, PacedAgent) and agent.is_on_policy for agent in agents)

    def parts(self) -> dict[str, AnyAgent]:
        return self.members

    def decisions_until_training(self) -> int:
        return min(
            agent.decisions_until_training() if isinstance(agent, PacedAgent) else 1
            for agent in self.members.values()
        )

    def train(self, clock: Clock) -> TrainingReport | None:
        reports = {name: agent.train(clock) for name, agent in self.members.items()}
        learned = {name: report for name, report in reports.items() if report is not None}
        if not learned:
            return None
        return TrainingReport(
            training_steps=sum(report.training_steps for report in learned.values()),
            metrics={},
            members={name: report.metrics for name, report in learned.items()},
        )

    def policy_state_dict(self) -> State:
        return {name: agent.policy_state_dict() for name, agent in self.members.items()}

    def load_policy(self, state: State) -> None:
        for name, agent in self.members.items():
            if name not in state:
                raise SpaceError(
                    f"the saved policy has no member '{name}'; it has {', '.join(sorted(state))}"
                )
            agent.load_policy(state[name])
