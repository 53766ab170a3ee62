"""Networks for choices: each action's value, as a mean or as a distribution."""

from dataclasses import field
from functools import partial
from itertools import pairwise
from typing import Protocol

import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.initial_weights import HIDDEN_GAIN, linear
from coach_rl.architectures.layers import Activate
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.other_torso import OtherTorso
from coach_rl.architectures.torso import (
    AnyTorsoParameters,
    Torso,
    TorsoParameters,
    last_layer,
    relu_torso,
)
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.functional.temporal_difference import dueling_values, regression_loss, td_target


class ReturnHead(Protocol):
    """The network's output for an action's return: K numbers, and how they are learned.

    target = head.target(next_numbers, reward, discount, clip)
    loss, error = head.loss(numbers, target, weight, huber)
    """

    @property
    def size(self) -> int:
        """K."""
        ...

    def mean(self, numbers: Tensor) -> Tensor:
        """Expected returns [...] of numbers [..., K]."""
        ...

    def target(
        self, numbers: Tensor, reward: Tensor, discount: Tensor, clip: tuple[float, float] | None
    ) -> Tensor:
        """Return the target of an action's output, [B, K].

        Args:
            numbers: Of the best action of the next observation, [B, K].
            reward: [B].
            discount: [B]; 0 where the episode terminated.
            clip: Bounds a return is kept within; None leaves it alone.
        """
        ...

    def loss(
        self, numbers: Tensor, target: Tensor, weight: Tensor, huber: float | None
    ) -> tuple[Tensor, Tensor]:
        """The batch's loss, and how wrong each sample was, [B].

        Args:
            numbers: Of the action that was taken, [B, K].
            target: [B, K].
            weight: Of each sample, [B].
            huber: Errors beyond this count linearly.
        """
        ...


@parameter_class
class MeanHead:
    """The expected return alone (Watkins 1989; Mnih et al. 2015)."""

    @property
    def size(self) -> int:
        """One number."""
        return 1

    def mean(self, numbers: Tensor) -> Tensor:
        """The number itself."""
        return numbers.squeeze(-1)

    def target(
        self, numbers: Tensor, reward: Tensor, discount: Tensor, clip: tuple[float, float] | None
    ) -> Tensor:
        """Reward plus discounted value."""
        return td_target(reward[:, None], discount[:, None], numbers, clip)

    def loss(
        self, numbers: Tensor, target: Tensor, weight: Tensor, huber: float | None
    ) -> tuple[Tensor, Tensor]:
        """Squared or Huber; the error is value minus target."""
        error = self.mean(numbers - target)
        return regression_loss(error[None], weight, huber), error


@parameter_class
class QNetworkParameters:
    """A network of action values. Defaults: that of Mnih et al. 2015 where there are images."""

    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(512))
    """The torso: maps observations to features."""
    dueling: bool = False
    """A stream for the state's value and one for advantages (Wang et al. 2016)."""
    streams: tuple[Positive[int], ...] = ()
    """Layers of each stream behind the torso; of the only one where there is no duel."""
    head: ReturnHead = field(default_factory=MeanHead)
    """The output for an action's return, a `ReturnHead`: its mean, or a distribution."""

    def __post_init__(self) -> None:
        if not isinstance(self.torso, TorsoParameters):
            require(
                not self.streams,
                "QNetworkParameters.streams are layers behind our torso; put them into your module",
            )
            require(
                self.torso.last_layer or not self.dueling,
                "QNetworkParameters.dueling needs last_layer: both streams begin at the features",
            )


class QNetwork(nn.Module):
    """Return the numbers that describe each action's return, [B, M, K].

    M is the number of actions; of several choices, whose actions stand side by side, their sum.
    """

    def __init__(
        self,
        params: QNetworkParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.returns = params.head
        self.sizes = discrete_choices(action_space)
        self.torso = params.torso.build(observation_space, rng, normaliser)
        size = params.head.size
        self.actions = _stream(params, self.torso, sum(self.sizes) * size, rng)
        self.state = _stream(params, self.torso, size, rng) if params.dueling else None

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        features = self.torso(observation)
        state = None if self.state is None else self.state(features)
        return self.joined(self.actions(features), state)

    def means(self, features: Tensor) -> Tensor:
        """Expected returns [B, M] from the torso's features [B, F]."""
        state = None if self.state is None else self.state(features)
        return self.returns.mean(self.joined(self.actions(features), state))

    def joined(self, actions: Tensor, state: Tensor | None) -> Tensor:
        """Join the streams' outputs, [B, M * K] and [B, K], to numbers [B, M, K]."""
        each = actions.view(len(actions), -1, self.returns.size)
        if state is None:
            return each
        value = state.unsqueeze(1)
        choices = torch.split_with_sizes(each, list(self.sizes), dim=1)
        joined = [dueling_values(value, advantages) for advantages in choices]
        return joined[0] if len(joined) == 1 else torch.cat(joined, dim=1)


def discrete_choices(space: Space) -> tuple[int, ...]:
    """The number of actions of each choice; SpaceError unless Discrete or a flat MultiDiscrete."""
    if isinstance(space, spaces.Discrete | spaces.MultiDiscrete) and len(space.shape or ()) < 2:
        return choice_sizes(space)
    shown = " ".join(str(space).split())  # which may have several lines
    raise SpaceError(
        f"this agent acts in a Discrete or a flat MultiDiscrete space, got {shown}; use DDPG, "
        "TD3, SAC or PPO in a flat Box of floats and PPO in others, or map the space with an "
        "OutputFilter"
    )


def _stream(
    params: QNetworkParameters, torso: Torso | OtherTorso, outputs: int, rng: torch.Generator
) -> nn.Sequential:
    make = partial(linear, rng=rng, gain=1.0, orthogonal=False)
    if not isinstance(params.torso, TorsoParameters):
        return nn.Sequential(last_layer(torso, outputs, make))
    *hidden, last = pairwise((torso.output_size, *params.streams, outputs))
    layers: list[nn.Module] = []
    for sizes in hidden:
        layer = linear(*sizes, rng=rng, gain=HIDDEN_GAIN, orthogonal=params.torso.orthogonal)
        layers += [layer, Activate(params.torso.activation)]
    return nn.Sequential(*layers, make(*last))
