"""Deep deterministic policy gradient (Lillicrap et al. 2016, arXiv:1509.02971).

docs/algorithms/ddpg.md lists every detail and its source.
"""

from dataclasses import field

import torch
from torch import Tensor

from coach_rl.agents.off_policy_agent import (
    NEXT_OBSERVATIONS,
    REPAID_AFTER,
    BuildContext,
    ClippedTargetParameters,
    OffPolicyAgent,
    OffPolicyAgentParameters,
    observations,
)
from coach_rl.agents.perturbed_policy import PerturbedPolicy
from coach_rl.architectures.continuous_control import (
    ActorParameters,
    CriticParameters,
    Critics,
    DeterministicActor,
    scale_to,
)
from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.exploration_policies import (
    ExplorationPolicyParameters,
    GaussianNoise,
    ParameterExplorationParameters,
)
from coach_rl.functional.temporal_difference import regression_loss, td_target
from coach_rl.memories.memory import Batch


@parameter_class
class DDPGAlgorithmParameters(ClippedTargetParameters):
    """DDPG's settings. Defaults: those of Fujimoto et al. 2018 and Tianshou's MuJoCo benchmark."""

    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """How both targets follow."""
    action_penalty: float = 0.0
    """Added to the actor's loss: this times the mean square of its actions as parts of the box."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.action_penalty >= 0, f"action_penalty must be 0 or more, got {self.action_penalty}"
        )


@parameter_class
class DDPGAgentParameters(OffPolicyAgentParameters):
    """A DDPG agent."""

    algorithm: DDPGAlgorithmParameters = field(default_factory=DDPGAlgorithmParameters)
    """How it learns."""
    exploration: ExplorationPolicyParameters = field(default_factory=GaussianNoise)
    """How it explores with its actions."""
    parameter_noise: ParameterExplorationParameters | None = None
    """How it explores with its parameters, before the actions' noise; None: not at all."""
    actor: ActorParameters = field(default_factory=ActorParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """The critic's network."""
    actor_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the actor."""
    critic_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the critic."""

    def made(self, context: BuildContext) -> "DDPGAgent":
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        scale_to(self.agent_space(context.spaces))  # before its exploration policy complains
        return DDPGAgent(self, context)


class DDPGAgent(OffPolicyAgent):
    """An actor that climbs the critic's hill; a critic that learns from a replay memory."""

    def __init__(self, params: DDPGAgentParameters, context: BuildContext) -> None:
        super().__init__(
            params,
            context,
            exploration=params.exploration,
            discount=params.algorithm.discount,
        )
        self._algorithm, self._params = params.algorithm, params
        # A target beyond a squashed value's bounds would drive it to where its gradient ends.
        self._clip_targets = params.algorithm.clip_targets or params.critic.bounds
        spaces = self.observation_space, self.action_space
        actor = DeterministicActor(params.actor, *spaces, self.weights_rng, self.normaliser)
        critic = Critics(params.critic, *spaces, self.weights_rng, self.normaliser)
        self._to_box = critic.to_box
        self.actor = NetworkWrapper(actor, device=self.device, with_target=True)
        self.critic = NetworkWrapper(critic, device=self.device, with_target=True)
        self.policy = self.numpy_policy(actor.torso, actor.head)
        if params.parameter_noise is not None:
            self.perturbed = PerturbedPolicy(params.parameter_noise, self.actor, self.action_space)
        sync = params.algorithm.target_sync
        self.engine = UpdateEngine(
            (
                Objective(
                    name="critic",
                    network=self.critic,
                    loss=self._critic_loss,
                    optimizer=params.critic_optimizer,
                ),
                Objective(
                    name="actor",
                    network=self.actor,
                    loss=self._actor_loss,
                    optimizer=params.actor_optimizer,
                ),
            ),
            targets=((self.critic, sync), (self.actor, sync)),
            mode=params.update_mode,
            planned_updates=self.planned_updates,
            repaid_after=REPAID_AFTER,
            owner=context.place.owner(params.name),
        )

    @property
    def networks(self) -> dict[str, NetworkWrapper]:
        """Actor and critic."""
        return {"actor": self.actor, "critic": self.critic}

    @property
    def learning_rates(self) -> dict[str, float]:
        """Of actor and critic."""
        return {
            "actor_learning_rate": self._params.actor_optimizer.learning_rate,
            "critic_learning_rate": self._params.critic_optimizer.learning_rate,
        }

    def update(self, batch: Batch) -> Batch:
        """One gradient step of the critic, one of the actor, and the targets follow."""
        return self.engine.step(batch)

    def _critic_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Squared distance from r + gamma Q'(s', mu'(s')), section 3 of the paper."""
        algorithm = self._algorithm
        after = observations(batch, NEXT_OBSERVATIONS)
        with torch.no_grad():
            next_action = self.actor.call(self.actor.target, after)
            next_value = self.critic.call(self.critic.target, after, next_action)[0]
            target = td_target(
                batch["/rewards"], batch["/discounts"], next_value, self._clip_targets
            )
        value = self.critic.call(flat, observations(batch), batch["/actions"])  # [1, B]
        error = value - target
        loss = regression_loss(error, batch["/weights"], algorithm.huber)
        return loss, {
            "critic_loss": loss,
            "q_value": value.mean(),
            "q_lowest": value.amin(),
            "q_highest": value.amax(),
            "td_error": error[0],
        }

    def _actor_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Minus the critic's value of the actor's actions, equation 6 of the paper."""
        before = observations(batch)
        action = self.actor.call(flat, before)
        loss = -self.critic.call(self.critic.online, before, action).mean()
        if self._algorithm.action_penalty:
            share = self._to_box.inverse(action)
            loss = loss + self._algorithm.action_penalty * (share**2).mean()
        return loss, {"actor_loss": loss}
