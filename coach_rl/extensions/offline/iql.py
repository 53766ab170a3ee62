"""Implicit Q-learning (Kostrikov et al. 2022, arXiv:2110.06169): values of the data's best actions.

No action outside the data is ever valued: an expectile of the critics' values over the data's
actions stands for their maximum, and the policy clones actions by their advantage.
"""

from dataclasses import field
from functools import partial
from typing import Annotated

import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.learner import ActingPolicy, AnyActingPolicy
from coach_rl.agents.off_policy_agent import (
    ClippedTargetParameters,
    OffPolicyAgent,
    OffPolicyAgentParameters,
)
from coach_rl.architectures.continuous_control import CriticParameters, Critics
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
from coach_rl.architectures.torso import AnyTorsoParameters, last_layer, relu_torso
from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.extensions.imitation.policy_network import (
    Policy,
    PolicyAgent,
    PolicyParameters,
    SampledActions,
)
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.transition_batch import TransitionBatch

_ACTION = "/action"


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


@parameter_class
class IQLAlgorithmParameters(ClippedTargetParameters):
    """IQL's settings. Defaults: the paper's for locomotion."""

    expectile: Annotated[float, Interval(gt=0, lt=1)] = 0.7
    """Tau: the nearer to 1, the nearer values are to those of the best action in the data."""
    temperature: NonNegative[float] = 3.0
    """Beta, the inverse temperature: how strongly advantages weigh cloned actions."""
    largest_weight: Positive[float] = 100.0
    """Weights of cloned actions are at most this."""
    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """Update rule of the critics' targets."""


@parameter_class
class IQLAgentParameters(OffPolicyAgentParameters):
    """An IQL agent."""

    AGENT = PolicyAgent

    algorithm: IQLAlgorithmParameters = field(default_factory=IQLAlgorithmParameters)
    """Settings of the algorithm."""
    policy: PolicyParameters = field(default_factory=PolicyParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """The network of each of the two critics of actions."""
    value: AnyTorsoParameters = field(default_factory=lambda: relu_torso(256, 256))
    """The torso of the value function."""
    policy_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the policy; the paper lets its learning rate fall with the cosine."""
    critic_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the critics."""
    value_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the value function."""
    scale_actions: bool = True
    """The policy acts in [-1, 1], which is mapped to the bounds of a Box of actions; False: it acts
    in the Box's own units."""

    @property
    def arguments(self) -> dict[str, tuple[str, int]]:
        """Arguments of parameterised actions: none."""
        return {}

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(IQLLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class ValueFunction(nn.Module):
    """Values [B] of observations."""

    def __init__(
        self,
        torso: AnyTorsoParameters,
        observation_space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.torso = torso.build(observation_space, rng, normaliser)
        make = partial(linear, rng=rng, gain=1.0, orthogonal=False)
        self.head = last_layer(self.torso, 1, make)

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        values: Tensor = self.head(self.torso(observation))
        return values.squeeze(-1)


class IQLLearner:
    """A value function, two critics, and a policy that clones the better actions of the data.

    A step moves the value function, then the policy, then the critics and their targets, as the
    authors' code does.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.

    Raises:
        ConfigurationError: One of its networks is recurrent.
    """

    def __init__(self, params: IQLAgentParameters, agent: OffPolicyAgent) -> None:
        self._algorithm = params.algorithm
        observation_space, action_space, rng, normaliser = agent.network_arguments
        device = agent.device
        policy = Policy(params.policy, observation_space, action_space, rng, normaliser)
        critics = Critics(
            params.critic, observation_space, action_space, rng, normaliser, members=2
        )
        value = ValueFunction(params.value, observation_space, rng, normaliser)
        require_memoryless(
            (policy, critics, value), f"agent '{agent.name}' ({type(params).__name__})"
        )
        self.distribution = policy.distribution
        self.policy = NetworkWrapper(policy, device=device)
        self.critics = NetworkWrapper(critics, device=device, with_target=True)
        self.value = NetworkWrapper(value, device=device)
        self.clip_targets = params.algorithm.clip_targets or params.critic.bounds
        objectives = (
            Objective(
                name="value",
                network=self.value,
                loss=self.value_loss,
                optimizer=params.value_optimizer,
            ),
            Objective(
                name="policy",
                network=self.policy,
                loss=self.policy_loss,
                optimizer=params.policy_optimizer,
            ),
            Objective(
                name="critic",
                network=self.critics,
                loss=self.critic_loss,
                optimizer=params.critic_optimizer,
            ),
        )
        self.networks = {"policy": self.policy, "critics": self.critics, "value": self.value}
        self.learning_rates = {
            each.named("learning_rate"): each.optimizer.learning_rate for each in objectives
        }
        targets = ((self.critics, params.algorithm.target_sync),)
        self.engine = agent.new_engine(objectives, targets=targets)
        self.acting: AnyActingPolicy = ActingPolicy(
            torch_forward(policy, device), SampledActions(action_space)
        )

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def value_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Expectile regression on the lower target critic's value, equation 5."""
        with torch.no_grad():
            wanted = self._lower(batch)
        error = wanted - self.value.call(flat, batch.observation)
        tau = self._algorithm.expectile
        weight = torch.where(error < 0, 1 - tau, tau)
        loss = batch.mean(batch.weight * weight * error**2)
        return loss, {"value_loss": loss, "value": batch.mean(wanted - error)}

    def policy_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Minus the log-probability of the data's actions, weighted by advantage, equation 7."""
        with torch.no_grad():
            advantage = self._lower(batch) - self.value.call(self.value.online, batch.observation)
            largest = self._algorithm.largest_weight
            weight = (self._algorithm.temperature * advantage).exp().clamp(max=largest)
        parameters = self.policy.call(flat, batch.observation)
        log_prob = self.distribution.log_prob(parameters, batch.action)
        loss = -batch.mean(batch.weight * weight * log_prob)
        entropy = batch.mean(self.distribution.entropy(parameters))
        return loss, {
            "policy_loss": loss,
            "advantage": batch.mean(advantage),
            "entropy": entropy,
        }

    def critic_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Both critics towards r + gamma V(s'), equation 6."""
        with torch.no_grad():
            next_value = self.value.call(self.value.online, batch.next_observation)
            target = td_target(batch.reward, batch.discount, next_value, self.clip_targets)
        values = self.critics.call(flat, batch.observation, batch.action)  # [2, B]
        return critic_loss(values, target, batch.weight, self._algorithm.huber, batch.summary)

    def values(self, observation: Observation, action: Array) -> FloatArray:
        """The lower critic's values [R] of actions [R, A] in filtered observations."""

        def lower(seen: dict[str, Tensor]) -> Tensor:
            given = seen.pop(_ACTION)
            values: Tensor = self.critics.call(self.critics.online, seen, given)
            return values.amin(dim=0)

        forward = torch_forward(lower, self.critics.online.device)
        return forward({**observation, _ACTION: action})

    def _lower(self, batch: TransitionBatch) -> Tensor:
        """The lower target critic's values [B] of the data's actions."""
        values: Tensor = self.critics.call(self.critics.target, batch.observation, batch.action)
        return values.amin(dim=0)
