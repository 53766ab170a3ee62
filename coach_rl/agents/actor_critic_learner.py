"""The parts DDPG, TD3 and SAC share: an actor, critics, their Adams and their targets."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Generic, Protocol, Self

from torch import Tensor

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.learner import ActingPolicy, ActorTerm, AnyActingPolicy, PerturbedPolicy
from coach_rl.agents.off_policy_agent import (
    ClippedTargetParameters,
    OffPolicyAgent,
    OffPolicyAgentParameters,
)
from coach_rl.architectures.continuous_control import (
    Actor,
    ActorParameters,
    CriticEnsemble,
    CriticParameters,
    Critics,
    DeterministicActor,
    lend,
)
from coach_rl.architectures.gradient_step import AdamParameters, Batch, Numbers, Objective
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import quick_forward, torch_forward
from coach_rl.architectures.optimizers import OptimizerParameters, TargetSync
from coach_rl.architectures.recurrent_forward import recurrent_forward
from coach_rl.core.agents import AgentContext, RowState
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.exploration_policies import (
    ExplorationPolicyParameters,
    GaussianNoise,
    ParameterExplorationParameters,
)
from coach_rl.memories.transition_batch import TransitionBatch

_ACTION = "/action"


class ActorTermParameters(Protocol):
    """A frozen description of a term of an actor's loss."""

    def build(self, agent: FilteredAgent[RowState], context: AgentContext) -> ActorTerm:
        """The term of an agent; ConfigurationErrors name the level that does not fit."""
        ...


