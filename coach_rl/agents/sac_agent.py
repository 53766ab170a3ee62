"""Soft actor-critic with a learned temperature (Haarnoja et al. 2018, arXiv:1812.05905).

docs/algorithms/td3.md lists every detail and its source.
"""

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn

from coach_rl.agents.actor_critic_learner import ActorCriticAgentParameters, ActorCriticLearner
from coach_rl.agents.learner import ActingPolicy, Learner
from coach_rl.agents.off_policy_agent import OffPolicyAgent, ValueLearningParameters
from coach_rl.architectures.continuous_control import (
    Actor,
    CriticEnsemble,
    Critics,
    SquashedGaussianActor,
)
from coach_rl.architectures.gradient_step import AdamParameters, Batch, Numbers, Objective
from coach_rl.architectures.layers import ScaleToBox
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
from coach_rl.architectures.output_rules import Forward
from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive, UnitInterval
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.seeding import integer_seed
from coach_rl.core.variants import variant_for
from coach_rl.exploration_policies.box_noise import SquashedGaussianPolicy
from coach_rl.functional.gaussians import squashed_sample
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class SACAlgorithmParameters(ValueLearningParameters):
    """SAC's settings. Defaults: the paper's, table 1."""

    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """Update rule of the critics' targets."""
    initial_temperature: Positive[float] = 1.0
    """Alpha, the initial temperature: the weight of the entropy in the objective."""
    learn_temperature: bool = True
    """Adapt alpha so that the policy keeps the target entropy (section 5); else it stays."""
    target_entropy: float | None = None
    """Target entropy in nats. None: minus the number of action elements, which count in [-1, 1]; in
    discrete spaces the share of the highest entropy that `target_entropy_scale` sets."""
    target_entropy_scale: UnitInterval = 0.98
    """Share of the entropy of even choices among the allowed actions, log n for n of them, that is
    the target in discrete spaces (Christodoulou 2019, arXiv:1910.07207); small tasks want less."""


def _slow_adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


@parameter_class
class SACAgentParameters(ActorCriticAgentParameters):
    """A SAC agent."""

    algorithm: SACAlgorithmParameters = field(default_factory=SACAlgorithmParameters)
    """Settings of the algorithm."""
    actor_optimizer: OptimizerParameters = field(default_factory=_slow_adam)
    """Optimiser of the actor."""
    critic_optimizer: OptimizerParameters = field(default_factory=_slow_adam)
    """Optimiser of the critics."""
    temperature_optimizer: OptimizerParameters = field(default_factory=_slow_adam)
    """Optimiser of the temperature."""
    greedy_candidates: NonNegative[int] = 0
    """0: without exploration it takes the policy's mean, as in the paper. K: it takes what the
    lower critic values most of that mean, K draws from the policy and K from the whole box, the
    same draws in every state. The mean of a policy that hesitates between two good actions may
    be a bad one; choosing by the critic is from BCQ (Fujimoto et al. 2019, arXiv:1812.02900)."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless its space is a flat, bounded Box, or flat and discrete."""
        make_learner = partial(sac_learner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class Temperature(nn.Module):
    """Alpha, kept as its logarithm."""

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor([math.log(initial)]))

    def forward(self) -> Tensor:
        """Log alpha, [1]."""
        return self.log_alpha


