"""The parts of an off-policy algorithm: how it acts, its networks and their gradient step.

`OffPolicyAgent` decides when to learn and keeps the memory; a learner knows nothing of either.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock
from coach_rl.core.records import ActionRequest, Array, FloatArray, Observation
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space
from coach_rl.core.state import Stateful
from coach_rl.exploration_policies import (
    AnyExplorationPolicy,
    AnyParameterExploration,
    ParameterExplorationParameters,
)
from coach_rl.exploration_policies.exploration_policy import GreedyPolicy
from coach_rl.memories.transition_batch import TransitionBatch

Rows = TypeVar("Rows", bound=RowState)


class ActingPolicy(Generic[Rows]):
    """Chooses actions by a network, with or without exploration.

    Args:
        network: Outputs [R, P] of filtered observations [R, ...] each: greedy actions, action
            values or parameters of a distribution.
        exploration: Turns outputs into actions.
    """

    def __init__(self, network: Forward, exploration: AnyExplorationPolicy) -> None:
        self.outputs = network
        self.exploration = exploration

    @property
    def explores(self) -> bool:
        """True if exploring may choose other actions than the greedy ones."""
        return not isinstance(self.exploration, GreedyPolicy)

    def new_rows(self, num_envs: int, seed: int) -> Rows:
        rows: Rows = self.exploration.new_rows(num_envs, seed)
        return rows

    def observed(
        self,
        row_state: Rows,
        request: ActionRequest,
    ) -> Observation:
        """The observation [R, ...] for the network; a subclass adds what exploring rows draw."""
        return request.observation

    def greedy(self, observation: Observation, outputs: FloatArray) -> Array:
        """Actions [R, ...] without exploration.

        Args:
            observation: Filtered, [R, ...] each.
            outputs: The network's for it, [R, P].
        """
        return self.exploration.greedy(outputs)

    def policy_actions(self, observation: Observation) -> Array:
        """The policy's own actions [R, ...] for filtered observations [R, ...] each."""
        return self.exploration.greedy(self.outputs(observation))

    def explore(
        self, row_state: Rows, request: ActionRequest, outputs: FloatArray, clock: Clock
    ) -> Array:
        """Actions [R, ...] with exploration; advances the rows of the request."""
        return self.exploration.explore(
            row_state, request.rows, outputs, starts=request.starts, clock=clock
        )

    def metrics(self, clock: Clock) -> dict[str, float]:
        return self.exploration.metrics(clock)


AnyActingPolicy: TypeAlias = ActingPolicy[Any]
"""An acting policy, whatever its row state."""


@dataclass(kw_only=True)
class PerturbedRows(Saved):
    """Row state of a policy that explores with its parameters as well as with its actions."""

    SAVED = ("actions", "parameters")

    actions: RowState
    """Row state of the exploration policy."""
    parameters: RowState
    """Row state of the perturbations."""


class PerturbedPolicy(ActingPolicy[PerturbedRows]):
    """A deterministic actor of which every exploring row has its own perturbed copy.

    Args:
        network: The actor's actions [R, A] of observations [R, ...] each.
        exploration: Adds noise to the perturbed actor's actions.
        parameter_noise: How the parameters are perturbed.
        actor: The actor that owns `network`.
        action_space: Where it acts.
    """

    def __init__(
        self,
        network: Forward,
        exploration: AnyExplorationPolicy,
        *,
        parameter_noise: ParameterExplorationParameters,
        actor: NetworkWrapper,
        action_space: Space,
    ) -> None:
        super().__init__(network, exploration)
        self.perturbations: AnyParameterExploration = parameter_noise.build(
            action_space, perturbable=np.ones(actor.size, np.bool_)
        )
        self._actor = actor
        self._metrics: dict[str, float] = {}

        def one_row(flat: Tensor, observation: dict[str, Tensor]) -> Tensor:
            single = {key: values[None] for key, values in observation.items()}
            action: Tensor = actor.call(flat, single)
            return action[0]

        self._forward: Callable[[Tensor, dict[str, Tensor]], Tensor] = torch.func.vmap(one_row)

    @property
    def explores(self) -> bool:
        """True: its parameters are perturbed."""
        return True

    def new_rows(self, num_envs: int, seed: int) -> PerturbedRows:
        return PerturbedRows(
            actions=self.exploration.new_rows(num_envs, seed),
            parameters=self.perturbations.new_rows(num_envs, seed),
        )

    def explore(
        self, row_state: PerturbedRows, request: ActionRequest, outputs: FloatArray, clock: Clock
    ) -> Array:
        """Actions [R, A] of the rows' own parameters, with the exploration policy's noise."""
        rows = request.rows
        online = self._actor.online
        own = torch.from_numpy(
            self.perturbations.perturbed(
                row_state.parameters, rows, online.cpu().numpy(), starts=request.starts
            )
        ).to(online.device)
        perturbed = torch_forward(lambda seen: self._forward(own, seen), online.device)
        actions = perturbed(request.observation)
        self.perturbations.note_actions(
            row_state.parameters, rows, perturbed=actions, greedy=outputs
        )
        self._metrics = self.perturbations.metrics(row_state.parameters)
        return self.exploration.explore(
            row_state.actions, rows, actions, starts=request.starts, clock=clock
        )

    def metrics(self, clock: Clock) -> dict[str, float]:
        """The exploration policy's, and how the rows that explored last are perturbed."""
        return super().metrics(clock) | self._metrics


class Learner(Protocol):
    """Networks and losses of an off-policy algorithm."""

    @property
    def engine(self) -> UpdateEngine[Any]:
        """Engine of the gradient steps and of their metrics."""
        ...

    @property
    def acting(self) -> AnyActingPolicy:
        """The acting policy of its networks."""
        ...

    @property
    def networks(self) -> Mapping[str, NetworkWrapper]:
        """Every network by name, for saving and describing."""
        ...

    @property
    def learning_rates(self) -> Mapping[str, float]:
        """Learning rates by the name of the engine's scalar, before the schedule."""
        ...

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        """One gradient step; the losses' metrics of each sample, `td_error` [B] among them."""
        ...


@runtime_checkable
class ValuingLearner(Learner, Protocol):
    """A learner with a critic of actions."""

    def values(self, observation: Observation, action: Array) -> FloatArray:
        """The lower critic's values [R].

        Args:
            observation: Filtered, [R, ...] each.
            action: [R, ...] in the agent's space.
        """
        ...


class ActorTerm(Stateful, Protocol):
    """A term of an actor's loss beside the critic's value of its actions.

    Its methods are called where the agent learns; an agent that only acts has none. A term with
    networks of its own takes their gradient steps in `learn`.
    """

    @property
    def name(self) -> str:
        """Name of the term among the agent's parts, and of its state in the agent's."""
        ...

    def prepared(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with what `loss` reads from its extras."""
        ...

    def loss(self, action: Tensor, batch: TransitionBatch) -> tuple[Tensor, Numbers]:
        """The term for the actor's actions [B, A] in a prepared batch, and metrics; pure."""
        ...

    def learn(self) -> None:
        """Learn, if that is due; called before gradient steps."""
        ...

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call."""
        ...
