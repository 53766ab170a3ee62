"""HIQL: one value of states and goals, two policies that climb it (Park et al. 2023).

arXiv:2307.11949. The lower level learns V(s, g) from data without rewards or actions, and a policy
that reaches sub-goals some steps ahead. The upper level learns by the same V which sub-goal to set:

    level "top":  HIQLUpperAgentParameters, memory with SubGoalsFromDataParameters(ahead=k)
    level "low":  HIQLAgentParameters, memory with DataGoalsParameters(actor_ahead=k), horizon k

Differences from the paper: sub-goals are goals of the lower level's space, e.g. positions, where
the paper learns a representation phi(s, g) of them as the last layers of V; the spread of policies
is learned, where the authors' code has a standard deviation of 1; the value is the mean of two, as
in that code.
"""

from dataclasses import field
from functools import partial
from typing import Annotated, ClassVar, Protocol, runtime_checkable

import torch
from annotated_types import Interval
from torch import Tensor

from coach_rl.agents.learner import ActingPolicy, AnyActingPolicy
from coach_rl.agents.off_policy_agent import (
    OffPolicyAgent,
    OffPolicyAgentParameters,
    ValueLearningParameters,
)
from coach_rl.agents.unfiltered_keys import quoted
from coach_rl.architectures.continuous_control import CriticParameters
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.extensions.choices.discrete_sac import ChoiceCritics
from coach_rl.extensions.goals_from_data.data_goals import DataGoalsParameters
from coach_rl.extensions.goals_from_data.gciql import require_data_goals, with_actor_goals
from coach_rl.extensions.goals_from_data.sub_goals import SubGoalsFromDataParameters
from coach_rl.extensions.hindsight.hindsight_filters import require_unfiltered
from coach_rl.extensions.imitation.policy_network import (
    Policy,
    PolicyAgent,
    PolicyParameters,
    SampledActions,
)
from coach_rl.memories.batches import Tensors
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.transition_batch import TransitionBatch

_MEMBERS = 2


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


def _lower_memory() -> ReplayMemoryParameters:
    return ReplayMemoryParameters(parts=(DataGoalsParameters(actor_ahead=25),))


def _upper_memory() -> ReplayMemoryParameters:
    return ReplayMemoryParameters(parts=(SubGoalsFromDataParameters(),))


@parameter_class
class ExtractionParameters:
    """Settings of a policy that is extracted from values by weighted cloning."""

    temperature: NonNegative[float] = 3.0
    """Beta, the inverse temperature: how strongly advantages weigh what is cloned; OGBench's."""
    largest_weight: Positive[float] = 100.0
    """Weights of what is cloned are at most this."""


@parameter_class
class HIQLAlgorithmParameters(ValueLearningParameters):
    """Settings of HIQL's value and lower policy. Defaults: OGBench's."""

    expectile: Annotated[float, Interval(gt=0, lt=1)] = 0.7
    """Tau: the nearer to 1, the nearer values are to those of the shortest ways."""
    extraction: ExtractionParameters = field(default_factory=ExtractionParameters)
    """Settings of the policy."""
    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """Update rule of the values' targets."""

    def __post_init__(self) -> None:
        require(
            self.huber is None,
            f"HIQLAlgorithmParameters.huber is {self.huber}, and HIQL squares all errors of "
            "values, as with None; leave huber out",
        )


@parameter_class
class _HIQLPolicyParameters(OffPolicyAgentParameters):
    """Settings of both levels' policies."""

    AGENT = PolicyAgent

    policy: PolicyParameters = field(default_factory=PolicyParameters)
    """The policy's network."""
    policy_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the policy."""
    scale_actions: bool = True
    """The policy acts in [-1, 1], which is mapped to the bounds of a Box of actions; False: it acts
    in the Box's own units."""

    @property
    def arguments(self) -> dict[str, tuple[str, int]]:
        """Arguments of parameterised actions: none."""
        return {}


@parameter_class
class HIQLAgentParameters(_HIQLPolicyParameters):
    """The lower level of HIQL, which learns the value; its memory has `DataGoalsParameters`."""

    algorithm: HIQLAlgorithmParameters = field(default_factory=HIQLAlgorithmParameters)
    """Settings of the algorithm."""
    memory: ReplayMemoryParameters = field(default_factory=_lower_memory)
    """The memory for transitions."""
    value: CriticParameters = field(default_factory=CriticParameters)
    """The network of each of the two values."""
    value_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the values."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        return self.AGENT(
            self,
            context,
            discount=self.algorithm.discount,
            make_learner=partial(HIQLLearner, self),
        )


