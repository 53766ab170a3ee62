"""Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477).

docs/algorithms/td3.md lists every detail and its source.
"""

from dataclasses import field
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor

from coach_rl.agents.actor_critic_learner import (
    DeterministicAgentParameters,
    DeterministicAlgorithmParameters,
    DeterministicLearner,
)
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.agents import AgentContext
from coach_rl.core.box_ranges import ActionUnit
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class TD3AlgorithmParameters(DeterministicAlgorithmParameters):
    """TD3's settings. Defaults: the paper's, section 6.1."""

    policy_delay: Positive[int] = 2
    """Critic steps per step of the actor and the targets."""
    target_noise: NonNegative[float] = 0.2
    """Standard deviation of the noise on the target's actions, in the `target_noise_unit`."""
    target_noise_clip: NonNegative[float] = 0.5
    """Largest size of that noise, in the `target_noise_unit`."""
    target_noise_unit: ActionUnit = "half_range"
    """half_range: the half-range of each element. raw: the box's own units, the same size for all
    elements (HIRO's code)."""


@parameter_class
class TD3AgentParameters(DeterministicAgentParameters):
    """A TD3 agent."""

    algorithm: TD3AlgorithmParameters = field(default_factory=TD3AlgorithmParameters)
    """Settings of the algorithm."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(TD3Learner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class TD3Batch(NamedTuple):
    """The columns a step of TD3 learns from."""

    transitions: TransitionBatch
    noise: Tensor
    """Standard normal numbers for the target's actions, [B, A]."""


class TD3Learner(DeterministicLearner[TD3Batch]):
    """Two critics of which the lower is believed, and an actor that waits for them."""

    def __init__(self, params: TD3AgentParameters, agent: OffPolicyAgent) -> None:
        super().__init__(params, agent, params.algorithm, members=2)
        self._algorithm = params.algorithm
        self._noise = agent.noise

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        noise = self._noise(*batch.action.shape)
        if (self.engine.steps + 1) % self._algorithm.policy_delay != 0:
            return self.engine.step(TD3Batch(batch, noise=noise), only=("critic",))
        return self.engine.step(TD3Batch(self.prepared(batch), noise=noise))

    def critic_loss(
        self, flat: Tensor, noisy: TD3Batch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Both critics towards the lower one's target at a smoothed action, algorithm 1."""
        (batch, noise), algorithm = noisy, self._algorithm
        after = batch.next_observation
        with torch.no_grad():
            limit = algorithm.target_noise_clip
            noise = (noise * algorithm.target_noise).clamp(-limit, limit)
            if algorithm.target_noise_unit == "raw":
                noise = noise / self.to_box.half_range
            normalised = self.to_box.inverse(self.actor.call(self.actor.target, after))
            next_action = self.to_box((normalised + noise).clamp(-1, 1))
            next_value = self.critics.call(self.critics.target, after, next_action).amin(dim=0)
            target = td_target(batch.reward, batch.discount, next_value, self.clip_targets)
        values = self.critics.call(flat, batch.observation, batch.action)  # [2, B]
        return critic_loss(values, target, batch.weight, algorithm.huber, batch.summary)

    def actor_loss(self, flat: Tensor, noisy: TD3Batch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """Minus the first critic's value of the actor's actions."""
        before = noisy.transitions.observation
        action = self.actor.call(flat, before)
        values = self.critics.call(self.critics.online, before, action, members=1)
        loss = -noisy.transitions.mean(values)
        return self.with_terms(loss, action, noisy.transitions)
