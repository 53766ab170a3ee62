"""Linear recurrent layers, whose sequences are computed in parallel: minGRU."""

import torch
from torch import Tensor

from coach_rl.architectures.hidden_states import NumpyStep
from coach_rl.architectures.initial_weights import linear
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import FloatArray
from coach_rl.extensions.recurrent_layers.gated_recurrence import (
    GatedLayerParameters,
    chrono_bias,
    sigmoid,
)
from coach_rl.extensions.recurrent_layers.recurrence import Cell


class MinGRUCell(Cell):
    """h' = (1 - z) h + z n, with z = sigmoid(W x + b) and n = V x + c."""

    def __init__(
        self,
        inputs: int,
        size: int,
        rng: torch.Generator,
        *,
        orthogonal: bool,
        span: int | None = None,
    ) -> None:
        super().__init__(output_size=size, state_size=size)
        self.gate = linear(inputs, size, rng=rng, gain=1.0, orthogonal=orthogonal)
        self.candidate = linear(inputs, size, rng=rng, gain=1.0, orthogonal=orthogonal)
        if span is not None:
            with torch.no_grad():
                self.gate.bias.sub_(chrono_bias(size, span, rng))

    def step(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        gate = torch.sigmoid(self.gate(values))
        state = (1 - gate) * state + gate * self.candidate(values)
        return state, state

    def sequence(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        gate = torch.sigmoid(self.gate(values))
        outputs = linear_scan(1 - gate, gate * self.candidate(values), state)
        return outputs, outputs[:, -1]

    def numpy_step(self) -> NumpyStep | None:
        if self.gate.weight.device.type != "cpu":
            return None
        layers = self.gate, self.candidate
        weight, bias = (
            [getattr(layer, name).detach().numpy() for layer in layers]
            for name in ("weight", "bias")
        )

        def step(values: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
            gate = sigmoid(values @ weight[0].T + bias[0])
            after = state + gate * (values @ weight[1].T + bias[1] - state)
            return after, after

        return step


@parameter_class
class MinGRU(GatedLayerParameters):
    """A GRU whose gates see the input alone (Feng et al. 2024, arXiv:2410.01201, section 3.1)."""

    CELL = MinGRUCell


def linear_scan(decay: Tensor, added: Tensor, first: Tensor) -> Tensor:
    """h_t = decay_t h_(t-1) + added_t for all t, in log2(L) passes (Hillis & Steele 1986).

    After the pass of width w, `added` at t is the sum that steps t - 2w + 1 to t contribute, and
    `decay` is the product of their factors.

    Args:
        decay: [S, L, H], between 0 and 1.
        added: [S, L, H].
        first: h before the first step, [S, H].

    Returns:
        h behind every step, [S, L, H].
    """
    added = torch.cat([added[:, :1] + decay[:, :1] * first[:, None], added[:, 1:]], dim=1)
    width = 1
    length = added.shape[1]
    while width < length:
        later = added[:, width:] + decay[:, width:] * added[:, :-width]
        product = decay[:, width:] * decay[:, :-width]
        added = torch.cat([added[:, :width], later], dim=1)
        decay = torch.cat([decay[:, :width], product], dim=1)
        width *= 2
    return added
