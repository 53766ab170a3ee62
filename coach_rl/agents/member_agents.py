"""Several agents as one, whoever of them acts where: what they learn, keep and know together."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

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
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.state import State


@dataclass(kw_only=True)
class MemberRows(Saved):
    """The state that agents keep together per row of one stack."""

    SAVED: ClassVar[SavedNames] = ("members",)

    members: dict[str, RowState]
    """Each member's own row state."""

    def decisions(self) -> State:
        """Each member's; ConfigurationError where one cannot be followed."""
        return {name: following(rows, name).decisions() for name, rows in self.members.items()}

    def follow(self, decisions: State) -> None:
        """Let each member follow its part."""
        for name, rows in self.members.items():
            following(rows, name).follow(decisions[name])


class MemberAgents(Saved):
    """The shared half of an agent made of others; `AgentGroup` and `SkillAgents` say who acts.

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
        """The members."""
        return self.members

    def decisions_until_training(self) -> int:
        """Decisions until the first member trains."""
        return min(
            agent.decisions_until_training() if isinstance(agent, PacedAgent) else 1
            for agent in self.members.values()
        )

    def train(self, clock: Clock) -> TrainingReport | None:
        """Let every member learn that is due; the report names them."""
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
        """Return what every member knows, by its name; see `core.agents`."""
        return {name: agent.policy_state_dict() for name, agent in self.members.items()}

    def load_policy(self, state: State) -> None:
        """Let every member start from what the member of its name knew; see `core.agents`."""
        for name, agent in self.members.items():
            if name not in state:
                raise SpaceError(
                    f"what was saved has no member '{name}'; it has {', '.join(sorted(state))}"
                )
            agent.load_policy(state[name])
