"""TD3+BC: TD3 whose actor stays near the data's actions (Fujimoto & Gu 2021, arXiv:2106.06860)."""

from dataclasses import field
from functools import partial

from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import (
    TD3AgentParameters,
    TD3AlgorithmParameters,
    TD3Batch,
    TD3Learner,
)
from coach_rl.architectures.gradient_step import AdamParameters, Numbers
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


@parameter_class
class TD3BCAlgorithmParameters(TD3AlgorithmParameters):
    """TD3+BC's settings. Defaults: the paper's."""

    alpha: Positive[float] = 2.5
    """Weight of the critic's value, divided by the mean size of the values in the batch, against
    the squared distance from the data's actions (equations 3 to 5)."""


@parameter_class
class TD3BCAgentParameters(TD3AgentParameters):
    """A TD3+BC agent.

    The paper normalises observations over the data: `normalise_observations` does, and clips them
    to the bound that it is given.
    """

    algorithm: TD3BCAlgorithmParameters = field(default_factory=TD3BCAlgorithmParameters)
    """Settings of the algorithm."""
    actor_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the actor."""
    critic_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the critics."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(TD3BCLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class TD3BCLearner(TD3Learner):
    """TD3 whose actor is held near the data."""

    def __init__(self, params: TD3BCAgentParameters, agent: OffPolicyAgent) -> None:
        super().__init__(params, agent)
        self._alpha = params.algorithm.alpha

    def actor_loss(self, flat: Tensor, noisy: TD3Batch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """Minus the first critic's value, of mean size alpha, plus the distance from the data."""
        batch = noisy.transitions
        action = self.actor.call(flat, batch.observation)
        values = self.critics.call(self.critics.online, batch.observation, action, members=1)
        scale = self._alpha / batch.mean(values.abs()).detach()
        distance = self.to_box.inverse(action) - self.to_box.inverse(batch.action)  # in [-2, 2]
        cloning = batch.mean((distance**2).mean(dim=-1))
        loss, metrics = self.with_terms(cloning - scale * batch.mean(values), action, batch)
        return loss, {**metrics, "cloning_loss": cloning}
