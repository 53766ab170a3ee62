"""Deep Q-learning (Mnih et al. 2015) with later extensions.

Double choice of the next action (van Hasselt et al. 2016, arXiv:1509.06461); dueling streams,
quantiles and categorical returns by the network; n-step returns, priorities and hindsight by the
memory. docs/algorithms/dqn.md lists every detail and its source.
"""

from collections.abc import Callable, Mapping
from dataclasses import field
from functools import partial, singledispatch
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor

from coach_rl.agents.learner import ActingPolicy, AnyActingPolicy
from coach_rl.agents.off_policy_agent import (
    ClippedTargetParameters,
    LearningParameters,
    OffPolicyAgent,
    OffPolicyAgentParameters,
)
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import quick_forward
from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.q_network import QNetwork, QNetworkParameters
from coach_rl.architectures.recurrent_forward import recurrent_forward
from coach_rl.core.agents import AgentContext
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.core.variants import variant_for
from coach_rl.exploration_policies import (
    AnyExplorationPolicy,
    EpsilonGreedy,
    ExplorationPolicyParameters,
)
from coach_rl.functional.temporal_difference import of_actions
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class DQNAlgorithmParameters(ClippedTargetParameters):
    """DQN's settings. Defaults: those of Mnih et al. 2015, with the double choice of actions."""

    double: bool = True
    """The online network chooses the next action, the target network evaluates it."""
    target_sync: TargetSync = field(default_factory=lambda: TargetSync(every=10_000))
    """Update rule of the target network."""
    huber: Positive[float] | None = 1.0
    """Errors beyond this count linearly; None squares all (quantiles: counts all linearly)."""


def _nature_learning() -> LearningParameters:
    return LearningParameters(batch=32, updates_per_step=0.25, learning_starts=50_000)


@parameter_class
class DQNAgentParameters(OffPolicyAgentParameters):
    """A DQN agent. Defaults are those for Atari; small tasks want faster ones."""

    algorithm: DQNAlgorithmParameters = field(default_factory=DQNAlgorithmParameters)
    """Settings of the algorithm."""
    learning: LearningParameters = field(default_factory=_nature_learning)
    """Schedule and batch size of learning (Mnih et al. 2015)."""
    exploration: ExplorationPolicyParameters = field(default_factory=EpsilonGreedy)
    """The exploration policy."""
    network: QNetworkParameters = field(default_factory=QNetworkParameters)
    """Its network."""
    optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(learning_rate=6.25e-5, epsilon=1.5e-4)
    )
    """The optimiser (Hessel et al. 2018: Adam; the first DQN had RMSprop)."""

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; SpaceError unless it acts in a Discrete or a flat MultiDiscrete space."""
        make_learner = partial(learners_of(self.exploration), self)
        return self.AGENT(
            self, context, discount=self.algorithm.discount, make_learner=make_learner
        )


class DQNLearner:
    """A network of action values."""

    make_network: Callable[..., QNetwork] = QNetwork
    """Makes the network of its parameters and the agent's `network_arguments`."""
    choosing: Mapping[str, str] = {}
    """Further arguments of the online network where it chooses the next action."""

    def __init__(self, params: DQNAgentParameters, agent: OffPolicyAgent) -> None:
        self._algorithm = params.algorithm
        self.output_rules = agent.output_rules
        network = self.make_network(params.network, *agent.network_arguments)
        self._returns = network.returns
        self._first_action = first_action(agent.action_space).tolist()
        self.network = NetworkWrapper(network, device=agent.device, with_target=True)
        self.networks = {"q": self.network}
        self.learning_rates = {"learning_rate": params.optimizer.learning_rate}
        self.engine = agent.new_engine(
            (Objective(network=self.network, loss=self.loss, optimizer=params.optimizer),),
            targets=((self.network, params.algorithm.target_sync),),
        )
        is_plain = network.state is None and network.returns.size == 1
        head = network.actions if is_plain else network.means
        forward = recurrent_forward(network.torso, head, agent.device)
        self.acting: AnyActingPolicy = ActingPolicy(
            forward or _values_of(network, agent.device),
            self.exploration(params.exploration, agent.action_space),
        )

    @staticmethod
    def exploration(params: ExplorationPolicyParameters, space: Space) -> AnyExplorationPolicy:
        """The exploration policy for the action space."""
        return params.build(space)

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Distance from r + gamma Q'(s', argmax Q(s', .)); the argmax of Q' unless `double`."""
        network = self.network
        returns = self._returns
        algorithm = self._algorithm
        with torch.no_grad():
            judged, values = self.next_values(batch)
            best = of_actions(judged, values.argmax(dim=1))
            target = returns.target(best, batch.reward, batch.discount, algorithm.clip_targets)
        taken = batch.action.to(torch.int64) - self._first_action
        numbers = of_actions(network.call(flat, batch.observation), taken)  # [B, K]
        loss, error = returns.loss(numbers, target, batch.weight, algorithm.huber)
        return loss, {
            "q_loss": loss,
            "q_value": batch.mean(returns.mean(numbers)),
            "td_error": error,
        }

    def next_values(self, batch: TransitionBatch) -> tuple[Tensor, Tensor]:
        """The target network's numbers [B, n, K] after transitions, and values to choose by [B, n].

        The values are those of the online network if `double`, by the rules for outputs.
        """
        network = self.network
        after = batch.next_observation
        judged = network.call(network.target, after)
        chooser = judged
        if self._algorithm.double:
            chooser = network.call(network.online, after, **self.choosing)
        values = self._returns.mean(chooser)
        for rule in self.output_rules:
            values = rule(values, after)
        return judged, values


def learner_class(agent: OffPolicyAgent) -> type[DQNLearner]:
    """The class of a DQN's learner by the agent's action space: the paper's, or a variant."""
    own = {"Discrete": DQNLearner}
    space = agent.action_space
    kind: type[DQNLearner] = variant_for(
        "DQNAgentParameters", space, own, claim=f"agent '{agent.name}' cannot act in"
    )
    return kind


def dqn_learner(params: DQNAgentParameters, agent: OffPolicyAgent) -> DQNLearner:
    """The learner of a DQN agent by its action space."""
    return learner_class(agent)(params, agent)


MakeDQNLearner: TypeAlias = Callable[[DQNAgentParameters, OffPolicyAgent], DQNLearner]


@singledispatch
def learners_of(
    exploration: object,  # noqa: ARG001 - its class chooses the function
) -> MakeDQNLearner:
    """The function that makes a DQN's learner, by the class of its exploration's parameters.

    One that changes the network, or how it acts, registers its own.
    """
    return dqn_learner


def _values_of(network: QNetwork, device: torch.device) -> Forward:
    """Action values [R, M] of numpy observations."""
    actions = quick_forward(network.torso, network.actions, device)
    if network.state is None and network.returns.size == 1:
        return actions
    state = None if network.state is None else quick_forward(network.torso, network.state, device)

    def values(observation: Observation) -> FloatArray:
        with torch.inference_mode():
            own = None if state is None else torch.from_numpy(state(observation))
            numbers = network.joined(torch.from_numpy(actions(observation)), own)
            return np.asarray(network.returns.mean(numbers).numpy())

    return values
