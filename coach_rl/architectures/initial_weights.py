"""Layers whose initial weights are drawn from a given generator."""

import math

import torch
from torch import nn

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
