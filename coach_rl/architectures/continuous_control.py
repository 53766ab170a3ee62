"""Actors and critics: of actions in a Box, deterministic and squashed Gaussian, and Q(s, a)."""

from abc import ABC, abstractmethod
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.ensembles import EnsembleLinear, EnsembleNorm
from coach_rl.architectures.initial_weights import HIDDEN_GAIN, linear
from coach_rl.architectures.layers import ACTIVATIONS, Activate, ScaleToBox
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.architectures.torso import (
    AnyTorsoParameters,
    ObservationEmbedder,
    TorsoParameters,
    last_layer,
    relu_torso,
)
from coach_rl.core.box_ranges import ActionUnit, require_finite_width
from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, RisingPair
from coach_rl.core.spaces import Space

NEAR_THE_TOP = 4.0
"""Squashed values start at 98 % of the way from their lower to their upper bound: hopeful, as all
good values are near it under rewards of -1 and 0."""


@parameter_class
class ActorParameters:
    """A policy's network. Defaults: 256-256 relu with PyTorch's initial weights."""

    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(256, 256))
    """The torso: maps observations to features."""
    final_bound: NonNegative[float] | None = None
    """The last layer's initial weights lie within +- this (DDPG paper: 3e-3); None: as usual."""
    log_std_bounds: RisingPair = (-20.0, 2.0)
    """Stochastic actors: log standard deviations are kept within (Haarnoja et al. 2018)."""


@parameter_class
class CriticParameters:
    """A critic's network: the embedded observation and the action through the middleware.

    The action joins where the middleware begins, unless `action_layers` is set;
    `torso.embedder` layers come before it, so embedder (400,) with middleware (300,) is the network
    of the DDPG paper.
    """

    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(256, 256))
    """Embedder and middleware; or a module of your own, one for each critic, that gets the actions
    too."""
    action_layers: NonEmpty[tuple[int, ...]] = (0,)
    """Layers of the middleware, counted from 0, whose input the action is part of; the one behind
    the last of the middleware is the output layer. HIRO's code: (0, 1)."""
    action_unit: ActionUnit = "half_range"
    """half_range: the network sees actions normalised to [-1, 1]. raw: in the
    Box's own units (HIRO's code)."""
    final_bound: NonNegative[float] | None = None
    """The last layer's initial weights lie within +- this (DDPG paper: 3e-3); None: as usual."""
    bounds: RisingPair | None = None
    """Values are squashed into these bounds, the upper of which they start near (HAC's code); None:
    they are not bounded."""

    def __post_init__(self) -> None:
        last = len(self.torso.middleware) if isinstance(self.torso, TorsoParameters) else 0
        require(
            set(self.action_layers) <= set(range(last + 1)),
            f"CriticParameters.action_layers must name layers from 0 to {last}, "
            f"got {self.action_layers}",
        )


