"""The arithmetic of small dense policies in numpy, on the same memory as the torch parameters.

Acting evaluates a few rows at a time, where torch's cost per operation is several times the
arithmetic: 64-64 tanh on 8 rows takes 70 us in torch and 15 us here. Thousands of rows, such as
HIRO's candidates, are passed through in blocks that stay in the processor's cache, by oneDNN where
that is faster. `numpy_policy` makes these functions from torch's modules.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.layers import ScaleToBox
from coach_rl.architectures.observation_normaliser import Normalise
from coach_rl.architectures.onednn import LEAST_SIDE, onednn_is_faster, onednn_linear
from coach_rl.architectures.output_rules import Forward
from coach_rl.core.records import Array, FloatArray, Observation

Layer = Callable[[FloatArray], FloatArray]
ACTIVATIONS: dict[str, Layer] = {
    "tanh": lambda values: np.tanh(values, out=values),
    "relu": lambda values: np.maximum(values, 0, out=values),
    "none": lambda values: values,
}
BLOCK = 1024
"""Fewest rows in a block; with as many, torch's cost per operation is little."""


def joint_pass(first: Mapping[str, Sequence[Layer]], rest: Sequence[Layer]) -> Forward:
    """A pass of observations through the layers of each key, and of all keys through the rest.

    Args:
        first: The layers of each observation key.
        rest: The layers behind them.
    """
    if len(first) > 1:

        def passed(observation: Observation) -> FloatArray:
            parts = [through(own, observation[key]) for key, own in first.items()]
            return through(rest, np.concatenate(parts, axis=1))

        return passed
    ((key, own),) = first.items()
    layers = (*own, *rest)

    def passed_of_one(observation: Observation) -> FloatArray:
        values: Array = observation[key]
        for layer in layers:
            values = layer(values)
        return values

    return passed_of_one


def in_blocks(passed: Forward) -> Forward:
    """The same function, which gets thousands of rows in blocks.

    Without the warning "invalid value encountered": OpenBLAS gives it for finite numbers, where its
    products with matrices of five columns read uninitialised memory, of which nothing is kept.
    """

    def forward(observation: Observation) -> FloatArray:
        rows = len(next(iter(observation.values())))
        with np.errstate(invalid="ignore"):
            if rows < 2 * BLOCK:
                return passed(observation)
            bounds = np.linspace(0, rows, 1 + rows // BLOCK, dtype=np.int64)  # >= BLOCK rows each
            blocks = (slice(*each) for each in pairwise(bounds))
            pieces = ({key: values[each] for key, values in observation.items()} for each in blocks)
            return np.concatenate([passed(piece) for piece in pieces])

    return forward


def through(layers: Sequence[Layer], values: Array) -> FloatArray:
    """The outputs of layers, one after the other."""
    for layer in layers:
        values = layer(values)
    return values


def flat_rows(values: Array) -> FloatArray:
    """Each row as one vector of float32, [R, O]."""
    row = values if values.ndim == 2 else values.reshape(len(values), prod(values.shape[1:]))
    return row.astype(np.float32, copy=False)


def unit(values: FloatArray) -> FloatArray:
    """Bytes scaled to [0, 1]."""
    return values / np.float32(255)


def dense(layer: nn.Linear, *, rectified: bool = False) -> Layer:
    """The layer, and the ReLU behind it if `rectified`: in one pass over its output by oneDNN."""
    # Detached tensors share memory with the parameters, which are views of the flat tensor.
    tensors = layer.weight.detach(), layer.bias.detach()
    weight = tensors[0].numpy().T
    bias = tensors[1].numpy()
    is_wide = min(weight.shape) >= LEAST_SIDE and onednn_is_faster()
    then: Literal["relu", "none"] = "relu" if rectified else "none"

    def passed(values: FloatArray) -> FloatArray:
        if is_wide and len(values) >= BLOCK:
            return np.asarray(onednn_linear(torch.from_numpy(values), *tensors, then).numpy())
        output: FloatArray = values.dot(weight)  # quicker than @ for a few rows
        output += bias
        if rectified:
            np.maximum(output, 0, out=output)
        return output

    return passed


def with_constant(constant: Tensor) -> Layer:
    """More outputs, the same for all rows."""
    more = constant.detach().numpy()

    def joined(values: FloatArray) -> FloatArray:
        rows, outputs = values.shape
        longer = np.empty((rows, outputs + len(more)), np.float32)  # faster than joining rows
        longer[:, :outputs] = values
        longer[:, outputs:] = more
        return longer

    return joined


def layer_norm(layer: nn.LayerNorm) -> Layer:
    """The layer normalisation as a function, which writes to its input."""
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()

    def normalise(values: FloatArray) -> FloatArray:
        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt((values * values).mean(axis=1, keepdims=True) + np.float32(layer.eps))
        values *= weight
        values += bias
        return values

    return normalise


def normaliser(layer: Normalise) -> Layer:
    """The normalisation by running statistics as a function."""
    mean = layer.mean.numpy()
    scale = layer.scale.numpy()
    clip = layer.clip

    def normalise(values: FloatArray) -> FloatArray:
        normal = (values.astype(np.float32, copy=False) - mean) * scale
        clipped: FloatArray = np.minimum(np.maximum(normal, -clip), clip)
        return clipped

    return normalise


def scaler(layer: ScaleToBox) -> Layer:
    """The map from [-1, 1] to a Box as a function, which writes to its input."""
    low, half_range = layer.low.numpy(), layer.half_range.numpy()

    def scale(values: FloatArray) -> FloatArray:
        values += 1
        values *= half_range
        values += low
        return values

    return scale
