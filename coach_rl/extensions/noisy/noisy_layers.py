"""Layers with factorised Gaussian noise (Fortunato et al. 2018, "Noisy Networks for Exploration").

arXiv:1706.10295. The noise is an input of the network, so every row of a batch may have its own:
with S the standard deviations, the weights W + S * f(e_out) f(e_in)^T of equation 10 give
W x + f(e_out) * (S (f(e_in) * x)), which no row needs a matrix of its own for.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from coach_rl.architectures.q_network import QNetwork

NOISE = "network_noise"
"""Key of the noise beside observations, f(e) of all layers side by side: [B, E], or [1, E] for all
observations. Without it the network has its mean weights."""


class NoisyLinear(nn.Module):
    """A dense layer whose weights and biases have noise.

    Args:
        dense: Its mean weights and biases.
        initial_noise: sigma_0; the standard deviations begin at sigma_0 / sqrt(inputs), which is
            section 3.2 of the paper.
    """

    def __init__(self, dense: nn.Linear, *, initial_noise: float) -> None:
        super().__init__()
        self.inputs = dense.in_features
        self.outputs = dense.out_features
        self.weight = dense.weight
        self.bias = dense.bias
        scale = initial_noise / math.sqrt(max(1, self.inputs))
        self.weight_noise = nn.Parameter(torch.full_like(dense.weight, scale))
        self.bias_noise = nn.Parameter(torch.full_like(dense.bias, scale))

    def forward(self, values: Tensor, noise: Tensor | None = None) -> Tensor:
        """Outputs [B, outputs] of inputs [B, inputs], equations 9 to 11.

        Args:
            values: [B, inputs].
            noise: f(e_in) and f(e_out) side by side, [B or 1, inputs + outputs]; None: the means.
        """
        mean = nn.functional.linear(values, self.weight, self.bias)
        if noise is None:
            return mean
        before, after = noise.split_with_sizes([self.inputs, self.outputs], dim=-1)
        drawn = nn.functional.linear(values * before, self.weight_noise, self.bias_noise)
        return mean + after * drawn


class NoisyStream(nn.Sequential):
    """A stream whose dense layers have noise.

    Args:
        stream: A stream of dense layers and activations.
        initial_noise: See `NoisyLinear`.
    """

    def __init__(self, stream: nn.Sequential, *, initial_noise: float) -> None:
        super().__init__(
            *(
                NoisyLinear(each, initial_noise=initial_noise)
                if isinstance(each, nn.Linear)
                else each
                for each in stream
            )
        )
        self.sizes = [layer.inputs + layer.outputs for layer in self.noisy_layers()]

    def noisy_layers(self) -> Iterator[NoisyLinear]:
        """Its layers with noise, first to last."""
        return (each for each in self if isinstance(each, NoisyLinear))

    def forward(self, values: Tensor, noise: Tensor | None = None) -> Tensor:
        """Outputs [B, O] of features [B, F], with noise [B or 1, sum of sizes] or the means."""
        parts = iter(() if noise is None else noise.split_with_sizes(self.sizes, dim=-1))
        for layer in self:
            if isinstance(layer, NoisyLinear):
                values = layer(values, next(parts, None))
            else:
                values = layer(values)
        return values


class NoisyQNetwork(QNetwork):
    """A network of action values whose layers behind the torso have noise.

    Args:
        arguments: Of `QNetwork`, by position.
        initial_noise: See `NoisyLinear`.
    """

    def __init__(self, *arguments: Any, initial_noise: float) -> None:
        super().__init__(*arguments)
        self.actions = NoisyStream(self.actions, initial_noise=initial_noise)
        self.sizes_of_noise = [sum(self.actions.sizes)]
        if self.state is not None:
            self.state = NoisyStream(self.state, initial_noise=initial_noise)
            self.sizes_of_noise.append(sum(self.state.sizes))

    @property
    def noise_size(self) -> int:
        """E, the numbers of a draw."""
        return sum(self.sizes_of_noise)

    def forward(self, observation: dict[str, Tensor], key: str = NOISE) -> Tensor:
        """Numbers [B, M, K] with the noise under a key of the observations, or the means."""
        return self.numbers(self.torso(observation), observation.get(key))

    def advance(self, observation: dict[str, Tensor]) -> Tensor:
        """Expected returns and the hidden states after them, if any, [B, M + H]."""
        features, state = self.torso.advance(observation)
        values = self.returns.mean(self.numbers(features, observation.get(NOISE)))
        return values if state is None else torch.cat([values, state], dim=1)

    def numbers(self, features: Tensor, noise: Tensor | None) -> Tensor:
        """Numbers [B, M, K] of features [B, F], with noise [B or 1, E] or the means."""
        parts = iter(() if noise is None else noise.split_with_sizes(self.sizes_of_noise, dim=-1))
        actions = self.actions(features, next(parts, None))
        state = None if self.state is None else self.state(features, next(parts, None))
        return self.joined(actions, state)
