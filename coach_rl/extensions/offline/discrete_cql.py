"""Conservative Q-learning for discrete actions (Kumar et al. 2020, arXiv:2006.04779)."""

from dataclasses import field
from functools import partial

import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.dqn_agent import (
    DQNAgentParameters,
    DQNAlgorithmParameters,
    DQNLearner,
    dqn_learner,
    learners_of,
)
from coach_rl.agents.off_policy_agent import LearningParameters, OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.functional.temporal_difference import of_actions
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class CQLAlgorithmParameters(DQNAlgorithmParameters):
    """CQL's settings for discrete actions; the others are DQN's."""

    conservatism: NonNegative[float] = 1.0
    """Alpha: weight of the term that lowers the values of actions that the data don't have."""


def _learning() -> LearningParameters:
    return LearningParameters(batch=32, updates_per_step=0.25, learning_starts=1)


@parameter_class
class DiscreteCQLAgentParameters(DQNAgentParameters):
    """A DQN agent that values actions outside the data less: CQL(H), equation 4."""

    algorithm: CQLAlgorithmParameters = field(default_factory=CQLAlgorithmParameters)
    """Settings of the algorithm."""
    learning: LearningParameters = field(default_factory=_learning)
    """Schedule and batch size of learning: DQN's, but for its start, as the data are there."""

    def __post_init__(self) -> None:
        require(
            learners_of(self.exploration) is dqn_learner,
            f"DiscreteCQLAgentParameters.exploration is {self.exploration!r}, which changes the "
            "network that learns, and CQL has its own; give one that changes actions alone, e.g. "
            "EpsilonGreedy()",
        )

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a Discrete space."""
        make_learner = partial(DiscreteCQLLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class DiscreteCQLLearner(DQNLearner):
    """A network of action values, low where the data have no actions."""

    def __init__(self, params: DiscreteCQLAgentParameters, agent: OffPolicyAgent) -> None:
        if not isinstance(agent.action_space, spaces.Discrete):
            raise SpaceError(
                f"DiscreteCQLAgentParameters acts in a Discrete space, not in "
                f"{agent.action_space}; for a Box take TD3BCAgentParameters or IQLAgentParameters"
            )
        super().__init__(params, agent)
        self._conservatism = params.algorithm.conservatism

    def loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """DQN's loss plus alpha (log sum exp Q(s, .) - Q(s, a)), over the actions allowed."""
        learned, metrics = super().loss(flat, batch, scalars)
        values = self._returns.mean(self.network.call(flat, batch.observation))  # [B, n]
        for rule in self.output_rules:
            values = rule(values, batch.observation)
        taken = batch.action.to(torch.int64) - self._first_action
        of_data = of_actions(values.unsqueeze(-1), taken).squeeze(-1)
        missed = values.logsumexp(dim=1) - of_data
        gap = (batch.weight * missed).mean()  # the weights of sequences are 0 in padding
        loss = learned + self._conservatism * gap
        return loss, {**metrics, "conservative_gap": gap}
