"""Layers of several networks side by side, run as one product."""

import math

import torch
from torch import Tensor, nn


class EnsembleLinear(nn.Module):
    """K dense layers side by side, run as one batched product; see `linear` for the weights.

    Args:
        members: K.
        inputs: Size of each layer's input.
        outputs: Size of each layer's output.
        rng: Where the weights are drawn from.
        gain: Scale of orthogonal weights.
        orthogonal: Orthogonal weights and bias 0; otherwise PyTorch's usual ones.
    """

    def __init__(
        self,
        members: int,
        inputs: int,
        outputs: int,
        *,
        rng: torch.Generator,
        gain: float = 1.0,
        orthogonal: bool = False,
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(members, inputs, outputs))
        self.bias = nn.Parameter(torch.empty(members, 1, outputs))
        with torch.no_grad():
            if orthogonal:
                for weight in self.weight:
                    nn.init.orthogonal_(weight.T, gain, generator=rng)
                self.bias.zero_()
            else:
                bound = 1 / math.sqrt(inputs) if inputs else 0.0  # as in PyTorch
                self.weight.uniform_(-bound, bound, generator=rng)
                self.bias.uniform_(-bound, bound, generator=rng)

    def forward(self, values: Tensor) -> Tensor:
        """[K, B, inputs] to [K, B, outputs]; fewer than K inputs go through the first layers."""
        members = len(values)
        return torch.bmm(values, self.weight[:members]) + self.bias[:members]


class EnsembleNorm(nn.Module):
    """K layer normalisations side by side (Ba et al. 2016), each with a scale and a shift."""

    def __init__(self, members: int, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(members, 1, size))
        self.bias = nn.Parameter(torch.zeros(members, 1, size))

    def forward(self, values: Tensor) -> Tensor:
        """[K, B, size]; fewer than K inputs go through the first ones."""
        members = len(values)
        size = values.shape[-1:]
        normal = nn.functional.layer_norm(values, size)
        return normal * self.weight[:members] + self.bias[:members]
