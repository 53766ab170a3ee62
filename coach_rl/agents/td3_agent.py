"""Twin delayed deep deterministic policy gradient (Fujimoto et al. 2018, arXiv:1802.09477).

docs/algorithms/td3.md lists every detail and its source.
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
from coach_rl.core.spaces import ActionUnit, check_action_unit
from coach_rl.exploration_policies import (
    ExplorationPolicyParameters,
    GaussianNoise,
    ParameterExplorationParameters,
)
from coach_rl.functional.temporal_difference import regression_loss, td_target
from coach_rl.memories.memory import Batch


@parameter_class
class TD3AlgorithmParameters(ClippedTargetParameters):
    """TD3's settings. Defaults: the paper's, section 6.1."""

    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """How all targets follow; counted in steps that move the actor."""
    policy_delay: int = 2
    """Critic steps per step of the actor and the targets."""
    target_noise: float = 0.2
    """Deviation of the noise on the target's actions, in the `target_noise_unit`."""
    target_noise_clip: float = 0.5
    """Largest size of that noise, in the `target_noise_unit`."""
    target_noise_unit: ActionUnit = "half_range"
    """half_range: halves of each element's range. raw: the box's own units, the same size for all
    elements (HIRO's code)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(self.policy_delay >= 1, f"policy_delay must be 1 or more, got {self.policy_delay}")
        for name in ("target_noise", "target_noise_clip"):
            value = getattr(self, name)
            require(value >= 0, f"{name} must be 0 or more, got {value}")
        check_action_unit(self.target_noise_unit, "target_noise_unit")


@parameter_class
class TD3AgentParameters(OffPolicyAgentParameters):
    """A TD3 agent."""

    algorithm: TD3AlgorithmParameters = field(default_factory=TD3AlgorithmParameters)
    """How it learns."""
    exploration: ExplorationPolicyParameters = field(default_factory=GaussianNoise)
    """How it explores with its actions."""
    parameter_noise: ParameterExplorationParameters | None = None
    """How it explores with its parameters, before the actions' noise; None: not at all."""
    actor: ActorParameters = field(default_factory=ActorParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """Each of the two critics' network."""
    actor_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the actor."""
    critic_optimizer: AdamParameters = field(default_factory=AdamParameters)
    """Adam of the critics."""

    def made(self, context: BuildContext) -> "TD3Agent":
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        scale_to(self.agent_space(context.spaces))  # before its exploration policy complains
        return TD3Agent(self, context)


class TD3Agent(OffPolicyAgent):
    """Two critics of which the lower is believed, and an actor that waits for them."""

    def __init__(self, params: TD3AgentParameters, context: BuildContext) -> None:
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
        critics = Critics(params.critic, *spaces, self.weights_rng, self.normaliser, members=2)
        self._to_box = critics.to_box
        self.actor = NetworkWrapper(actor, device=self.device, with_target=True)
        self.critics = NetworkWrapper(critics, device=self.device, with_target=True)
        self.policy = self.numpy_policy(actor.torso, actor.head)
        if params.parameter_noise is not None:
            self.perturbed = PerturbedPolicy(params.parameter_noise, self.actor, self.action_space)
        sync = params.algorithm.target_sync
        self.engine = UpdateEngine(
            (
                Objective(
                    name="critic",
                    network=self.critics,
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
            targets=((self.critics, sync), (self.actor, sync)),
            mode=params.update_mode,
            planned_updates=self.planned_updates,
            repaid_after=REPAID_AFTER,
            owner=context.place.owner(params.name),
        )

    @property
    def networks(self) -> dict[str, NetworkWrapper]:
        """Actor and critics."""
        return {"actor": self.actor, "critics": self.critics}

    @property
    def learning_rates(self) -> dict[str, float]:
        """Of actor and critics."""
        return {
            "actor_learning_rate": self._params.actor_optimizer.learning_rate,
            "critic_learning_rate": self._params.critic_optimizer.learning_rate,
        }

    def update(self, batch: Batch) -> Batch:
        """A gradient step of the critics; every `policy_delay` steps the actor and the targets."""
        batch = {**batch, "/noise": self.noise(*batch["/actions"].shape)}
        delayed = (self.training_steps + 1) % self._algorithm.policy_delay != 0
        return self.engine.step(batch, only=("critic",) if delayed else None)

    def _critic_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Both critics towards the lower one's target at a smoothed action, algorithm 1."""
        algorithm = self._algorithm
        after = observations(batch, NEXT_OBSERVATIONS)
        with torch.no_grad():
            limit = algorithm.target_noise_clip
            noise = (batch["/noise"] * algorithm.target_noise).clamp(-limit, limit)
            if algorithm.target_noise_unit == "raw":
                noise = noise / self._to_box.half_range
            share = self._to_box.inverse(self.actor.call(self.actor.target, after))
            next_action = self._to_box((share + noise).clamp(-1, 1))
            next_values = self.critics.call(self.critics.target, after, next_action)
            target = td_target(
                batch["/rewards"],
                batch["/discounts"],
                next_values.amin(dim=0),
                self._clip_targets,
            )
        values = self.critics.call(flat, observations(batch), batch["/actions"])  # [2, B]
        error = values - target
        loss = regression_loss(error, batch["/weights"], algorithm.huber)
        return loss, {
            "critic_loss": loss,
            "q_value": values.mean(),
            "q_lowest": values.amin(),
            "q_highest": values.amax(),
            "td_error": error.abs().mean(dim=0),
        }

    def _actor_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Minus the first critic's value of the actor's actions."""
        before = observations(batch)
        action = self.actor.call(flat, before)
        loss = -self.critics.call(self.critics.online, before, action, members=1).mean()
        return loss, {"actor_loss": loss}
