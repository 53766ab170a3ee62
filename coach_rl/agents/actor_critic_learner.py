"""The parts DDPG, TD3 and SAC share: an actor, critics, their Adams and their targets."""

from collections.abc import Sequence
from dataclasses import field
from typing import Generic

from coach_rl.agents.acting_policy import ActingPolicy, AnyActingPolicy, PerturbedPolicy
from coach_rl.agents.learner import REPAID_AFTER, LearnerContext
from coach_rl.agents.off_policy_agent import OffPolicyAgentParameters
from coach_rl.architectures.batch import Batch
from coach_rl.architectures.continuous_control import (
    ActorParameters,
    CriticParameters,
    Critics,
    DeterministicActor,
    SquashedGaussianActor,
)
from coach_rl.architectures.gradient_step import Loss, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.numpy_policy import Forward, quick_forward
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.exploration_policies import (
    ExplorationPolicyParameters,
    GaussianNoise,
    ParameterExplorationParameters,
)


@parameter_class
class ActorCriticAgentParameters(OffPolicyAgentParameters):
    """Parameters shared by off-policy agents with an actor and critics."""

    actor: ActorParameters = field(default_factory=ActorParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """Each critic's network."""
    actor_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the actor."""
    critic_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the critics."""


@parameter_class
class DeterministicAgentParameters(ActorCriticAgentParameters):
    """Parameters shared by off-policy agents with a deterministic actor."""

    exploration: ExplorationPolicyParameters = field(default_factory=GaussianNoise)
    """Exploration noise on the actions."""
    parameter_noise: ParameterExplorationParameters | None = None
    """Exploration noise on the parameters, applied before the action noise; None: no such noise."""


class ActorCriticLearner(Generic[Batch]):
    """An actor and K critics that learn from a `Batch`; an algorithm adds losses and how it acts.

    Args:
        params: The agent's parameters.
        context: What is known only now.
        actor: The policy's network.
        critics: The critics' network.
        losses: Of the critics and the actor.
        sync: How targets follow.
        actor_follows: Whether the actor has a target as well.
        more: Objectives stepped after those of critics and actor.
    """

    def __init__(
        self,
        params: ActorCriticAgentParameters,
        context: LearnerContext,
        *,
        actor: DeterministicActor | SquashedGaussianActor,
        critics: Critics,
        losses: tuple[Loss[Batch], Loss[Batch]],
        sync: TargetSync,
        actor_follows: bool,
        more: Sequence[Objective[Batch]] = (),
    ) -> None:
        self.to_box = critics.to_box
        self.actor = NetworkWrapper(actor, device=context.device, with_target=actor_follows)
        self.critics = NetworkWrapper(critics, device=context.device, with_target=True)
        self.policy = quick_forward(actor.torso, actor.head, context.device)
        critic_loss, actor_loss = losses
        objectives = (
            Objective(
                name="critic",
                network=self.critics,
                loss=critic_loss,
                optimizer=params.critic_optimizer,
            ),
            Objective(
                name="actor",
                network=self.actor,
                loss=actor_loss,
                optimizer=params.actor_optimizer,
            ),
            *more,
        )
        self.networks = {
            "actor": self.actor,
            "critic" if critics.members == 1 else "critics": self.critics,
        }
        self.learning_rates = {
            each.named("learning_rate"): each.optimizer.learning_rate for each in objectives
        }
        targets = [(self.critics, sync), *([(self.actor, sync)] if actor_follows else [])]
        self.engine = UpdateEngine(
            objectives,
            targets=targets,
            mode=params.update_mode,
            planned_updates=context.planned_updates,
            repaid_after=REPAID_AFTER,
            owner=context.owner,
            divergence=context.divergence,
            on_activity=context.on_activity,
            group=context.group,
        )


def deterministic_acting(
    params: DeterministicAgentParameters,
    context: LearnerContext,
    actor: NetworkWrapper,
    policy: Forward,
) -> AnyActingPolicy:
    """Acting by a deterministic actor, with the noise that the parameters ask for.

    Args:
        params: The agent's parameters.
        context: What is known only when the learner is built.
        actor: The actor.
        policy: The same as a function of numpy observations.
    """
    exploration = params.exploration.build(context.action_space)
    if params.parameter_noise is None:
        return ActingPolicy(policy, exploration)
    return PerturbedPolicy(
        policy,
        exploration,
        parameter_noise=params.parameter_noise,
        actor=actor,
        action_space=context.action_space,
    )