@parameter_class
class HIQLUpperAgentParameters(_HIQLPolicyParameters):
    """The upper level of HIQL, above a `HIQLAgentParameters` or another of its kind.

    Its memory has `SubGoalsFromDataParameters`.
    """

    extraction: ExtractionParameters = field(default_factory=ExtractionParameters)
    """Settings of the policy."""
    memory: ReplayMemoryParameters = field(default_factory=_upper_memory)
    """The memory for transitions."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; ConfigurationError unless an agent with values of goals is below."""
        return self.AGENT(self, context, discount=1.0, make_learner=partial(HIQLUpperLearner, self))


@runtime_checkable
class GoalValues(Protocol):
    """A learner with a value of states and goals."""

    def goal_values(self, observation: Tensors) -> Tensor:
        """The values [B] of observations with goals, [B, ...] each."""
        ...


class _WeightedCloning:
    """The policy of a level, which clones by advantage."""

    SCALARS: ClassVar[str] = "policy"

    def __init__(
        self, params: _HIQLPolicyParameters, settings: ExtractionParameters, agent: OffPolicyAgent
    ) -> None:
        if params.memory.prioritised is not None:
            raise ConfigurationError(
                f"agent '{agent.name}' learns by HIQL, which makes no priorities of transitions, "
                f"and its memory.prioritised is {type(params.memory.prioritised).__name__}; leave "
                "that out"
            )
        policy = Policy(params.policy, *agent.network_arguments)
        require_memoryless((policy,), _owner(agent))
        self._settings = settings
        self.distribution = policy.distribution
        self.policy = NetworkWrapper(policy, device=agent.device)
        self.networks = {"policy": self.policy}
        self.acting: AnyActingPolicy = ActingPolicy(
            torch_forward(policy, agent.device), SampledActions(agent.action_space)
        )

    def cloning_loss(
        self, flat: Tensor, batch: TransitionBatch, observation: Tensors, advantage: Tensor
    ) -> tuple[Tensor, Numbers]:
        """-min(exp(beta A), 100) log pi(a | s, g), over the batch; equations 6 and 7.

        Args:
            flat: The policy's parameters.
            batch: Transitions, with the actions to clone.
            observation: What the policy sees, [B, ...] each.
            advantage: A, [B].
        """
        settings = self._settings
        weight = (settings.temperature * advantage).exp().clamp(max=settings.largest_weight)
        parameters = self.policy.call(flat, observation)
        log_prob = self.distribution.log_prob(parameters, batch.action)
        loss = -batch.mean(batch.weight * weight * log_prob)
        entropy = batch.mean(self.distribution.entropy(parameters))
        return loss, {
            "policy_loss": loss,
            "advantage": batch.mean(advantage),
            "entropy": entropy,
        }


class HIQLLearner(_WeightedCloning):
    """Two values of states and goals, and a policy to sub-goals.

    A step moves the values, then the policy, then the values' targets.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
    """

    def __init__(self, params: HIQLAgentParameters, agent: OffPolicyAgent) -> None:
        require_data_goals(params.memory, agent)
        super().__init__(params, params.algorithm.extraction, agent)
        self._algorithm = params.algorithm
        observation_space, _, rng, normaliser = agent.network_arguments
        values = ChoiceCritics(
            params.value, observation_space, None, 1, rng, normaliser, members=_MEMBERS
        )
        require_memoryless((values,), _owner(agent))
        self.value = NetworkWrapper(values, device=agent.device, with_target=True)
        self.networks["value"] = self.value
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
        )
        self.learning_rates = {
            each.named("learning_rate"): each.optimizer.learning_rate for each in objectives
        }
        targets = ((self.value, params.algorithm.target_sync),)
        self.engine = agent.new_engine(objectives, targets=targets)

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def value_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Expectile regression of both values, equation 4, as the authors' code has it.

        Each value k learns r + gamma V'_k(s', g). The expectile's side is that of the advantage
        r + gamma min_k V'_k(s', g) - mean_k V'_k(s, g), V' the targets.
        """
        value = self.value
        with torch.no_grad():
            following = self._members(value.target, batch.next_observation)  # [2, B]
            lower = batch.reward + batch.discount * following.amin(dim=0)
            advantage = lower - self._members(value.target, batch.observation).mean(dim=0)
            wanted = batch.reward + batch.discount * following  # [2, B]
            tau = self._algorithm.expectile
            side = torch.where(advantage < 0, 1 - tau, tau)
        found = self._members(flat, batch.observation)  # [2, B]
        loss = batch.mean(batch.weight * side * ((wanted - found) ** 2).sum(dim=0))
        return loss, {"value_loss": loss, "value": batch.mean(found.mean(dim=0))}

    def policy_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Cloning by A = V(s', w) - V(s, w), w the sub-goal k steps ahead; equation 7."""
        observation = with_actor_goals(batch)
        with torch.no_grad():
            reached = {**batch.next_observation, GOAL_KEY: observation[GOAL_KEY]}
            advantage = self.goal_values(reached) - self.goal_values(observation)
        return self.cloning_loss(flat, batch, observation, advantage)

    def goal_values(self, observation: Tensors) -> Tensor:
        """The mean [B] of both values of observations with goals, [B, ...] each."""
        return self._members(self.value.online, observation).mean(dim=0)

    def _members(self, flat: Tensor, observation: Tensors) -> Tensor:
        values: Tensor = self.value.call(flat, observation)  # [2, B, 1]
        return values.squeeze(-1)


