"""Decisions of skills and of options that end themselves, as torch modules."""

import torch
from torch import Tensor

from coach_rl.core.options import OPTION_KEY
from coach_rl.extensions.exporting.decisions import (
    Decision,
    NetworkDecision,
    Place,
    Request,
    decision_of,
    refused,
)
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.members.exported import TurnDecision
from coach_rl.extensions.skills.option_critic_agent import OptionCriticAgent
from coach_rl.extensions.skills.skill_agents import SkillAgents


class SkillDecision(TurnDecision):
    """Agents of skills, of which the option chooses one."""

    def turn(self, request: Request) -> tuple[Tensor, Tensors]:
        """The options, int64 [R]; nothing is remembered."""
        return request.seen[OPTION_KEY].argmax(dim=1), {}


@decision_of.register
def _skill_decision(group: SkillAgents, place: Place) -> Decision:
    return SkillDecision(group, place)


class EndingDecision(NetworkDecision):
    """An agent that ends its options by chances that a network computes.

    Args:
        agent: Whose.
        place: Where it decides.
    """

    ends_by_chance = True

    def __init__(self, agent: OptionCriticAgent, place: Place) -> None:
        super().__init__(agent, place)
        self._ending_agent = agent

    def chance_to_end(self, seen: Tensors, /) -> Tensor:
        """Chances [R] that the option ends in what is observed after a decision."""
        agent = self._ending_agent
        if self.observer.state:
            raise refused(agent, "a filter of its InputFilter remembers observations (a stack?)")
        filtered, _, _ = self.observer(seen, {}, torch.zeros(0))
        chance: Tensor = torch.sigmoid(agent.termination.module(filtered))
        return chance


@decision_of.register
def _ending_decision(agent: OptionCriticAgent, place: Place) -> Decision:
    return EndingDecision(agent, place)
