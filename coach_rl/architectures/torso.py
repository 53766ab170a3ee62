"""From an observation to features: one embedder per key, merged, through a middleware."""

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.architectures.layers import ACTIVATIONS, Activate, Activation, convolution, linear
from coach_rl.architectures.observation_normaliser import Normalise, ObservationNormaliser
from coach_rl.core.errors import SpaceError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space

HIDDEN_GAIN = 2**0.5
"""Gain of orthogonal hidden layers, as in OpenAI baselines."""

CONVOLUTIONS: dict[str, tuple[tuple[int, int, int], ...]] = {
    "shallow": ((32, 3, 1),),
    "medium": ((32, 8, 4), (64, 4, 2), (64, 3, 1)),
    "deep": ((32, 5, 2), (32, 3, 1), (64, 3, 2), (64, 3, 1), (128, 3, 2), (128, 3, 1)),
}
"""Image embedders, (channels, kernel, stride) per layer; medium is that of Mnih et al. 2015."""


@parameter_class
class TorsoParameters:
    """How observations become features."""

    embedder: tuple[int, ...] = ()
    """Dense layers each vector key goes through before the keys are merged; none by default."""
    convolutions: str = "medium"
    """Stack that image keys go through: one of `CONVOLUTIONS`."""
    middleware: tuple[int, ...] = (64, 64)
    """Dense layers after the keys are merged."""
    activation: Activation = "tanh"
    """After every layer."""
    orthogonal: bool = True
    """Orthogonal initial weights with gain sqrt(2) and zero biases; else PyTorch's default."""

    def __post_init__(self) -> None:
        if self.convolutions not in CONVOLUTIONS:
            raise UnknownNameError("convolution stack", self.convolutions, CONVOLUTIONS)
        if self.activation not in ACTIVATIONS:
            raise UnknownNameError("activation", self.activation, ACTIVATIONS)
        require(
            all(size > 0 for size in (*self.embedder, *self.middleware)),
            f"layer sizes must be more than 0, got {self.embedder} and {self.middleware}",
        )

    def build(
        self,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> "Torso":
        """The torso for observations of `space`; a normaliser sees them first where given."""
        return Torso(self, space, rng, normaliser)


class ObservationEmbedder(nn.Module):
    """Observation keys, each embedded, concatenated in the space's order.

    Boxes are flattened, Discrete and MultiDiscrete observations become one-hot, uint8 images
    [height, width, channels] are divided by 255 and convolved.
    """

    def __init__(
        self,
        params: TorsoParameters,
        space: spaces.Dict,
        rng: torch.Generator,
        normaliser: ObservationNormaliser | None = None,
    ) -> None:
        super().__init__()
        self.keys = list(space.spaces)
        self.embedders = nn.ModuleList()
        self.output_size = 0
        for key, part in space.spaces.items():
            encoder, width = _encoder(part, key, params, rng)
            normalised = normaliser is not None and key in normaliser.mean
            first = [Normalise(normaliser, key)] if normaliser is not None and normalised else []
            layers = _dense(width, params.embedder, params, rng)
            self.embedders.append(nn.Sequential(*first, encoder, *layers))
            self.output_size += params.embedder[-1] if layers else width

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """[B, output_size] of observations [B, ...] each."""
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
        self.embedder = ObservationEmbedder(params, space, rng, normaliser)
        size = self.embedder.output_size
        self.middleware = nn.Sequential(*_dense(size, params.middleware, params, rng))
        self.output_size = params.middleware[-1] if params.middleware else size

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        """Features [B, output_size] of observations [B, ...] each."""
        merged: Tensor = self.middleware(self.embedder(observation))
        return merged


class FlattenVector(nn.Module):
    """[B, ...] of any number type to float32 [B, O]."""

    def forward(self, values: Tensor) -> Tensor:
        """The same numbers in a row."""
        row = values.flatten(1) if values.ndim > 1 else values[:, None]
        return row.to(torch.float32)


class OneHot(nn.Module):
    """Whole numbers [B] or [B, K] to one-hot float32 [B, sum of sizes]."""

    def __init__(self, sizes: tuple[int, ...], start: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes, self.start = sizes, start

    def forward(self, values: Tensor) -> Tensor:
        """One block of `size` columns per number."""
        columns = values.to(torch.int64).reshape(len(values), -1).unbind(dim=1)
        blocks = [
            nn.functional.one_hot(column - start, size)
            for column, size, start in zip(columns, self.sizes, self.start, strict=True)
        ]
        return torch.cat(blocks, dim=1).to(torch.float32)


class ImageScale(nn.Module):
    """Bytes [B, height, width, channels] to float32 [B, channels, height, width] in [0, 1]."""

    def forward(self, values: Tensor) -> Tensor:
        """Divided by 255, channels first."""
        return values.permute(0, 3, 1, 2).to(torch.float32) / 255


def _encoder(
    space: Space, key: str, params: TorsoParameters, rng: torch.Generator
) -> tuple[nn.Module, int]:
    match space:
        case spaces.Discrete():
            return OneHot((int(space.n),), (int(space.start),)), int(space.n)
        case spaces.MultiDiscrete():
            sizes = tuple(int(size) for size in space.nvec.reshape(-1))
            start = tuple(int(first) for first in space.start.reshape(-1))
            return OneHot(sizes, start), sum(sizes)
        case spaces.Box() if len(space.shape) == 3 and space.dtype == np.uint8:
            return _image_encoder(space, key, params, rng)
        case spaces.Box() | spaces.MultiBinary():
            return FlattenVector(), int(np.prod(space.shape))
    raise SpaceError(f"cannot embed observation '{key}' of space {space}")


def _image_encoder(
    space: spaces.Box, key: str, params: TorsoParameters, rng: torch.Generator
) -> tuple[nn.Module, int]:
    height, width, channels = space.shape
    layers: list[nn.Module] = [ImageScale()]
    for outputs, kernel, stride in CONVOLUTIONS[params.convolutions]:
        if min(height, width) < kernel:
            raise SpaceError(
                f"image '{key}' of {space.shape} is too small for the '{params.convolutions}' "
                "convolutions; use 'shallow', or rescale it with ObservationRescaleToSizeFilter"
            )
        layer = convolution(
            channels,
            outputs,
            kernel=kernel,
            stride=stride,
            rng=rng,
            gain=HIDDEN_GAIN,
            orthogonal=params.orthogonal,
        )
        layers += [layer, Activate(params.activation)]
        height, width = (height - kernel) // stride + 1, (width - kernel) // stride + 1
        channels = outputs
    return nn.Sequential(*layers, nn.Flatten()), channels * height * width


def _dense(
    inputs: int, sizes: tuple[int, ...], params: TorsoParameters, rng: torch.Generator
) -> list[nn.Module]:
    layers: list[nn.Module] = []
    for outputs in sizes:
        layer = linear(inputs, outputs, rng=rng, gain=HIDDEN_GAIN, orthogonal=params.orthogonal)
        layers += [layer, Activate(params.activation)]
        inputs = outputs
    return layers
