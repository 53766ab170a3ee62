"""Deep Q-learning (Mnih et al. 2015) with what has been added to it since.

Double choice of the next action (van Hasselt et al. 2016, arXiv:1509.06461); dueling streams,
quantiles and categorical returns by the network; n-step returns, priorities and hindsight by the
memory. docs/algorithms/dqn.md lists every detail and its source.
"""

from dataclasses import field

import torch
from torch import Tensor

from coach_rl.agents.off_policy_agent import (
    NEXT_OBSERVATIONS,
    REPAID_AFTER,
    BuildContext,
    ClippedTargetParameters,
    LearningParameters,
    OffPolicyAgent,
    OffPolicyAgentParameters,
    Policy,
    observations,
)
from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.q_network import QNetwork, QNetworkParameters, action_count
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import FloatArray, Observation
from coach_rl.core.spaces import first_action
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.exploration_policies.exploration_policy import ExplorationPolicyParameters
from coach_rl.functional.temporal_difference import of_actions
from coach_rl.memories.memory import Batch


@parameter_class
class DQNAlgorithmParameters(ClippedTargetParameters):
    """DQN's settings. Defaults: those of Mnih et al. 2015, with the double choice of actions."""

    double: bool = True
    """The online network chooses the next action, the target network says what it is worth."""
    target_sync: TargetSync = field(default_factory=lambda: TargetSync(every=10_000))
    """How the target network follows."""
    huber: float | None = 1.0
    """Errors beyond this count linearly; None squares all (quantiles: counts all linearly)."""


def _nature_learning() -> LearningParameters:
    return LearningParameters(batch=32, updates_per_step=0.25, learning_starts=50_000)


def _rainbow_adam() -> AdamParameters:
    return AdamParameters(learning_rate=6.25e-5, epsilon=1.5e-4)


@parameter_class
class DQNAgentParameters(OffPolicyAgentParameters):
    """A DQN agent. Defaults are those for Atari; small tasks want faster ones."""

    algorithm: DQNAlgorithmParameters = field(default_factory=DQNAlgorithmParameters)
    """How it learns."""
    learning: LearningParameters = field(default_factory=_nature_learning)
    """When it learns, and on how much (Mnih et al. 2015)."""
    exploration: ExplorationPolicyParameters = field(default_factory=EpsilonGreedy)
    """How it explores."""
    network: QNetworkParameters = field(default_factory=QNetworkParameters)
    """Its network."""
    optimizer: AdamParameters = field(default_factory=_rainbow_adam)
    """Adam (Hessel et al. 2018; the first DQN had RMSProp)."""

    def made(self, context: BuildContext) -> "DQNAgent":
        """The agent; SpaceError unless it acts in a Discrete space."""
        action_count(self.agent_space(context.spaces))  # before its exploration policy complains
        return DQNAgent(self, context)


class DQNAgent(OffPolicyAgent):
    """A network of action values that learns from a replay memory."""

    def __init__(self, params: DQNAgentParameters, context: BuildContext) -> None:
        super().__init__(
            params,
            context,
            exploration=params.exploration,
            discount=params.algorithm.discount,
        )
        self._algorithm, self._rate = params.algorithm, params.optimizer.learning_rate
        self._first_action = int(first_action(self.action_space))
        network = QNetwork(
            params.network,
            self.observation_space,
            self.action_space,
            self.weights_rng,
            self.normaliser,
        )
        self._returns = network.returns
        self.network = NetworkWrapper(network, device=self.device, with_target=True)
        self.policy = self._values_of(network)
        self.engine = UpdateEngine(
            (Objective(network=self.network, loss=self._loss, optimizer=params.optimizer),),
            targets=((self.network, params.algorithm.target_sync),),
            mode=params.update_mode,
            planned_updates=self.planned_updates,
            repaid_after=REPAID_AFTER,
            owner=context.place.owner(params.name),
        )

    @property
    def networks(self) -> dict[str, NetworkWrapper]:
        """The one network."""
        return {"q": self.network}

    @property
    def learning_rates(self) -> dict[str, float]:
        """Of the one network."""
        return {"learning_rate": self._rate}

    def update(self, batch: Batch) -> Batch:
        """One gradient step, and the target follows."""
        return self.engine.step(batch)

    def _loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Distance from r + gamma Q'(s', argmax Q(s', .)); the argmax of Q' unless `double`."""
        network, returns, algorithm = self.network, self._returns, self._algorithm
        after = observations(batch, NEXT_OBSERVATIONS)
        with torch.no_grad():
            judged = network.call(network.target, after)  # [B, n, K]
            chooser = network.call(network.online, after) if algorithm.double else judged
            best = of_actions(judged, returns.mean(chooser).argmax(dim=1))
            target = returns.target(
                best, batch["/rewards"], batch["/discounts"], algorithm.clip_targets
            )
        taken = batch["/actions"].to(torch.int64) - self._first_action
        numbers = of_actions(network.call(flat, observations(batch)), taken)  # [B, K]
        loss, error = returns.loss(numbers, target, batch["/weights"], algorithm.huber)
        return loss, {
            "q_loss": loss,
            "q_value": returns.mean(numbers).mean(),
            "td_error": error,
        }

    def _values_of(self, network: QNetwork) -> Policy:
        """Action values [R, n] of numpy observations."""
        actions = self.numpy_policy(network.torso, network.actions)
        if network.state is None and network.returns.size == 1:
            return actions
        state = None if network.state is None else self.numpy_policy(network.torso, network.state)

        def values(observation: Observation) -> FloatArray:
            with torch.inference_mode():
                said = None if state is None else torch.from_numpy(state(observation))
                numbers = network.joined(torch.from_numpy(actions(observation)), said)
                return network.returns.mean(numbers).numpy()

        return values
