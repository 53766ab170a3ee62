"""Gated recurrent layers: GRU (Cho et al. 2014) and LSTM (Hochreiter & Schmidhuber 1997)."""

import math
import warnings
from abc import abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Annotated, ClassVar

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor, nn

from coach_rl.architectures.hidden_states import NumpyStep
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import FloatArray
from coach_rl.extensions.recurrent_layers.recurrence import Cell, RecurrentLayerParameters


@parameter_class
class GatedLayerParameters(RecurrentLayerParameters):
    """Settings of layers whose gates decide what they keep."""

    CELL: "ClassVar[Callable[..., Cell]]"
    """Class of the layer."""

    span: Annotated[int, Ge(3)] | None = None
    """Longest time, in decisions, over which the initial gates keep a state: chrono initialisation
    (Tallec & Ollivier 2018, arXiv:1804.11188). None: gates start half open, which keeps it for two
    or three."""

    def cell(self, inputs: int, rng: torch.Generator, *, orthogonal: bool) -> "Cell":
        return self.CELL(inputs, self.size, rng, orthogonal=orthogonal, span=self.span)


class _GatedCell(Cell):
    """Weights of G gates side by side, in the order and under the names of torch's own layers."""

    GATES: ClassVar[int]
    """G."""
    STATES: ClassVar[int] = 1
    """Numbers of its state for each of its output."""

    def __init__(
        self,
        inputs: int,
        size: int,
        rng: torch.Generator,
        *,
        orthogonal: bool,
        span: int | None = None,
    ) -> None:
        super().__init__(output_size=size, state_size=self.STATES * size)
        self.bias_ih: nn.Parameter
        gates = self.GATES
        shapes = {
            "weight_ih": (gates * size, inputs),
            "weight_hh": (gates * size, size),
            "bias_ih": (gates * size,),
            "bias_hh": (gates * size,),
        }
        for name, shape in shapes.items():
            values = torch.empty(shape)
            if not orthogonal:
                values.uniform_(-1 / math.sqrt(size), 1 / math.sqrt(size), generator=rng)
            elif values.ndim == 1:
                values.zero_()
            else:
                for gate in values.chunk(gates):
                    nn.init.orthogonal_(gate, generator=rng)
            self.register_parameter(name, nn.Parameter(values))
        if span is not None:
            with torch.no_grad():
                self._lengthen(chrono_bias(size, span, rng))

    @abstractmethod
    def _lengthen(self, bias: Tensor) -> None:
        """Add `chrono_bias` [F] to the gates that keep the state."""

    def _numpy_gates(self) -> Callable[[FloatArray, FloatArray], tuple[FloatArray, FloatArray]]:
        """The gates' sums [R, G * F] over inputs [R, I] and over outputs before [R, F]."""
        weight_ih, weight_hh, bias_ih, bias_hh = (each.detach().numpy() for each in self._weights)

        def gates(values: FloatArray, output: FloatArray) -> tuple[FloatArray, FloatArray]:
            return values @ weight_ih.T + bias_ih, output @ weight_hh.T + bias_hh

        return gates

    @property
    def _weights(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        names = "weight_ih", "weight_hh", "bias_ih", "bias_hh"
        first, second, third, fourth = (getattr(self, name) for name in names)
        return first, second, third, fourth


def chrono_bias(size: int, span: int, rng: torch.Generator) -> Tensor:
    """log(U(1, span - 1)) [size]: a gate with this bias keeps a state for 2 to `span` steps."""
    return torch.empty(size).uniform_(1, span - 1, generator=rng).log()


class GRUCell(_GatedCell):
    """h' = (1 - z) n + z h, with the reset gate inside n."""

    GATES = 3

    def _lengthen(self, bias: Tensor) -> None:
        self.bias_ih[len(bias) : 2 * len(bias)] += bias

    def step(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        state = torch.gru_cell(values, state, *self._weights)
        return state, state

    def sequence(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        with _compacting_allowed(values):
            outputs, last = torch.gru(
                values, state[None].contiguous(), self._weights, *_one_layer()
            )
        return outputs, last[0]

    def numpy_step(self) -> NumpyStep | None:
        if self.weight_ih.device.type != "cpu":
            return None
        gates = self._numpy_gates()
        size = self.output_size

        def step(values: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
            seen, kept = gates(values, state)
            update = sigmoid(seen[:, : 2 * size] + kept[:, : 2 * size])
            new = np.tanh(seen[:, 2 * size :] + update[:, :size] * kept[:, 2 * size :])
            new += update[:, size:] * (state - new)
            return new, new

        return step


class LSTMCell(_GatedCell):
    """c' = f c + i g, h' = o tanh(c'); the state is (h, c)."""

    GATES = 4
    STATES = 2

    def _lengthen(self, bias: Tensor) -> None:
        self.bias_ih[: 2 * len(bias)] += torch.cat([-bias, bias])

    def step(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        output, cell = torch.lstm_cell(values, state.chunk(2, dim=1), *self._weights)
        return output, torch.cat([output, cell], dim=1)

    def sequence(self, values: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        before = tuple(part[None].contiguous() for part in state.chunk(2, dim=1))
        with _compacting_allowed(values):
            outputs, output, cell = torch.lstm(values, before, self._weights, *_one_layer())
        return outputs, torch.cat([output[0], cell[0]], dim=1)

    def numpy_step(self) -> NumpyStep | None:
        if self.weight_ih.device.type != "cpu":
            return None
        gates = self._numpy_gates()
        size = self.output_size

        def step(values: FloatArray, state: FloatArray) -> tuple[FloatArray, FloatArray]:
            seen, kept = gates(values, state[:, :size])
            seen += kept
            # Four gates: input, forget, candidate and output; all but the candidate are sigmoids.
            update = sigmoid(np.delete(seen, slice(2 * size, 3 * size), axis=1))
            after = np.empty((len(values), 2 * size), np.float32)
            cell = after[:, size:]
            np.multiply(update[:, size : 2 * size], state[:, size:], out=cell)
            cell += update[:, :size] * np.tanh(seen[:, 2 * size : 3 * size])
            np.multiply(update[:, 2 * size :], np.tanh(cell), out=after[:, :size])
            return after[:, :size], after

        return step


@parameter_class
class GRU(GatedLayerParameters):
    """A gated recurrent unit (Cho et al. 2014, arXiv:1406.1078), as `torch.nn.GRU` computes it."""

    CELL = GRUCell


@parameter_class
class LSTM(GatedLayerParameters):
    """A long short-term memory (Hochreiter & Schmidhuber 1997), as `torch.nn.LSTM` computes it.

    Its state, of output and cell, has twice `size` numbers.
    """

    CELL = LSTMCell


def _one_layer() -> tuple[bool, int, float, bool, bool, bool]:
    """The settings of torch's layers: biases, layers, dropout, training, both ways, batch first."""
    return True, 1, 0.0, torch.is_grad_enabled(), False, True


def _compacting_allowed(values: Tensor) -> AbstractContextManager[object]:
    """A context without cuDNN's warning that it copies weights that lie among others."""
    if not values.is_cuda:
        return nullcontext()
    return warnings.catch_warnings(action="ignore", category=UserWarning)


def sigmoid(values: FloatArray) -> FloatArray:
    """1 / (1 + exp(-x)), written so that nothing overflows."""
    result: FloatArray = 0.5 * np.tanh(0.5 * values) + 0.5
    return result