class HIQLUpperLearner(_WeightedCloning):
    """A policy that sets the sub-goals through which data came nearer to goals.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
    """

    def __init__(self, params: HIQLUpperAgentParameters, agent: OffPolicyAgent) -> None:
        if not any(isinstance(each, SubGoalsFromDataParameters) for each in params.memory.parts):
            raise ConfigurationError(
                f"agent '{agent.name}' learns sub-goals from data; give it "
                "ReplayMemoryParameters(parts=(SubGoalsFromDataParameters(),))"
            )
        require_unfiltered(agent, {GOAL_KEY}, "SubGoalsFromDataParameters")
        super().__init__(params, params.extraction, agent)
        self._below = _values_below(agent)
        objective = Objective(
            name=self.SCALARS,
            network=self.policy,
            loss=self.policy_loss,
            optimizer=params.policy_optimizer,
        )
        name = objective.named("learning_rate")
        self.learning_rates = {name: params.policy_optimizer.learning_rate}
        self.engine = agent.new_engine((objective,))

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def policy_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Cloning by A = V(s_k, g) - V(s, g), s_k the state k steps ahead; equation 6."""
        with torch.no_grad():
            after = self.goal_values(batch.next_observation)
            advantage = after - self.goal_values(batch.observation)
        return self.cloning_loss(flat, batch, batch.observation, advantage)

    def goal_values(self, observation: Tensors) -> Tensor:
        """The values [B] of observations with goals, [B, ...] each, by the level below."""
        return self._below.goal_values(observation)


def _owner(agent: OffPolicyAgent) -> str:
    return f"agent '{agent.name}' with goals from data"


def _values_below(agent: OffPolicyAgent) -> GoalValues:
    """The learner of the agent below, whose value sees what this agent does.

    Raises:
        ConfigurationError: It has no value of goals, or sees something else, or filters change
            what either sees.
    """
    below = agent.place.agent_below
    learner = getattr(below, "learner", None)
    if not isinstance(below, OffPolicyAgent) or not isinstance(learner, GoalValues):
        raise ConfigurationError(
            f"{agent.place.owner(agent.name)} learns by the value of the level below; give that "
            f"level HIQLAgentParameters, got {type(below).__name__}"
        )
    shapes = [_shapes(each) for each in (agent, below)]
    if shapes[0] != shapes[1]:
        raise ConfigurationError(
            f"{agent.place.owner(agent.name)} values its goals as the level below does, and they "
            f"see {shapes[0]} and {shapes[1]}; give both levels goals of one size, and no filters"
        )
    for each in (agent, below):
        if changed := each.input_filter.changed_keys:
            raise ConfigurationError(
                f"{agent.place.owner(agent.name)} values its goals as the level below does, and "
                f"the InputFilter of {each.place.owner(each.name)} changes {quoted(changed)}; "
                "leave its filters out and set normalise_observations, which normalises inside the "
                "networks"
            )
    return learner


def _shapes(agent: OffPolicyAgent) -> dict[str, tuple[int, ...]]:
    space = agent.observation_space
    return {key: part.shape or () for key, part in space.spaces.items()}
