"""Soft actor-critic with a learned temperature (Haarnoja et al. 2018, arXiv:1812.05905).

docs/algorithms/sac.md lists every detail and its source.
"""

import math
from dataclasses import field

import torch
from torch import Tensor, nn

from coach_rl.agents.off_policy_agent import (
    NEXT_OBSERVATIONS,
    REPAID_AFTER,
    BuildContext,
    OffPolicyAgent,
    OffPolicyAgentParameters,
    ValueLearningParameters,
    observations,
)
from coach_rl.architectures.continuous_control import (
    ActorParameters,
    CriticParameters,
    Critics,
    SquashedGaussianActor,
    scale_to,
)
from coach_rl.architectures.gradient_step import Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import AdamParameters, TargetSync
from coach_rl.architectures.update_engine import UpdateEngine
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.core.seeding import integer_seed
from coach_rl.exploration_policies.squashed_gaussian_policy import SquashedGaussianSampling
from coach_rl.functional.distributions import squashed_sample
from coach_rl.functional.temporal_difference import regression_loss, td_target
from coach_rl.memories.memory import Batch


@parameter_class
class SACAlgorithmParameters(ValueLearningParameters):
    """SAC's settings. Defaults: the paper's, table 1."""

    target_sync: TargetSync = field(default_factory=lambda: TargetSync(rate=0.005))
    """How the critics' targets follow."""
    initial_temperature: float = 1.0
    """Alpha, what a nat of entropy is worth, at the start."""
    learn_temperature: bool = True
    """Adapt alpha so that the policy keeps the target entropy (section 5); else it stays."""
    target_entropy: float | None = None
    """In nats, of actions as parts of the box; None: minus the number of action elements."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.initial_temperature > 0,
            f"initial_temperature must be more than 0, got {self.initial_temperature}",
        )


def _slow_adam() -> AdamParameters:
    return AdamParameters(learning_rate=3e-4)


@parameter_class
class SACAgentParameters(OffPolicyAgentParameters):
    """A SAC agent."""

    algorithm: SACAlgorithmParameters = field(default_factory=SACAlgorithmParameters)
    """How it learns."""
    actor: ActorParameters = field(default_factory=ActorParameters)
    """The policy's network."""
    critic: CriticParameters = field(default_factory=CriticParameters)
    """Each of the two critics' network."""
    actor_optimizer: AdamParameters = field(default_factory=_slow_adam)
    """Adam of the actor."""
    critic_optimizer: AdamParameters = field(default_factory=_slow_adam)
    """Adam of the critics."""
    temperature_optimizer: AdamParameters = field(default_factory=_slow_adam)
    """Adam of the temperature."""
    greedy_candidates: int = 0
    """0: without exploration it takes the policy's mean, as in the paper. K: it takes what the
    lower critic values most of that mean, K draws from the policy and K from the whole box, the
    same draws in every state. The mean of a policy that hesitates between two good actions may
    be a bad one; choosing by the critic is from BCQ (Fujimoto et al. 2019, arXiv:1812.02900)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.greedy_candidates >= 0,
            f"greedy_candidates must be 0 or more, got {self.greedy_candidates}",
        )

    def made(self, context: BuildContext) -> "SACAgent":
        """The agent; SpaceError unless it acts in a flat, bounded Box."""
        scale_to(self.agent_space(context.spaces))  # before its exploration policy complains
        return SACAgent(self, context)


class Temperature(nn.Module):
    """Alpha, kept as its logarithm."""

    def __init__(self, initial: float) -> None:
        super().__init__()
        self.log_alpha = nn.Parameter(torch.tensor([math.log(initial)]))

    def forward(self) -> Tensor:
        """Log alpha, [1]."""
        return self.log_alpha


class SACAgent(OffPolicyAgent):
    """A squashed Gaussian policy that is paid for its entropy, and two critics."""

    def __init__(self, params: SACAgentParameters, context: BuildContext) -> None:
        super().__init__(
            params,
            context,
            exploration=SquashedGaussianSampling(log_std_bounds=params.actor.log_std_bounds),
            discount=params.algorithm.discount,
        )
        self._algorithm, self._params = params.algorithm, params
        spaces = self.observation_space, self.action_space
        actor = SquashedGaussianActor(params.actor, *spaces, self.weights_rng, self.normaliser)
        critics = Critics(params.critic, *spaces, self.weights_rng, self.normaliser, members=2)
        temperature = Temperature(params.algorithm.initial_temperature)
        self._to_box = critics.to_box
        size = len(critics.to_box.low)
        entropy = params.algorithm.target_entropy
        self._target_entropy = -float(size) if entropy is None else entropy
        self.actor = NetworkWrapper(actor, device=self.device)
        self.critics = NetworkWrapper(critics, device=self.device, with_target=True)
        self.temperature = NetworkWrapper(temperature, device=self.device)
        self.policy = self.numpy_policy(actor.torso, actor.head)
        rng = torch.Generator().manual_seed(
            integer_seed(context.seed, params.name, "greedy candidates")
        )
        shape = (params.greedy_candidates, size)
        self._draws = torch.randn(shape, generator=rng).to(self.device)
        self._anywhere = (2 * torch.rand(shape, generator=rng) - 1).to(self.device)
        objectives = [
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
        ]
        if params.algorithm.learn_temperature:
            objectives.append(
                Objective(
                    name="temperature",
                    network=self.temperature,
                    loss=self._temperature_loss,
                    optimizer=params.temperature_optimizer,
                )
            )
        self.engine = UpdateEngine(
            objectives,
            targets=((self.critics, params.algorithm.target_sync),),
            mode=params.update_mode,
            planned_updates=self.planned_updates,
            repaid_after=REPAID_AFTER,
            owner=context.place.owner(params.name),
        )

    @property
    def networks(self) -> dict[str, NetworkWrapper]:
        """Actor, critics and temperature."""
        return {"actor": self.actor, "critics": self.critics, "temperature": self.temperature}

    @property
    def learning_rates(self) -> dict[str, float]:
        """Of actor, critics and temperature."""
        rates = {
            "actor_learning_rate": self._params.actor_optimizer.learning_rate,
            "critic_learning_rate": self._params.critic_optimizer.learning_rate,
        }
        if self._algorithm.learn_temperature:
            rates["temperature_learning_rate"] = self._params.temperature_optimizer.learning_rate
        return rates

    def update(self, batch: Batch) -> Batch:
        """A gradient step of the critics, the actor and the temperature; the targets follow."""
        shape = batch["/actions"].shape
        noise = {"/noise": self.noise(*shape), "/next_noise": self.noise(*shape)}
        return self.engine.step({**batch, **noise})

    def greedy(self, observation: Observation, values: FloatArray) -> Array:
        """The squashed means [R, A], or what the lower critic prefers; see `greedy_candidates`."""
        if not len(self._draws):
            return self.exploration.greedy(values)
        with torch.inference_mode():
            mean, log_std = torch.from_numpy(values).to(self.device).unsqueeze(1).chunk(2, dim=-1)
            spread = log_std.clamp(*self._params.actor.log_std_bounds).exp()
            drawn = torch.tanh(mean + spread * self._draws)  # [R, K, A]
            anywhere = self._anywhere.expand(len(values), -1, -1)
            choices = self._to_box(torch.cat([torch.tanh(mean), drawn, anywhere], dim=1))
            seen = {
                key: torch.from_numpy(array).to(self.device).repeat_interleave(choices.shape[1], 0)
                for key, array in observation.items()
            }
            worth = self.critics.call(self.critics.online, seen, choices.flatten(0, 1)).amin(dim=0)
            best = worth.view(choices.shape[:2]).argmax(dim=1)
            chosen: Array = choices[torch.arange(len(best)), best].cpu().numpy()
        return chosen

    def _critic_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Both critics towards the lower one's soft value, equations 3 and 5."""
        after = observations(batch, NEXT_OBSERVATIONS)
        with torch.no_grad():
            alpha = self.temperature.online.exp()
            mean, log_std = self.actor.call(self.actor.online, after)
            next_share, next_log_prob = squashed_sample(mean, log_std, batch["/next_noise"])
            next_values = self.critics.call(self.critics.target, after, self._to_box(next_share))
            soft_value = next_values.amin(dim=0) - alpha * next_log_prob
            target = td_target(batch["/rewards"], batch["/discounts"], soft_value)
        values = self.critics.call(flat, observations(batch), batch["/actions"])  # [2, B]
        error = values - target
        loss = regression_loss(error, batch["/weights"], self._algorithm.huber)
        return loss, {
            "critic_loss": loss,
            "q_value": values.mean(),
            "q_lowest": values.amin(),
            "q_highest": values.amax(),
            "td_error": error.abs().mean(dim=0),
        }

    def _actor_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """Alpha log pi - min Q at reparametrised actions, equation 9."""
        before = observations(batch)
        mean, log_std = self.actor.call(flat, before)
        share, log_prob = squashed_sample(mean, log_std, batch["/noise"])
        values = self.critics.call(self.critics.online, before, self._to_box(share))
        alpha = self.temperature.online.exp()
        loss = (alpha * log_prob - values.amin(dim=0)).mean()
        return loss, {"actor_loss": loss, "entropy": -log_prob.mean(), "log_prob": log_prob}

    def _temperature_loss(self, flat: Tensor, batch: Batch, scalars: Batch) -> tuple[Tensor, Batch]:
        """-log alpha (log pi + target entropy): equation 18, whose alpha is taken in logarithms."""
        excess = (scalars["log_prob"] + self._target_entropy).mean()
        log_alpha = self.temperature.call(flat)[0]
        return -log_alpha * excess, {"temperature": log_alpha.exp()}
