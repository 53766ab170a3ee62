"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

docs/algorithms/ddpg.md lists every detail and its source.
"""

from dataclasses import field
from functools import partial

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
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class DDPGAlgorithmParameters(DeterministicAlgorithmParameters):
    """DDPG's settings. Defaults: those of Fujimoto et al. 2018 and Tianshou's MuJoCo benchmark."""

    action_penalty: NonNegative[float] = 0.0
    """Added to the actor's loss: this times the mean square of its normalised actions."""


@parameter_class
class DDPGAgentParameters(DeterministicAgentParameters):
    """A DDPG agent."""

    algorithm: DDPGAlgorithmParameters = field(default_factory=DDPGAlgorithmParameters)
    """Settings of the algorithm."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(DDPGLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class DDPGLearner(DeterministicLearner[TransitionBatch]):
    """An actor that climbs the critic's hill, and a critic; both have targets."""

    def __init__(self, params: DDPGAgentParameters, agent: OffPolicyAgent) -> None:
        super().__init__(params, agent, params.algorithm, members=1)
        self._algorithm = params.algorithm

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(self.prepared(batch))

    def critic_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Squared distance from r + gamma Q'(s', mu'(s')), section 3 of the paper."""
        algorithm = self._algorithm
        after = batch.next_observation
        with torch.no_grad():
            next_action = self.actor.call(self.actor.target, after)
            next_value = self.critics.call(self.critics.target, after, next_action)[0]
            target = td_target(batch.reward, batch.discount, next_value, self.clip_targets)
        value = self.critics.call(flat, batch.observation, batch.action)  # [1, B]
        return critic_loss(value, target, batch.weight, algorithm.huber, batch.summary)

    def actor_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Minus the critic's value of the actor's actions, equation 6 of the paper."""
        before = batch.observation
        action = self.actor.call(flat, before)
        loss = -batch.mean(self.critics.call(self.critics.online, before, action))
        if self._algorithm.action_penalty:
            normalised = self.to_box.inverse(action)  # to [-1, 1]
            loss = loss + self._algorithm.action_penalty * batch.mean((normalised**2).T)
        return self.with_terms(loss, action, batch)
