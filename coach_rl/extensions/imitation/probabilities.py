"""Probabilities of cloned policies, for data sets that record them."""

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.records import FloatArray
from coach_rl.extensions.data.action_probabilities import (
    ActionDistribution,
    drawn_from,
    exploring,
)
from coach_rl.extensions.imitation.policy_network import SampledActions


@exploring.register
def _(
    exploration: SampledActions,  # noqa: ARG001 - its class chose the function
    agent: OffPolicyAgent,
    outputs: FloatArray,
    clock: Clock,  # noqa: ARG001
) -> ActionDistribution | None:
    return drawn_from(agent, outputs)
