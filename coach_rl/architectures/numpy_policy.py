"""A small policy's forward pass in numpy, on the same memory as the torch parameters.

Acting evaluates a few rows at a time, where torch's cost per operation is several times the
arithmetic: 64-64 tanh on 8 rows takes 70 us in torch and 15 us here. Made for dense policies on the
CPU; others act in torch. Thousands of rows, such as HIRO's candidates, are passed through in blocks
that stay in the processor's cache, by oneDNN where that is faster.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import prod
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.actor_critic import ActorCritic
from coach_rl.architectures.layers import Activate, ScaleToBox
from coach_rl.architectures.observation_normaliser import Normalise
from coach_rl.architectures.onednn import LEAST_SIDE, onednn_is_faster, onednn_linear
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.torso import FlattenVector, ObservationEmbedder, OtherTorso, Torso
from coach_rl.core.records import Array, FloatArray, Observation

Layer = Callable[[FloatArray], FloatArray]

ACTIVATIONS: dict[str, Layer] = {
    "tanh": lambda values: np.tanh(values, out=values),
    "relu": lambda values: np.maximum(values, 0, out=values),
    "none": lambda values: values,
}
BLOCK = 1024
"""Fewest rows in a block; with as many, torch's cost per operation is little."""


def torch_forward(module: Callable[[dict[str, Tensor]], Tensor], device: torch.device) -> Forward:
    """A network in torch as a function of numpy observations."""

    def forward(observation: Observation) -> FloatArray:
        with torch.inference_mode():
            tensors = {
                key: torch.from_numpy(values).to(device) for key, values in observation.items()
            }
            return np.asarray(module(tensors).cpu().numpy())

    return forward


def quick_forward(torso: Torso | OtherTorso, head: nn.Sequential, device: torch.device) -> Forward:
    """A torso and what follows it as a function of numpy observations; in torch where it must."""
    return numpy_forward(torso, head) or torch_forward(lambda seen: head(torso(seen)), device)


def numpy_policy(model: ActorCritic) -> Forward | None:
    """The model's `policy` as a function of numpy observations, where `numpy_forward` can."""
    head = nn.Sequential(model.policy_head)
    return numpy_forward(model.actor_torso, head, constant=model.log_std)


def numpy_forward(
    torso: Torso | OtherTorso, head: nn.Sequential, *, constant: Tensor | None = None
) -> Forward | None:
    """A torso and what follows it as a function of numpy observations [R, ...] to float32 [R, P].

    It reads the parameters where the modules keep them, so it follows every in-place update. None
    where the modules are not on the CPU or are of other kinds than dense layers, layer
    normalisations, scalings and the activations of `ACTIVATIONS`, or have a hidden state.

    Args:
        torso: From observations to features.
        head: From features to outputs.
        constant: More outputs, the same for all observations.
    """
    rest = layers_behind(torso, head, constant)
    if rest is None or isinstance(torso, OtherTorso) or torso.embedder.recurrence is not None:
        return None
    passed = _pass(torso.embedder, rest)
    return None if passed is None else in_blocks(passed)


def layers_behind(
    torso: Torso | OtherTorso, head: nn.Sequential, constant: Tensor | None
) -> list[Layer] | None:
    """The layers behind a torso's embedder; None where they must be torch."""
    if isinstance(torso, OtherTorso) or not next(head.parameters()).is_cpu:
        return None
    middleware = _layers(torso.middleware)
    last = _layers(head)
    if middleware is None or last is None:
        return None
    more = [] if constant is None else [_with_constant(constant)]
    return [*middleware, *last, *more]


def _pass(embedder: ObservationEmbedder, rest: Sequence[Layer]) -> Forward | None:
    """An embedder and the layers behind it; None where it must be torch."""
    layers = layers_by_key(embedder)
    if layers is None:
        return None
    if len(layers) > 1:

        def passed(observation: Observation) -> FloatArray:
            parts = [through(own, observation[key]) for key, own in layers.items()]
            return through(rest, np.concatenate(parts, axis=1))

        return passed
    ((key, own),) = layers.items()
    all_layers = (*own, *rest)

    def passed_of_one(observation: Observation) -> FloatArray:
        values: Array = observation[key]
        for layer in all_layers:
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