class Actor(nn.Module):
    """Outputs [B, P] of a policy: a torso, and a last layer behind it."""

    def __init__(
        self,
        params: ActorParameters,
        observation_space: spaces.Dict,
        outputs: int,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.torso = params.torso.build(observation_space, rng, normaliser)
        make = partial(last_linear, bound=params.final_bound, rng=rng)
        self.head = nn.Sequential(last_layer(self.torso, outputs, make))

    def forward(self, observation: dict[str, Tensor]) -> Any:
        return self.head(self.torso(observation))


class DeterministicActor(Actor):
    """Actions [B, A] in the Box."""

    def __init__(
        self,
        params: ActorParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        to_box = scale_to(action_space)
        super().__init__(params, observation_space, len(to_box.low), rng, normaliser)
        self.head.extend([Activate("tanh"), to_box])


class SquashedGaussianActor(Actor):
    """Means and log standard deviations [B, 2A] of a normal that tanh squashes into (-1, 1)."""

    def __init__(
        self,
        params: ActorParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        to_box = scale_to(action_space)
        super().__init__(params, observation_space, 2 * len(to_box.low), rng, normaliser)
        self.to_box = to_box
        self.log_std_bounds = params.log_std_bounds

    def forward(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Means and log standard deviations before squashing, [B, A] each."""
        mean, log_std = super().forward(observation).chunk(2, dim=-1)
        return mean, log_std.clamp(*self.log_std_bounds)


class CriticEnsemble(nn.Module):
    """K critics side by side.

    Args:
        params: Each critic's network.
        observation_space: What they see.
        action_space: Flat Box of the actions that they see too; None: they see none.
        outputs: P, the numbers that each has.
        rng: Draws initial weights.
        normaliser: Normalises observations first; None leaves them as they are.
        members: K.
    """

    def __init__(
        self,
        params: CriticParameters,
        observation_space: spaces.Dict,
        action_space: Space | None,
        outputs: int,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None,
        *,
        members: int,
    ) -> None:
        super().__init__()
        self.members = members
        self.bounds = params.bounds
        torso = params.torso
        kind = DenseCritics if isinstance(torso, TorsoParameters) else torso.critics
        self.values = kind(
            params, observation_space, action_space, outputs, rng, normaliser, members
        )

    def bounded(self, outputs: Tensor) -> Tensor:
        """Outputs of the critics, squashed into their bounds."""
        if self.bounds is None:
            return outputs
        low, high = self.bounds
        return low + (high - low) * torch.sigmoid(outputs + NEAR_THE_TOP)

    @property
    def embedder(self) -> ObservationEmbedder | None:
        """The layers before the action joins; None where modules of the user's own stand."""
        return self.values.embedder if isinstance(self.values, DenseCritics) else None


class Critics(CriticEnsemble):
    """K action-value functions side by side: values [K, B]."""

    def __init__(
        self,
        params: CriticParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
        *,
        members: int = 1,
    ) -> None:
        to_box = scale_to(action_space)
        super().__init__(
            params, observation_space, action_space, 1, rng, normaliser, members=members
        )
        self.to_box = to_box
        self.action_unit = params.action_unit

    def forward(
        self, observation: dict[str, Tensor], action: Tensor, *, members: int | None = None
    ) -> Tensor:
        """Values of actions [B, A] in the Box, [K, B]; of the first `members` only where given."""
        shown = action if self.action_unit == "raw" else self.to_box.inverse(action)
        return self.bounded(self.values(observation, shown, members or self.members).squeeze(-1))


class BorrowedLayers(nn.Module, ABC):
    """A part of an actor's network that runs layers of the critics, which alone train them."""

    @abstractmethod
    def borrow(self, critics: CriticEnsemble) -> None:
        """Find the layers, without making them parts of this module; before anything is run.

        Raises:
            ConfigurationError: The critics have none that fit.
        """


def lend(actor: Actor, critics: CriticEnsemble) -> None:
    """Give the critics to the parts of an actor that borrow layers of them."""
    for part in actor.modules():
        if isinstance(part, BorrowedLayers):
            part.borrow(critics)


class DenseCritics(nn.Module):
    """Outputs [K, B, P] by K middlewares, run as one batched product.

    All members read the same embedded observation: layers of `torso.embedder` are shared.
    """

    def __init__(
        self,
        params: CriticParameters,
        observation_space: spaces.Dict,
        action_space: Space | None,
        outputs: int,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None,
        members: int,
    ) -> None:
        super().__init__()
        torso = params.torso
        assert isinstance(torso, TorsoParameters)
        self.embedder = torso.embed(observation_space, rng, normaliser)
        self.activation = ACTIVATIONS[torso.activation]
        self.action_layers = frozenset(() if action_space is None else params.action_layers)
        actions = 0 if action_space is None else int(np.prod(action_space.shape or ()))
        self.layers = nn.ModuleList()
        self.norms = nn.ModuleList()
        inputs = self.embedder.output_size + actions * (0 in self.action_layers)
        hidden = partial(EnsembleLinear, gain=HIDDEN_GAIN, orthogonal=torso.orthogonal)
        for number, size in enumerate(torso.middleware, start=1):
            self.layers.append(hidden(members, inputs, size, rng=rng))
            self.norms.append(EnsembleNorm(members, size) if torso.layer_norm else nn.Identity())
            inputs = size + actions * (number in self.action_layers)
        self.layers.append(EnsembleLinear(members, inputs, outputs, rng=rng))
        if params.final_bound is not None:
            _within(self.layers[-1], params.final_bound, rng)

    def forward(
        self, observation: dict[str, Tensor], action: Tensor | None, members: int
    ) -> Tensor:
        """[members, B, P], of actions [B, A] as the network sees them."""
        values = self._joined(self.embedder(observation), action, 0)
        values = values.expand(members, *values.shape)
        action = None if action is None else action.expand(members, *action.shape)
        *hidden, last = self.layers
        for number, (layer, norm) in enumerate(zip(hidden, self.norms, strict=True), start=1):
            values = self._joined(self.activation(norm(layer(values))), action, number)
        outputs: Tensor = last(values)
        return outputs

    def _joined(self, values: Tensor, action: Tensor | None, layer: int) -> Tensor:
        """A layer's input [..., I]: the values, and the action where it gets it."""
        if action is None or layer not in self.action_layers:
            return values
        return torch.cat([values, action], dim=-1)


def scale_to(space: Space) -> ScaleToBox:
    """Map from [-1, 1] to an action space; SpaceError unless it is a flat, bounded Box of floats.

    Each element needs room to move: of a range without width no action would be a share. Half of
    every range must fit into float32.
    """
    purpose = "this agent acts in a flat Box of floats with finite bounds"
    if not (
        isinstance(space, spaces.Box)
        and np.issubdtype(space.dtype, np.floating)
        and len(space.shape) == 1
    ):
        raise SpaceError(
            f"{purpose}, got {' '.join(str(space).split())}; use DQN, SAC or PPO in a Discrete or "
            "a flat MultiDiscrete space and PPO in others, or map the space with an OutputFilter"
        )
    require_finite_width(space, purpose)
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    fixed = np.flatnonzero(low >= high)
    if len(fixed):
        raise SpaceError(
            f"element {fixed[0]} of the action space can only be {low[fixed[0]]}, got {space}; "
            "leave it out of what the agent decides"
        )
    return ScaleToBox(torch.from_numpy(low), torch.from_numpy(high))


def last_linear(
    inputs: int, outputs: int, *, bound: float | None, rng: torch.Generator
) -> nn.Linear:
    """A network's last layer, whose initial weights lie within +- a bound if there is one."""
    layer = linear(inputs, outputs, rng=rng, gain=1.0, orthogonal=False)
    if bound is not None:
        _within(layer, bound, rng)
    return layer


def _within(layer: nn.Module, bound: float, rng: torch.Generator) -> None:
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.uniform_(-bound, bound, generator=rng)
