"""A small policy's forward pass in numpy, on the same memory as the torch parameters.

Acting evaluates a few rows at a time, where torch's cost per operation is several times the
arithmetic: 64-64 tanh on 8 rows takes 70 us in torch and 15 us here. Made for dense policies on the
CPU; others act in torch. Thousands of rows, such as HIRO's candidates, are passed through in blocks
that stay in the processor's cache, by oneDNN where that is faster.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.actor_critic import ActorCritic
from coach_rl.architectures.layers import Activate, ScaleToBox
from coach_rl.architectures.observation_normaliser import Normalise
from coach_rl.architectures.onednn import LEAST_SIDE, onednn_is_faster, onednn_linear
from coach_rl.architectures.recurrence import is_recurrent
from coach_rl.architectures.torso import FlattenVector, Torso
from coach_rl.architectures.user_module import ModuleTorso
from coach_rl.core.records import Array, FloatArray, Observation

Layer = Callable[[FloatArray], FloatArray]
Forward = Callable[[Observation], FloatArray]
"""Outputs [R, P] of numpy observations [R, ...] each."""

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


def recurrent_forward(
    networks: Sequence[nn.Module],
    act: Callable[[dict[str, Tensor]], tuple[Tensor, Tensor | None]],
    device: torch.device,
    *others: Callable[[dict[str, Tensor]], Tensor | None],
) -> Forward | None:
    """Outputs and the hidden states after them, [R, P + H], of numpy observations.

    Args:
        networks: The agent's, in the order of their hidden states; None if none is recurrent.
        act: Outputs [R, P] and the hidden states of the first network.
        device: The networks'.
        others: The hidden states of the others.
    """
    if not is_recurrent(networks):
        return None

    def advanced(observation: dict[str, Tensor]) -> Tensor:
        outputs, state = act(observation)
        parts = [outputs, state, *(advance(observation) for advance in others)]
        return torch.cat([part for part in parts if part is not None], dim=1)

    return torch_forward(advanced, device)


def quick_forward(torso: Torso | ModuleTorso, head: nn.Sequential, device: torch.device) -> Forward:
    """A torso and what follows it as a function of numpy observations; in torch where it must."""
    return numpy_forward(torso, head) or torch_forward(lambda seen: head(torso(seen)), device)


def numpy_forward(torso: Torso | ModuleTorso, head: nn.Sequential) -> Forward | None:
    """A torso and what follows it as a function of numpy observations [R, ...] to float32 [R, P].

    It reads the parameters where the modules keep them, so it follows every in-place update. None
    where the modules are not on the CPU or are of other kinds than dense layers, layer
    normalisations, scalings and the activations of `ACTIVATIONS`.
    """
    if isinstance(torso, ModuleTorso) or torso.embedder.recurrence is not None:
        return None
    if any(parameter.device.type != "cpu" for parameter in head.parameters()):
        return None
    embedded = zip(torso.embedder.keys, torso.embedder.embedders, strict=True)
    embedders = {key: _layers(embedder) for key, embedder in embedded}
    middleware, last = _layers(torso.middleware), _layers(head)
    if middleware is None or last is None:
        return None
    known = {key: layers for key, layers in embedders.items() if layers is not None}
    if len(known) < len(embedders):
        return None
    rest = [*middleware, *last]

    def passed(observation: Observation) -> FloatArray:
        parts = [_through(layers, observation[key]) for key, layers in known.items()]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        for layer in rest:
            values = layer(values)
        return values

    def forward(observation: Observation) -> FloatArray:
        rows = len(next(iter(observation.values())))
        if rows < 2 * BLOCK:
            return passed(observation)
        bounds = np.linspace(0, rows, 1 + rows // BLOCK, dtype=np.int64)  # none shorter than BLOCK
        blocks = (slice(*each) for each in pairwise(bounds))
        pieces = ({key: values[each] for key, values in observation.items()} for each in blocks)
        return np.concatenate([passed(piece) for piece in pieces])

    return forward


def numpy_policy(model: ActorCritic) -> Forward | None:
    """The model's `policy` as a function of numpy observations, where `numpy_forward` can."""
    forward = numpy_forward(model.actor_torso, nn.Sequential(model.policy_head))
    if forward is None or model.log_std is None:
        return forward
    log_std = model.log_std.detach().numpy()

    def policy(observation: Observation) -> FloatArray:
        values = forward(observation)
        parameters = np.empty((len(values), 2 * len(log_std)), np.float32)
        parameters[:, : len(log_std)] = values
        parameters[:, len(log_std) :] = log_std
        return parameters

    return policy


def _layers(modules: nn.Module) -> list[Layer] | None:
    """Return the modules as numpy functions; None if one of them is not known here."""
    layers: list[Layer] = []
    previous: nn.Module | None = None
    for module in modules.children():
        if isinstance(previous, nn.Linear) and _is_relu(module):
            layers[-1] = _dense(previous, rectified=True)
        else:
            found = _module_layers(module)
            if found is None:
                return None
            layers += found
        previous = module
    return layers


def _is_relu(module: nn.Module) -> bool:
    return isinstance(module, Activate) and module.name == "relu"


def _module_layers(module: nn.Module) -> list[Layer] | None:
    match module:
        case FlattenVector():
            return [_flatten]
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


def _through(layers: list[Layer], values: Array) -> FloatArray:
    for layer in layers:
        values = layer(values)
    return values


def _flatten(values: Array) -> FloatArray:
    return values.reshape(len(values), -1).astype(np.float32, copy=False)


def _dense(layer: nn.Linear, *, rectified: bool = False) -> Layer:
    """The layer, and the ReLU behind it if `rectified`: in one pass over its output by oneDNN."""
    # Detached tensors share memory with the parameters, which are views of the flat tensor.
    tensors = layer.weight.detach(), layer.bias.detach()
    weight, bias = tensors[0].numpy().T, tensors[1].numpy()
    is_wide = min(weight.shape) >= LEAST_SIDE and onednn_is_faster()
    then: Literal["relu", "none"] = "relu" if rectified else "none"
    activate = ACTIVATIONS[then]

    def dense(values: FloatArray) -> FloatArray:
        if is_wide and len(values) >= BLOCK:
            return np.asarray(onednn_linear(torch.from_numpy(values), *tensors, then).numpy())
        output: FloatArray = values @ weight
        output += bias
        return activate(output)

    return dense


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
    mean, scale, clip = layer.mean.numpy(), layer.scale.numpy(), layer.clip

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
