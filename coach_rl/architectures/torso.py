"""Torso, from observation to features: one embedder per key, merged, through a middleware."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.hidden_states import StatefulLayer, StatefulLayerParameters
from coach_rl.architectures.initial_weights import HIDDEN_GAIN, linear
from coach_rl.architectures.layers import Activate, Activation, FlattenVector, OneHot
from coach_rl.architectures.observation_normaliser import Normalise, ObservationNormaliser
from coach_rl.architectures.other_torso import OtherTorso, OtherTorsoParameters
from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import SpaceError, UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive
from coach_rl.core.spaces import Space
from coach_rl.core.variants import variant_for

ImageLayout = Literal["auto", "channels_last", "channels_first", "flat"]
NamedConvolutions = Literal["auto", "shallow", "small", "medium", "deep"]


@parameter_class
class TorsoParameters:
    """Networks that map observations to features."""

    embedder: tuple[Positive[int], ...] = ()
    """Dense layers of each vector key before the keys are merged; none by default."""
    convolutions: (
        NamedConvolutions | tuple[tuple[Positive[int], Positive[int], Positive[int]], ...]
    ) = "auto"
    """Layers that image keys go through: (channels, kernel, stride) each, or their name. auto:
    medium, and for a side below 36 pixels those layers of small that fit."""
    images: ImageLayout = "auto"
    """Reading of observations with three axes, or a fourth one of stacked images: channels_last,
    channels_first, or flat, as vectors. auto: bytes are images with the channels last, others need
    an explicit choice."""
    recurrence: StatefulLayerParameters | None = None
    """Layer with a hidden state between embedder and middleware, such as GRU; None: features depend
    on the newest observation alone."""
    middleware: tuple[Positive[int], ...] = (64, 64)
    """Dense layers after the keys are merged."""
    activation: Activation = "tanh"
    """After every layer."""
    orthogonal: bool = True
    """Orthogonal initial weights with gain sqrt(2) and zero biases; else PyTorch's default."""
    layer_norm: bool = False
    """Layer normalisation (Ba et al. 2016) of every dense layer, before its activation."""
    keys: NonEmpty[tuple[str, ...]] | None = None
    """Observation keys that the network sees; None: all of them."""

    def build(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> "Torso":
        """The torso for observations of `space`; a normaliser sees them first where given."""
        return Torso(self, space, rng, normaliser)

    def embed(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> "ObservationEmbedder":
        """The torso's first part; a subclass for other layers returns an embedder of its own."""
        return ObservationEmbedder(self, space, rng, normaliser)


class ObservationEmbedder(nn.Module):
    """Observation keys, each embedded, concatenated in the space's order.

    A layer with a hidden state follows where the parameters have one.

    Boxes are flattened, Discrete and MultiDiscrete observations become one-hot, images are
    convolved. Numbers from 0 to 255 are divided by 255 first, where no normaliser scales them.
    """

    def __init__(
        self,
        params: TorsoParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        space = selected(space, params.keys)
        self.keys = list(space.spaces)
        self.embedders = nn.ModuleList()
        self.output_size = 0
        for key, part in space.spaces.items():
            normalised = normaliser is not None and key in normaliser.mean
            is_scaled = not normalised and _has_bounds_of_bytes(part)
            encoder, width = _encoder(part, key, params, rng, is_scaled=is_scaled)
            first = [Normalise(normaliser, key)] if normaliser is not None and normalised else []
            layers = dense_layers(width, params.embedder, params, rng)
            self.embedders.append(nn.Sequential(*first, encoder, *layers))
            self.output_size += params.embedder[-1] if layers else width
        self.recurrence: StatefulLayer | None = None
        stateful = params.recurrence
        if stateful is not None:
            layer = stateful.build(self.output_size, rng, orthogonal=params.orthogonal)
            self.recurrence = layer
            self.output_size = layer.output_size

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """[B, output_size] of observations [B, ...] each."""
        return self.advance(observation)[0]

    def advance(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """The result of `forward`, and the hidden states [S, H] after it; None: there are none."""
        merged = self._merged(observation)
        layer = self.recurrence
        if layer is None:
            return merged, None
        outputs: tuple[Tensor, Tensor] = layer(merged, observation, self._merged)
        return outputs

    def _merged(self, observation: dict[str, Tensor]) -> Tensor:
        embedded = zip(self.keys, self.embedders, strict=True)
        parts = [embedder(observation[key]) for key, embedder in embedded]
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=-1)


class Torso(nn.Module):
    """Embedded observations through the middleware."""

    def __init__(
        self,
        params: TorsoParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.embedder = params.embed(space, rng, normaliser)
        size = self.embedder.output_size
        self.middleware = nn.Sequential(*dense_layers(size, params.middleware, params, rng))
        self.output_size = params.middleware[-1] if params.middleware else size

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Features [B, output_size] of observations [B, ...] each."""
        merged: Tensor = self.middleware(self.embedder(observation))
        return merged

    def advance(self, observation: dict[str, Tensor]) -> tuple[Tensor, Tensor | None]:
        """The result of `forward`, and the hidden states [S, H] after it; None: there are none."""
        merged, state = self.embedder.advance(observation)
        return self.middleware(merged), state


AnyTorsoParameters = TorsoParameters | OtherTorsoParameters
"""Our torso, or one of another kind."""


def relu_torso(*sizes: int) -> TorsoParameters:
    """Layers of these sizes with relu and PyTorch's initial weights."""
    return TorsoParameters(middleware=sizes, activation="relu", orthogonal=False)


def last_layer(
    torso: Torso | OtherTorso, outputs: int, make: Callable[[int, int], nn.Module]
) -> nn.Module:
    """The layer from features to a network's outputs.

    Args:
        torso: Gives the features.
        outputs: How many outputs the network has.
        make: The layer of so many inputs and outputs. Not used where the torso gives the
            outputs itself.
    """
    if isinstance(torso, Torso) or torso.last_layer:
        return make(torso.output_size, outputs)
    if torso.output_size != outputs:
        raise SpaceError(
            f"the network {torso.name} has {torso.output_size} outputs where {outputs} are "
            "needed; change it, or set its last_layer"
        )
    return nn.Identity()


def selected(space: spaces.Dict, keys: tuple[str, ...] | None) -> spaces.Dict:
    """The keys of an observation space that a network gets; UnknownNameError if one is missing."""
    if keys is None:
        return space
    for key in keys:
        if key not in space.spaces:
            raise UnknownNameError("observation key", key, space.spaces)
    return spaces.Dict({key: part for key, part in space.spaces.items() if key in keys})


def _has_bounds_of_bytes(space: Space) -> bool:
    return isinstance(space, spaces.Box) and bool(((space.low == 0) & (space.high == 255)).all())


def _encoder(
    space: Space, key: str, params: TorsoParameters, rng: torch.Generator, *, is_scaled: bool
) -> tuple[nn.Module, int]:
    match space:
        case spaces.Discrete() | spaces.MultiDiscrete():
            sizes = choice_sizes(space)
            return OneHot(sizes, tuple(first_action(space).ravel().tolist())), sum(sizes)
        case spaces.Box() if len(space.shape) in (3, 4) and params.images != "flat":
            encoder = variant_for("image_encoder", space, {}, claim=f"no layers for image '{key}',")
            layers: tuple[nn.Module, int] = encoder(space, key, params, rng, is_scaled=is_scaled)
            return layers
        case spaces.Box() | spaces.MultiBinary():
            return FlattenVector(is_scaled=is_scaled), int(np.prod(space.shape))
    raise SpaceError(f"cannot embed observation '{key}' of space {space}")


def dense_layers(
    inputs: int, sizes: tuple[int, ...], params: TorsoParameters, rng: torch.Generator
) -> list[nn.Module]:
    """Dense layers of these sizes, each with its normalisation and activation."""
    layers: list[nn.Module] = []
    for outputs in sizes:
        layer = linear(inputs, outputs, rng=rng, gain=HIDDEN_GAIN, orthogonal=params.orthogonal)
        norm = [nn.LayerNorm(outputs)] if params.layer_norm else []
        layers += [layer, *norm, Activate(params.activation)]
        inputs = outputs
    return layers
