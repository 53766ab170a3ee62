"""Layers, whose initial weights are drawn from a given generator."""

import math
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor, nn

Activation = Literal["tanh", "relu", "elu", "selu", "leaky_relu", "sigmoid", "none"]

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "relu": torch.relu,
    "elu": nn.functional.elu,
    "selu": nn.functional.selu,
    "leaky_relu": nn.functional.leaky_relu,
    "sigmoid": torch.sigmoid,
    "none": lambda values: values,
}
HIDDEN_GAIN = 2**0.5
"""Gain of orthogonal hidden layers, as in OpenAI baselines."""


def linear(
    inputs: int, outputs: int, *, rng: torch.Generator, gain: float, orthogonal: bool
) -> nn.Linear:
    """A dense layer.

    Args:
        inputs: Size of its input.
        outputs: Size of its output.
        rng: Where the weights are drawn from.
        gain: Scale of the weights.
        orthogonal: Orthogonal weights of that gain and bias 0 (Saxe et al. 2014); otherwise
            PyTorch's usual uniform weights and biases, on which the gain has no bearing.
    """
    layer = nn.Linear(inputs, outputs, device="meta")
    _fill(layer, fan_in=inputs, rng=rng, gain=gain, orthogonal=orthogonal)
    return layer


def convolution(
    inputs: int,
    outputs: int,
    *,
    kernel: int,
    stride: int,
    rng: torch.Generator,
    gain: float,
    orthogonal: bool,
) -> nn.Conv2d:
    """A square two-dimensional convolution without padding; see `linear` for the weights."""
    layer = nn.Conv2d(inputs, outputs, kernel, stride, device="meta")
    fan_in = inputs * kernel * kernel
    _fill(layer, fan_in=fan_in, rng=rng, gain=gain, orthogonal=orthogonal)
    return layer


class ScaleToBox(nn.Module):
    """Numbers in [-1, 1] to a Box, whose bounds may lie anywhere.

    Args:
        low: Lower bounds [A].
        high: Upper bounds [A].
    """

    low: Tensor
    half_range: Tensor

    def __init__(self, low: Tensor, high: Tensor) -> None:
        super().__init__()
        self.register_buffer("low", low, persistent=False)
        self.register_buffer("half_range", (high - low) / 2, persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        """[B, A] in [-1, 1] to [B, A] in the Box."""
        return self.low + self.half_range * (values + 1)

    def inverse(self, values: Tensor) -> Tensor:
        """[B, A] in the Box to [B, A] in [-1, 1]."""
        return (values - self.low) / self.half_range - 1


class Activate(nn.Module):
    """An activation by its name in `ACTIVATIONS`."""

    def __init__(self, name: Activation) -> None:
        super().__init__()
        self.name = name
        self.function = ACTIVATIONS[name]

    def forward(self, values: Tensor) -> Tensor:
        return self.function(values)


def _fill(
    layer: nn.Linear | nn.Conv2d,
    *,
    fan_in: int,
    rng: torch.Generator,
    gain: float,
    orthogonal: bool,
) -> None:
    """Give a layer of the meta device its parameters.

    Not by `to_empty`, for which torch imports half of its compiler: a fifth of the time in which a
    run starts.
    """
    assert layer.bias is not None
    weight, bias = torch.empty(layer.weight.shape), torch.empty(layer.bias.shape)
    with torch.no_grad():
        if orthogonal:
            nn.init.orthogonal_(weight, gain, generator=rng)
            bias.zero_()
        else:
            bound = 1 / math.sqrt(fan_in) if fan_in else 0.0  # as in PyTorch
            weight.uniform_(-bound, bound, generator=rng)
            bias.uniform_(-bound, bound, generator=rng)
    layer.weight, layer.bias = nn.Parameter(weight), nn.Parameter(bias)


class FlattenVector(nn.Module):
    """[B, ...] of any number type to float32 [B, O]; divided by 255 if `is_scaled`."""

    def __init__(self, *, is_scaled: bool = False) -> None:
        super().__init__()
        self.is_scaled = is_scaled

    def forward(self, values: Tensor) -> Tensor:
        row = (values.flatten(1) if values.ndim > 1 else values[:, None]).to(torch.float32)
        return row / 255 if self.is_scaled else row


class OneHot(nn.Module):
    """Whole numbers [B] or [B, K] to one-hot float32 [B, sum of sizes]."""

    def __init__(self, sizes: tuple[int, ...], start: tuple[int, ...]) -> None:
        super().__init__()
        self.sizes = sizes
        self.start = start

    def forward(self, values: Tensor) -> Tensor:
        columns = values.to(torch.int64).reshape(-1, len(self.sizes)).unbind(dim=1)
        blocks = [
            nn.functional.one_hot(column - start, size)
            for column, size, start in zip(columns, self.sizes, self.start, strict=True)
        ]
        return torch.cat(blocks, dim=1).to(torch.float32)
