"""Layers of networks."""

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
