"""Behaviour cloning: a policy that learns to act as the data do (Pomerleau 1991)."""

from collections.abc import Mapping
from dataclasses import field
from functools import partial
from typing import Literal

import torch
from torch import Tensor

from coach_rl.agents.learner import ActingPolicy, AnyActingPolicy
from coach_rl.agents.off_policy_agent import OffPolicyAgent, OffPolicyAgentParameters
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.extensions.imitation.policy_network import (
    Policy,
    PolicyAgent,
    PolicyParameters,
    SampledActions,
    acting_forward,
)
from coach_rl.functional.gaussians import DiagonalGaussian
from coach_rl.memories.transition_batch import TransitionBatch


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


@parameter_class
class BCAgentParameters(OffPolicyAgentParameters):
    """An agent that clones behaviour."""

    AGENT = PolicyAgent

    loss: Literal["likelihood", "squared"] = "likelihood"
    """likelihood: minus the log-probability of the data's actions. squared: the mean square of the
    distance between the policy's mean and them, for actions in a Box alone."""
    policy: PolicyParameters = field(default_factory=PolicyParameters)
    """The policy's network."""
    optimizer: OptimizerParameters = field(default_factory=_adam)
    """The optimiser."""
    scale_actions: bool = True
    """The policy acts in [-1, 1], which is mapped to the bounds of a Box of actions; False: it acts
    in the Box's own units."""
    arguments: Mapping[str, tuple[str, int]] = FrozenMapping[str]()
    """Parameterised actions, see `PPOAgentParameters`."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError when there is no policy for the action space."""
        return self.AGENT(self, context, discount=1.0, make_learner=partial(CloningLearner, self))


class CloningLearner:
    """A policy that makes the data's actions likely.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
    """

    def __init__(self, params: BCAgentParameters, agent: OffPolicyAgent) -> None:
        policy = Policy(params.policy, *agent.network_arguments)
        policy.output_rules = agent.output_rules
        self.distribution = policy.distribution
        self._is_squared = params.loss == "squared"
        if self._is_squared and not isinstance(self.distribution, DiagonalGaussian):
            raise SpaceError(
                f"agent '{params.name}' clones by the squared distance of actions in a Box, and "
                f"acts in {agent.action_space}; use loss='likelihood'"
            )
        first = first_action(agent.action_space)
        self._first_action = torch.from_numpy(first).to(agent.device) if first.any() else None
        self.network = NetworkWrapper(policy, device=agent.device)
        self.networks = {"policy": self.network}
        self.learning_rates = {"learning_rate": params.optimizer.learning_rate}
        objective = Objective(network=self.network, loss=self.loss, optimizer=params.optimizer)
        self.engine = agent.new_engine((objective,))
        self.acting: AnyActingPolicy = ActingPolicy(
            acting_forward(policy, agent.device), SampledActions(agent.action_space)
        )

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Minus the log-probability of the data's actions, or the squared distance to them."""
        parameters = self.network.call(flat, batch.observation)
        action = self.counted(self.shown(batch))
        if self._is_squared:
            distance = parameters[:, : action.shape[1]] - action
            loss = batch.mean((distance**2).mean(dim=-1))
            return loss, {"cloning_loss": loss}
        log_prob = self.distribution.log_prob(parameters, action)
        loss = -(batch.weight * log_prob).mean()  # the weights of sequences are 0 in padding
        entropy = batch.mean(self.distribution.entropy(parameters))
        return loss, {"cloning_loss": loss, "entropy": entropy}

    def shown(self, batch: TransitionBatch) -> Tensor:
        """The actions [B, ...] to clone: those of the transitions."""
        return batch.action

    def counted(self, action: Tensor) -> Tensor:
        """Actions [B, ...] as the distribution counts them: discrete ones from 0."""
        return action if self._first_action is None else action - self._first_action