class SoftLearner(ActorCriticLearner[Batch]):
    """A policy that is rewarded for its entropy, critics, and the temperature that weighs it.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
        actor: The policy's network.
        critics: The critics' network.
        more: Objectives stepped after those of critics, actor and temperature.
    """

    def __init__(
        self,
        params: SACAgentParameters,
        agent: OffPolicyAgent,
        *,
        actor: Actor,
        critics: CriticEnsemble,
        more: Sequence[Objective[Batch]] = (),
    ) -> None:
        algorithm = self._algorithm = params.algorithm
        self.temperature = NetworkWrapper(
            Temperature(algorithm.initial_temperature), device=agent.device
        )
        temperature = Objective(
            name="temperature",
            network=self.temperature,
            loss=self.temperature_loss,
            optimizer=params.temperature_optimizer,
        )
        super().__init__(
            params,
            agent,
            actor=actor,
            critics=critics,
            sync=algorithm.target_sync,
            actor_follows=False,
            more=(*((temperature,) if algorithm.learn_temperature else ()), *more),
        )
        self.networks["temperature"] = self.temperature

    @abstractmethod
    def temperature_loss(
        self, flat: Tensor, batch: Batch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """The loss of the temperature with parameters `flat`, and its metrics."""


class SACBatch(NamedTuple):
    """The columns a step of SAC learns from."""

    transitions: TransitionBatch
    noise: Tensor
    """Standard normal numbers for actions in the observations, [B, A]."""
    next_noise: Tensor
    """Standard normal numbers for actions in the next observations, [B, A]."""


class SACLearner(SoftLearner[SACBatch]):
    """A squashed Gaussian policy that is rewarded for its entropy, and two critics.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
        more: Objectives stepped after those of critics, actor and temperature.
    """

    def __init__(
        self,
        params: SACAgentParameters,
        agent: OffPolicyAgent,
        more: Sequence[Objective[SACBatch]] = (),
    ) -> None:
        self._noise = agent.noise
        actor = SquashedGaussianActor(params.actor, *agent.network_arguments)
        critics = Critics(params.critic, *agent.network_arguments, members=2)
        self.to_box = critics.to_box
        super().__init__(params, agent, actor=actor, critics=critics, more=more)
        size = len(self.to_box.low)
        entropy = params.algorithm.target_entropy
        self.target_entropy = -float(size) if entropy is None else entropy
        bounds = params.actor.log_std_bounds
        sampling = SquashedGaussianPolicy(agent.action_space, bounds)
        self.acting: ActingPolicy[RowNoise] = ActingPolicy(self.policy, sampling)
        if params.greedy_candidates:
            rng = torch.Generator().manual_seed(
                integer_seed(agent.runtime.seed, params.name, "greedy candidates")
            )
            shape = (params.greedy_candidates, size)
            self.acting = CandidatePolicy(
                self.policy,
                sampling,
                critics=self.critics,
                to_box=self.to_box,
                log_std_bounds=bounds,
                normal=torch.randn(shape, generator=rng).to(agent.device),
                uniform=(2 * torch.rand(shape, generator=rng) - 1).to(agent.device),
            )

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        shape = batch.action.shape
        noise, next_noise = self._noise(*shape), self._noise(*shape)
        batch = self.prepared(batch)
        return self.engine.step(SACBatch(batch, noise=noise, next_noise=next_noise))

    def critic_loss(
        self, flat: Tensor, noisy: SACBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Both critics towards the lower one's soft value, equations 3 and 5."""
        batch, _, next_noise = noisy
        after = batch.next_observation
        with torch.no_grad():
            alpha = self.temperature.online.exp()
            mean, log_std = self.actor.call(self.actor.online, after)
            normalised, next_log_prob = squashed_sample(mean, log_std, next_noise)
            next_action = self.to_box(normalised)
            next_values = self.critics.call(self.critics.target, after, next_action)
            soft_value = next_values.amin(dim=0) - alpha * next_log_prob
            target = td_target(batch.reward, batch.discount, soft_value)
        values = self.critics.call(flat, batch.observation, batch.action)  # [2, B]
        return critic_loss(values, target, batch.weight, self._algorithm.huber, batch.summary)

    def actor_loss(self, flat: Tensor, noisy: SACBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """Alpha log pi - min Q at reparametrised actions, equation 9."""
        before = noisy.transitions.observation
        noise = noisy.noise
        mean, log_std = self.actor.call(flat, before)
        normalised, log_prob = squashed_sample(mean, log_std, noise)
        action = self.to_box(normalised)
        values = self.critics.call(self.critics.online, before, action)
        alpha = self.temperature.online.exp()
        mean = noisy.transitions.mean
        loss = mean(alpha * log_prob - values.amin(dim=0))
        loss, metrics = self.with_terms(loss, action, noisy.transitions)
        return loss, {**metrics, "entropy": -mean(log_prob), "log_prob": log_prob}

    def temperature_loss(
        self, flat: Tensor, noisy: SACBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """-log alpha (log pi + target entropy): equation 18, whose alpha is taken in logarithms."""
        excess = noisy.transitions.mean(scalars["log_prob"] + self.target_entropy)
        log_alpha = self.temperature.call(flat)[0]
        return -log_alpha * excess, {"temperature": log_alpha.exp()}


def sac_learner(params: SACAgentParameters, agent: OffPolicyAgent) -> Learner:
    """The learner of a SAC agent by its action space: the paper's, or a variant."""
    own = {"Box": SACLearner}
    claim = f"agent '{agent.name}' cannot act in"
    kind = variant_for("SACAgentParameters", agent.action_space, own, claim=claim)
    learner: Learner = kind(params, agent)
    return learner


class CandidatePolicy(ActingPolicy[RowNoise]):
    """Policy whose greedy action is the candidate with the highest value of the lower critic.

    Args:
        network: Means and log standard deviations before squashing, [R, 2A].
        exploration: Samples of that distribution.
        critics: Two critics.
        to_box: From [-1, 1] to the action space.
        log_std_bounds: Log standard deviations are kept within.
        normal: Standard normal numbers of candidates around the mean, [K, A].
        uniform: Candidates from anywhere in [-1, 1], [K, A].
    """

    def __init__(
        self,
        network: Forward,
        exploration: SquashedGaussianPolicy,
        *,
        critics: NetworkWrapper,
        to_box: ScaleToBox,
        log_std_bounds: tuple[float, float],
        normal: Tensor,
        uniform: Tensor,
    ) -> None:
        super().__init__(network, exploration)
        self._critics = critics
        self._to_box = to_box
        self._bounds = log_std_bounds
        self.normal = normal
        self.uniform = uniform

    def greedy(self, observation: Observation, outputs: FloatArray) -> Array:
        """The best of the squashed mean, K draws around it and K from the whole box, [R, A]."""
        device = self.normal.device
        with torch.inference_mode():
            mean, log_std = torch.from_numpy(outputs).to(device).unsqueeze(1).chunk(2, dim=-1)
            std = log_std.clamp(*self._bounds).exp()
            drawn = torch.tanh(mean + std * self.normal)  # [R, K, A]
            anywhere = self.uniform.expand(len(outputs), -1, -1)
            choices = self._to_box(torch.cat([torch.tanh(mean), drawn, anywhere], dim=1))
            seen = {
                key: torch.from_numpy(array).to(device).repeat_interleave(choices.shape[1], 0)
                for key, array in observation.items()
            }
            values = self._critics.call(self._critics.online, seen, choices.flatten(0, 1))
            best = values.amin(dim=0).view(choices.shape[:2]).argmax(dim=1)
            chosen: Array = choices[torch.arange(len(best)), best].cpu().numpy()
        return chosen
