"""Attention over a window of past inputs, as a recurrent layer whose state is the window."""

import math

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.hidden_states import NumpyStep
from coach_rl.architectures.initial_weights import linear
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray
from coach_rl.extensions.recurrent_layers.recurrence import Cell, RecurrentLayerParameters


@parameter_class
class Attention(RecurrentLayerParameters):
    """Causal multi-head attention of the newest input over a window of inputs.

    As Vaswani et al. 2017 (arXiv:1706.03762, section 3.2), with a learned bias for each distance in
    time. Nothing outside the window is remembered. Its state, of the inputs in the window but the
    newest and their number, has `(window - 1) * inputs + 1` numbers.
    """

    window: Positive[int] = 16
    """Inputs that are attended to, the newest included; 2 or more."""
    heads: Positive[int] = 4
    """Attention heads, which divide `size`."""

    def __post_init__(self) -> None:
        require(
            self.window > 1,
            f"Attention.window must be 2 or more inputs, got {self.window}; for none of the past "
            "leave out the layer",
        )
        require(
            self.size % self.heads == 0,
            f"Attention.heads must divide size ({self.size}), got {self.heads}",
        )

    def cell(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "AttentionCell":
        return AttentionCell(inputs, self, rng, orthogonal=orthogonal)


class AttentionCell(Cell):
    """softmax(q k / sqrt(d) + b) v over the window, heads side by side, then a dense layer.

    Args:
        inputs: I, the size of its input.
        params: Its settings.
        rng: Where the weights are drawn from.
        orthogonal: Orthogonal weights and zero biases; else PyTorch's default.
    """

    def __init__(
        self, inputs: int, params: Attention, rng: torch.Generator, *, orthogonal: bool
    ) -> None:
        self.window = params.window
        self.heads = params.heads
        size = params.size
        super().__init__(output_size=size, state_size=(params.window - 1) * inputs + 1)

        def layer(inputs: int, outputs: int) -> nn.Linear:
            return linear(inputs, outputs, rng=rng, gain=1.0, orthogonal=orthogonal)

        self.query, self.key, self.value = (layer(inputs, size) for _ in range(3))
        self.whole = layer(size, size)
        self.bias = nn.Parameter(torch.zeros(params.heads, params.window))
        """Biases of each head, that of the oldest input in the window first."""

    def step(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        outputs, state = self.sequence(values[:, None], state)
        return outputs[:, 0], state

    def sequence(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        known = state[:, -1:].clamp(min=0)
        past = state[:, :-1].reshape(-1, self.window - 1, values.shape[2])
        seen = torch.cat([past, values], dim=1)
        length = values.shape[1]
        place = torch.arange(length)[:, None] + torch.arange(self.window)  # [L, window]
        place = place.to(values.device)
        query, keys, contents = (
            layer(each).reshape(-1, each.shape[1], self.heads, self.output_size // self.heads)
            for layer, each in ((self.query, values), (self.key, seen), (self.value, seen))
        )  # [S, L or T, heads, d]
        scores = torch.einsum("slhd,slwhd->slhw", query, keys[:, place])
        scores = scores / math.sqrt(query.shape[3]) + self.bias
        is_known = place >= (self.window - 1 - known)[:, :, None]  # [S, L, window]
        scores = scores.masked_fill(~is_known[:, :, None], -math.inf)
        attended = torch.einsum("slhw,slwhd->slhd", scores.softmax(dim=3), contents[:, place])
        kept = seen[:, length:].flatten(1)
        count = (known + length).clamp(max=self.window - 1)
        return self.whole(attended.flatten(2)), torch.cat([kept, count], dim=1)

    def numpy_step(self) -> NumpyStep | None:
        if self.bias.device.type != "cpu":
            return None
        layers = self.query, self.key, self.value, self.whole
        weights = [layer.weight.detach().numpy() for layer in layers]
        biases = [layer.bias.detach().numpy() for layer in layers]
        bias = self.bias.detach().numpy()
        window = self.window
        heads = self.heads
        size = self.output_size // heads

        def step(values: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
            rows, inputs = values.shape
            # The state is the last window - 1 inputs, the newest at the end, and their number.
            past = state[:, :-1].reshape(rows, window - 1, inputs)
            seen = np.concatenate([past, values[:, None]], axis=1)
            query, keys, contents = (
                (of @ weight.T + own).reshape(rows, of.shape[1], heads, size)
                for of, weight, own in zip(
                    (seen[:, -1:], seen, seen), weights[:3], biases[:3], strict=True
                )
            )
            scores = np.einsum("rqhd,rwhd->rhw", query, keys) / np.float32(math.sqrt(size)) + bias
            known = np.maximum(state[:, -1:], 0)
            unknown = np.arange(window) < window - 1 - known  # [R, window], before its first input
            scores = np.where(unknown[:, None], np.float32(-np.inf), scores)
            scores = np.exp(scores - scores.max(axis=2, keepdims=True))
            scores /= scores.sum(axis=2, keepdims=True)
            attended = np.einsum("rhw,rwhd->rhd", scores, contents).reshape(rows, heads * size)
            count = np.minimum(known + 1, window - 1)
            kept = seen[:, 1:].reshape(rows, (window - 1) * inputs)
            after = np.concatenate([kept, count], axis=1)
            return attended @ weights[3].T + biases[3], after.astype(np.float32, copy=False)

        return step
