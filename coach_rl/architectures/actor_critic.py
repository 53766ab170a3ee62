"""A policy and a value function, with torsos of their own or one they share."""

from dataclasses import field
from functools import partial

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.initial_weights import linear
from coach_rl.architectures.output_rules import OutputRule
from coach_rl.architectures.torso import AnyTorsoParameters, TorsoParameters, last_layer
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import PolicySpace, Space
from coach_rl.functional.distributions import Categorical, Distribution
from coach_rl.functional.gaussians import DiagonalGaussian
from coach_rl.functional.multi_categorical import MultiCategorical


@parameter_class
class ActorCriticParameters:
    """Network of PPO and its relatives. Defaults: 64-64 tanh, as in the PPO paper's MuJoCo runs."""

    torso: AnyTorsoParameters = field(default_factory=TorsoParameters)
    """The torso: maps observations to features."""
    critic_torso: AnyTorsoParameters | None = None
    """The same for the value, where it differs: it may see other keys; None: as `torso`."""
    shared_torso: bool = False
    """One torso for policy and value instead of one each."""
    initial_log_std: float = 0.0
    """Gaussian policies: initial log standard deviation, the same in every state."""
    policy_gain: float = 0.01
    """Gain of the policy's last layer; small: the first policy hardly depends on the state."""

    def __post_init__(self) -> None:
        require(
            self.critic_torso is None or not self.shared_torso,
            "ActorCriticParameters.critic_torso is not used where shared_torso is set",
        )

    def build(
        self,
        *,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        streams: int = 0,
    ) -> "ActorCritic":
        """The network for these spaces, with a critic more for each stream of reward.

        Raises:
            SpaceError: There is no policy for the action space.
        """
        return ActorCritic(self, observation_space, distribution_for(action_space), rng, streams)


class ActorCritic(nn.Module):
    """Distribution parameters [B, P] and values [B] of observations.

    With S further streams of reward, values are [B, 1 + S]: those of the level's reward are first.
    """

    def __init__(
        self,
        params: ActorCriticParameters,
        observation_space: spaces.Dict,
        distribution: Distribution,
        rng: torch.Generator,
        streams: int = 0,
    ) -> None:
        super().__init__()
        self.distribution = distribution
        self.output_rules: tuple[OutputRule, ...] = ()
        """Rules for the policy's outputs before they become parameters of a distribution."""
        critic_torso = params.critic_torso or params.torso
        self.actor_torso = params.torso.build(observation_space, rng)
        self.critic_torso = (
            None if params.shared_torso else critic_torso.build(observation_space, rng)
        )
        outputs = distribution.parameter_size - distribution.log_std_size

        head = partial(linear, rng=rng, gain=params.policy_gain, orthogonal=params.torso.orthogonal)
        self.policy_head = last_layer(self.actor_torso, outputs, head)
        self.log_std = (
            nn.Parameter(torch.full((distribution.log_std_size,), params.initial_log_std))
            if distribution.log_std_size
            else None
        )
        torso = self.actor_torso if self.critic_torso is None else self.critic_torso
        head = partial(linear, rng=rng, gain=1.0, orthogonal=critic_torso.orthogonal)
        self.value_head = last_layer(torso, 1 + streams, head)

    def policy(self, observation: dict[str, Tensor]) -> Tensor:
        """Parameters of the action distribution, [B, P]."""
        return self._distribution_parameters(self.actor_torso(observation), observation)

    def states_after(self, observation: dict[str, Tensor]) -> Tensor:
        """The hidden states [S, H] after observations, of a network that has some."""
        torsos = [torso for torso in (self.actor_torso, self.critic_torso) if torso is not None]
        states = [torso.advance(observation)[1] for torso in torsos]
        return torch.cat([state for state in states if state is not None], dim=1)

    def value(self, observation: dict[str, Tensor]) -> Tensor:
        """Values, [B]."""
        torso = self.actor_torso if self.critic_torso is None else self.critic_torso
        return self._value(torso(observation))

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Parameters of the action distribution [B, P] and values [B]."""
        features = self.actor_torso(observation)
        critic = features if self.critic_torso is None else self.critic_torso(observation)
        return self._distribution_parameters(features, observation), self._value(critic)

    def _distribution_parameters(self, features: Tensor, observation: dict[str, Tensor]) -> Tensor:
        outputs: Tensor = self.policy_head(features)
        for rule in self.output_rules:
            outputs = rule(outputs, observation)
        if self.log_std is None:
            return outputs
        return torch.cat([outputs, self.log_std.expand(outputs.shape[0], -1)], dim=-1)

    def _value(self, features: Tensor) -> Tensor:
        value: Tensor = self.value_head(features)
        return value.squeeze(-1)


def critics(values: Tensor) -> tuple[Tensor, ...]:
    """The values [B] of each critic, of [B] or [B, 1 + S]; the level's reward is first."""
    return (values,) if values.ndim == 1 else values.unbind(1)


def distribution_for(space: Space) -> Distribution:
    """The family of distributions a stochastic policy uses for an action space."""
    match space:
        case spaces.Box() if np.issubdtype(space.dtype, np.floating) and len(space.shape) == 1:
            return DiagonalGaussian(int(np.prod(space.shape)))
        case spaces.Discrete():
            return Categorical(int(space.n))
        case spaces.MultiDiscrete() if len(space.shape) == 1:
            return MultiCategorical(choice_sizes(space))
        case PolicySpace():
            own: Distribution = space.distribution
            return own
    shown = " ".join(str(space).split())  # which may have several lines
    raise SpaceError(
        f"no stochastic policy for the action space {shown}; allowed: Box of floats, Discrete, "
        "MultiDiscrete; MultiBinary and a Dict of these only flattened as PPO does; integers "
        "between bounds are a MultiDiscrete with `start`"
    )