def layers_by_key(embedder: ObservationEmbedder) -> dict[str, list[Layer]] | None:
    """The layers of each observation key; None where some must be torch."""
    found = {}
    for key, modules in zip(embedder.keys, embedder.embedders, strict=True):
        layers = _layers(modules)
        if layers is None:
            return None
        found[key] = layers
    return found


def _layers(modules: nn.Module) -> list[Layer] | None:
    """Return the modules as numpy functions; None if one of them is not known here."""
    layers: list[Layer] = []
    previous: nn.Module | None = None
    for module in modules.children():
        match previous, module:
            case nn.Linear(), Activate(name="relu"):
                layers[-1] = _dense(previous, rectified=True)
            case _:
                found = _module_layers(module)
                if found is None:
                    return None
                layers += found
        previous = module
    return layers


def _module_layers(module: nn.Module) -> list[Layer] | None:
    match module:
        case FlattenVector():
            return [_flatten, _unit] if module.is_scaled else [_flatten]
        case nn.Linear():
            return [_dense(module)]
        case nn.LayerNorm():
            return [_layer_norm(module)]
        case Normalise():
            return [_normalise(module)]
        case ScaleToBox():
            return [_scale(module)]
        case Activate() if module.name in ACTIVATIONS:
            return [ACTIVATIONS[module.name]]
        case nn.Sequential():
            return _layers(module)
        case _:
            return None


def through(layers: Sequence[Layer], values: Array) -> FloatArray:
    """The outputs of layers, one after the other."""
    for layer in layers:
        values = layer(values)
    return values


def _flatten(values: Array) -> FloatArray:
    row = values if values.ndim == 2 else values.reshape(len(values), prod(values.shape[1:]))
    return row.astype(np.float32, copy=False)


def _unit(values: FloatArray) -> FloatArray:
    return values / np.float32(255)


def _dense(layer: nn.Linear, *, rectified: bool = False) -> Layer:
    """The layer, and the ReLU behind it if `rectified`: in one pass over its output by oneDNN."""
    # Detached tensors share memory with the parameters, which are views of the flat tensor.
    tensors = layer.weight.detach(), layer.bias.detach()
    weight = tensors[0].numpy().T
    bias = tensors[1].numpy()
    is_wide = min(weight.shape) >= LEAST_SIDE and onednn_is_faster()
    then: Literal["relu", "none"] = "relu" if rectified else "none"

    def dense(values: FloatArray) -> FloatArray:
        if is_wide and len(values) >= BLOCK:
            return np.asarray(onednn_linear(torch.from_numpy(values), *tensors, then).numpy())
        output: FloatArray = values.dot(weight)  # quicker than @ for a few rows
        output += bias
        if rectified:
            np.maximum(output, 0, out=output)
        return output

    return dense


def _with_constant(constant: Tensor) -> Layer:
    """More outputs, the same for all rows."""
    more = constant.detach().numpy()

    def with_constant(values: FloatArray) -> FloatArray:
        rows, outputs = values.shape
        joined = np.empty((rows, outputs + len(more)), np.float32)  # faster than joining rows
        joined[:, :outputs] = values
        joined[:, outputs:] = more
        return joined

    return with_constant


def _layer_norm(layer: nn.LayerNorm) -> Layer:
    weight, bias = layer.weight.detach().numpy(), layer.bias.detach().numpy()

    def normalise(values: FloatArray) -> FloatArray:
        values -= values.mean(axis=1, keepdims=True)
        values /= np.sqrt((values * values).mean(axis=1, keepdims=True) + np.float32(layer.eps))
        values *= weight
        values += bias
        return values

    return normalise


def _normalise(layer: Normalise) -> Layer:
    mean = layer.mean.numpy()
    scale = layer.scale.numpy()
    clip = layer.clip

    def normalise(values: FloatArray) -> FloatArray:
        normal = (values.astype(np.float32, copy=False) - mean) * scale
        clipped: FloatArray = np.minimum(np.maximum(normal, -clip), clip)
        return clipped

    return normalise


def _scale(layer: ScaleToBox) -> Layer:
    low, half_range = layer.low.numpy(), layer.half_range.numpy()

    def scale(values: FloatArray) -> FloatArray:
        values += 1
        values *= half_range
        values += low
        return values

    return scale
