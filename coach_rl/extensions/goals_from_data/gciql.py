"""Goal-conditioned implicit Q-learning (Kostrikov et al. 2022; Park et al. 2025, arXiv:2410.20092).

IQL whose observations hold goals from data: values learn with one kind of goals, the policy with
another. With `DataGoalsParameters(value=FUTURE, actor=None, discount=1.0)`, `BCAgentParameters` is
GCBC, goal-conditioned behaviour cloning (Lynch et al. 2019, arXiv:1903.01973).
"""

from dataclasses import field
from functools import partial
from typing import Annotated, Literal

import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.extensions.goals_from_data.data_goals import ACTOR_GOAL, DataGoalsParameters
from coach_rl.extensions.hindsight.hindsight_filters import require_unfiltered
from coach_rl.extensions.offline.iql import IQLAgentParameters, IQLAlgorithmParameters, IQLLearner
from coach_rl.memories.batches import Tensors
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.transition_batch import TransitionBatch

_SMALL = 1e-6
"""Keeps the mean size of values from 0 where it divides them."""


def _memory() -> ReplayMemoryParameters:
    return ReplayMemoryParameters(parts=(DataGoalsParameters(),))


@parameter_class
class GCIQLAlgorithmParameters(IQLAlgorithmParameters):
    """GCIQL's settings. Defaults: OGBench's."""

    expectile: Annotated[float, Interval(gt=0, lt=1)] = 0.9
    """Tau: the nearer to 1, the nearer values are to those of the best action in the data."""
    extraction: Literal["ddpg_bc", "awr"] = "ddpg_bc"
    """Loss of the policy. ddpg_bc: minus the lower critic's value of its mean action, by the mean
    size of the values in the batch, plus behaviour cloning. awr: cloning weighted by advantage,
    with `temperature`."""
    cloning: Positive[float] = 0.3
    """ddpg_bc: alpha, the weight of behaviour cloning; OGBench takes 0.003 in point mazes."""


@parameter_class
class GCIQLAgentParameters(IQLAgentParameters):
    """A GCIQL agent; its memory has `DataGoalsParameters` among its parts."""

    algorithm: GCIQLAlgorithmParameters = field(default_factory=GCIQLAlgorithmParameters)
    """Settings of the algorithm."""
    memory: ReplayMemoryParameters = field(default_factory=_memory)
    """The memory for transitions."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        make_learner = partial(GCIQLLearner, self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class GCIQLLearner(IQLLearner):
    """IQL whose policy learns with goals of its own."""

    def __init__(self, params: GCIQLAgentParameters, agent: OffPolicyAgent) -> None:
        require_data_goals(params.memory, agent)
        super().__init__(params, agent)
        modules = [each.module for each in self.networks.values()]
        require_memoryless(modules, f"agent '{agent.name}' with goals from data")
        self._settings = params.algorithm
        box = agent.action_space
        assert isinstance(box, spaces.Box)  # as its critics need
        bounds = [torch.from_numpy(bound.astype("float32")) for bound in (box.low, box.high)]
        self._bounds = [bound.to(agent.device) for bound in bounds]

    def policy_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """The loss of the policy pi(a | s, g), with g the policy's goals.

        ddpg_bc: -Q(s, g, mu(s, g)) / mean |Q| - alpha log pi(a | s, g), Q the lower critic.
        awr: -min(exp(beta (Q(s, g, a) - V(s, g))), 100) log pi(a | s, g), Q the lower critic; the
        authors' code has online critics here, and so has this.
        """
        observation = with_actor_goals(batch)
        parameters = self.policy.call(flat, observation)
        log_prob = self.distribution.log_prob(parameters, batch.action)
        entropy = batch.mean(self.distribution.entropy(parameters))
        if self._settings.extraction == "awr":
            with torch.no_grad():
                value = self.value.call(self.value.online, observation)
                advantage = self._lowest(observation, batch.action) - value
                largest = self._settings.largest_weight
                weight = (self._settings.temperature * advantage).exp().clamp(max=largest)
            loss = -batch.mean(batch.weight * weight * log_prob)
            more = {"advantage": batch.mean(advantage)}
        else:
            mean = parameters[:, : batch.action.shape[1]].clamp(*self._bounds)
            values = self._lowest(observation, mean)
            scale = 1 / (batch.mean(values.abs()).detach() + _SMALL)
            cloning = -batch.mean(batch.weight * log_prob)
            loss = self._settings.cloning * cloning - scale * batch.mean(batch.weight * values)
            more = {"cloning_loss": cloning}
        return loss, {"policy_loss": loss, "entropy": entropy, **more}

    def goal_values(self, observation: Tensors) -> Tensor:
        """The values V(s, g) [B] of observations with goals, [B, ...] each."""
        values: Tensor = self.value.call(self.value.online, observation)
        return values

    def _lowest(self, observation: Tensors, action: Tensor) -> Tensor:
        """The lower critic's values [B] of actions [B, A]."""
        values: Tensor = self.critics.call(self.critics.online, observation, action)
        return values.amin(dim=0)


def with_actor_goals(batch: TransitionBatch) -> Tensors:
    """The observations of a batch with the policy's goals, [B, ...] each."""
    return {**batch.observation, GOAL_KEY: batch.extras[ACTOR_GOAL]}


def require_data_goals(memory: ReplayMemoryParameters, agent: OffPolicyAgent) -> None:
    """Raise `ConfigurationError` unless an agent's memory draws goals of its policy from data.

    Args:
        memory: Its parameters.
        agent: The agent.
    """
    parts = [each for each in memory.parts if isinstance(each, DataGoalsParameters)]
    if not any(each.actor or each.actor_ahead for each in parts):
        raise ConfigurationError(
            f"agent '{agent.name}' learns a policy for goals from data; give it "
            "ReplayMemoryParameters(parts=(DataGoalsParameters(),)), with goals of the policy "
            "(`actor` or `actor_ahead`)"
        )
    require_unfiltered(agent, {GOAL_KEY}, "DataGoalsParameters")