@parameter_class
class ActorCriticAgentParameters(OffPolicyAgentParameters):
    """Parameters shared by off-policy agents with an actor and critics."""

    actor: ActorParameters = field(default_factory=ActorParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """Each critic's network."""
    actor_optimizer: OptimizerParameters = field(default_factory=AdamParameters)
    """Optimiser of the actor."""
    critic_optimizer: OptimizerParameters = field(default_factory=AdamParameters)
    """Optimiser of the critics."""
    actor_terms: tuple[ActorTermParameters, ...] = ()
    """Terms of the actor's loss beside the critic's value of its actions."""

    def for_acting(self) -> Self:
        """The same for a process in which the agent only acts, without terms of the loss."""
        return replace(super().for_acting(), actor_terms=())

    def build_actor_terms(
        self, agent: FilteredAgent[RowState], context: AgentContext
    ) -> dict[str, ActorTerm]:
        found: dict[str, ActorTerm] = {}
        for each in self.actor_terms:
            term = each.build(agent, context)
            require(
                term.name not in found,
                f"two actor_terms of agent '{self.name}' have one name, got "
                f"{[*found, term.name]}; give each its own",
            )
            found[term.name] = term
        return found


@parameter_class
class DeterministicAlgorithmParameters(ClippedTargetParameters):
    """Settings shared by algorithms with a deterministic actor."""

    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """Update rule of all targets; TD3 counts steps that move the actor."""


@parameter_class
class DeterministicAgentParameters(ActorCriticAgentParameters):
    """Parameters shared by off-policy agents with a deterministic actor."""

    exploration: ExplorationPolicyParameters = field(default_factory=GaussianNoise)
    """Exploration noise on the actions."""
    parameter_noise: ParameterExplorationParameters | None = None
    """Exploration noise on the parameters, applied before the action noise; None: no such noise."""


class ActorCriticLearner(ABC, Generic[Batch]):
    """An actor and K critics that learn from a `Batch`; an algorithm adds losses and how it acts.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
        actor: The policy's network.
        critics: The critics' network.
        sync: How targets follow.
        actor_follows: Whether the actor has a target as well.
        more: Objectives stepped after those of critics and actor.
    """

    def __init__(
        self,
        params: ActorCriticAgentParameters,
        agent: OffPolicyAgent,
        *,
        actor: Actor,
        critics: CriticEnsemble,
        sync: TargetSync,
        actor_follows: bool,
        more: Sequence[Objective[Batch]] = (),
    ) -> None:
        self._terms = tuple(agent.actor_terms.values())
        for name in agent.actor_terms:
            require_memoryless((actor, critics), f"agent '{agent.name}' with its {name}")
        lend(actor, critics)
        self.actor = NetworkWrapper(actor, device=agent.device, with_target=actor_follows)
        self.critics = NetworkWrapper(critics, device=agent.device, with_target=True)
        self.policy = recurrent_forward(
            actor.torso, actor.head, agent.device, critics.embedder
        ) or quick_forward(actor.torso, actor.head, agent.device)
        objectives = (
            Objective(
                name="critic",
                network=self.critics,
                loss=self.critic_loss,
                optimizer=params.critic_optimizer,
            ),
            Objective(
                name="actor",
                network=self.actor,
                loss=self.actor_loss,
                optimizer=params.actor_optimizer,
            ),
            *more,
        )
        self.networks = {
            "actor": self.actor,
            "critic" if critics.members == 1 else "critics": self.critics,
        }
        self.learning_rates: dict[str, float] = {}
        for each in objectives:
            self.learning_rates[each.named("learning_rate")] = each.optimizer.learning_rate
        targets = [(self.critics, sync), *([(self.actor, sync)] if actor_follows else [])]
        self.engine = agent.new_engine(objectives, targets=targets)

    @abstractmethod
    def critic_loss(self, flat: Tensor, batch: Batch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The loss of the critics with parameters `flat`, and its metrics."""

    @abstractmethod
    def actor_loss(self, flat: Tensor, batch: Batch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The loss of the actor with parameters `flat`, and its metrics."""

    def values(self, observation: Observation, action: Array) -> FloatArray:
        """The lower critic's values [R] of actions [R, A] in filtered observations."""

        def lower(seen: dict[str, Tensor]) -> Tensor:
            action = seen.pop(_ACTION)
            values: Tensor = self.critics.call(self.critics.online, seen, action)
            return values.amin(dim=0)

        forward = torch_forward(lower, self.critics.online.device)
        return forward({**observation, _ACTION: action})

    def prepared(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with what `with_terms` reads from its extras, for steps of the actor."""
        for term in self._terms:
            batch = term.prepared(batch)
        return batch

    def with_terms(
        self, loss: Tensor, action: Tensor, batch: TransitionBatch
    ) -> tuple[Tensor, Numbers]:
        """The loss of the actor's actions [B, A] with the further terms, and its metrics."""
        metrics = {"actor_loss": loss}
        for term in self._terms:
            more, shown = term.loss(action, batch)
            loss = loss + more
            metrics |= shown
        return loss, metrics


class DeterministicLearner(ActorCriticLearner[Batch]):
    """A deterministic actor and K critics, all of which have targets.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
        algorithm: The settings of the algorithm.
        members: K.
    """

    def __init__(
        self,
        params: DeterministicAgentParameters,
        agent: OffPolicyAgent,
        algorithm: DeterministicAlgorithmParameters,
        *,
        members: int,
    ) -> None:
        # A target beyond a squashed value's bounds would drive it to where its gradient ends.
        self.clip_targets = algorithm.clip_targets or params.critic.bounds
        actor = DeterministicActor(params.actor, *agent.network_arguments)
        critics = Critics(params.critic, *agent.network_arguments, members=members)
        self.to_box = critics.to_box
        super().__init__(
            params,
            agent,
            actor=actor,
            critics=critics,
            sync=algorithm.target_sync,
            actor_follows=True,
        )
        exploration = params.exploration.build(agent.action_space)
        self.acting: AnyActingPolicy = ActingPolicy(self.policy, exploration)
        if params.parameter_noise is not None:
            owner = f"agent '{params.name}' with its parameter_noise"
            require_memoryless([self.actor.module], owner)
            self.acting = PerturbedPolicy(
                self.policy,
                exploration,
                parameter_noise=params.parameter_noise,
                actor=self.actor,
                action_space=agent.action_space,
            )
