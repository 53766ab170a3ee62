"""Probabilities of actions that are drawn by softmax, for data sets that record them."""

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.records import FloatArray
from coach_rl.extensions.choices.softmax import SoftmaxPolicy
from coach_rl.extensions.data.action_probabilities import (
    ActionDistribution,
    always,
    choices_of,
    exploring,
)


@exploring.register
def _(
    exploration: SoftmaxPolicy, agent: OffPolicyAgent, outputs: FloatArray, clock: Clock
) -> ActionDistribution | None:
    """Proportional to exp(output / temperature); of logits without a temperature."""
    temperature = exploration.metrics(clock).get("exploration/temperature", 1.0)
    if temperature == 0:
        return always(agent.action_space, exploration.greedy(outputs))
    best = outputs.max(axis=1, keepdims=True)
    with np.errstate(over="ignore"):
        return choices_of(agent.action_space, (outputs - best).astype(np.float64) / temperature)
