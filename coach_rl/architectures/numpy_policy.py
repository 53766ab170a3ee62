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
from coach_rl.architectures.hidden_states import has_hidden_state
from coach_rl.architectures.layers import Activate, ScaleToBox
from coach_rl.architectures.observation_normaliser import Normalise
from coach_rl.architectures.onednn import LEAST_SIDE, onednn_is_faster, onednn_linear
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.torso import FlattenVector, ObservationEmbedder, Torso
from coach_rl.architectures.user_module import ModuleTorso
from coach_rl.core.records import HIDDEN_STATE, Array, FloatArray, Observation

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


def recurrent_forward(
    torso: Torso | ModuleTorso,
    head: Callable[[Tensor], Tensor],
    device: torch.device,
    other: ObservationEmbedder | None = None,
    *,
    constant: Tensor | None = None,
) -> Forward | None:
    """Outputs and the hidden states after them, [R, P + H], of numpy observations.

    Args:
        torso: Comes first in the hidden state.
        head: From the torso's features to outputs.
        device: Of the networks.
        other: Another network's layers that may have a hidden state, the next part of it.
        constant: More outputs, the same for all observations.

    Returns:
        The function; None where there is no hidden state.
    """
    others = () if other is None else (other,)
    if not has_hidden_state((torso, *others)):
        return None

    def advanced(observation: dict[str, Tensor]) -> Tensor:
        features, state = torso.advance(observation)
        parts = [head(features), state, *(each.advance(observation)[1] for each in others)]
        if constant is not None:
            parts.insert(1, constant.expand(len(features), -1))
        return torch.cat([part for part in parts if part is not None], dim=1)

    in_numpy = None
    if isinstance(head, nn.Sequential):
        in_numpy = numpy_forward(torso, head, others, constant=constant)
    return in_numpy or torch_forward(advanced, device)


def policy_forward(model: ActorCritic, device: torch.device) -> Forward:
    """The model's `policy` as a function of numpy observations; with hidden states, if any."""
    other = model.critic_torso
    stateful = recurrent_forward(
        model.actor_torso,
        nn.Sequential(model.policy_head),
        device,
        None if other is None or isinstance(other, ModuleTorso) else other.embedder,
        constant=model.log_std,
    )
    return stateful or numpy_policy(model) or torch_forward(model.policy, device)


def quick_forward(torso: Torso | ModuleTorso, head: nn.Sequential, device: torch.device) -> Forward:
    """A torso and what follows it as a function of numpy observations; in torch where it must."""
    return numpy_forward(torso, head) or torch_forward(lambda seen: head(torso(seen)), device)


def numpy_policy(model: ActorCritic) -> Forward | None:
    """The model's `policy` as a function of numpy observations, where `numpy_forward` can."""
    head = nn.Sequential(model.policy_head)
    return numpy_forward(model.actor_torso, head, constant=model.log_std)


def numpy_forward(
    torso: Torso | ModuleTorso,
    head: nn.Sequential,
    others: Sequence[ObservationEmbedder] = (),
    *,
    constant: Tensor | None = None,
) -> Forward | None:
    """A torso and what follows it as a function of numpy observations [R, ...] to float32 [R, P].

    It reads the parameters where the modules keep them, so it follows every in-place update. None
    where the modules are not on the CPU or are of other kinds than dense layers, layer
    normalisations, scalings and the activations of `ACTIVATIONS`. Further arguments are those of
    `recurrent_forward`, whose function it is where there are hidden states.
    """
    if isinstance(torso, ModuleTorso) or not next(head.parameters()).is_cpu:
        return None
    middleware = _layers(torso.middleware)
    last = _layers(head)
    if middleware is None or last is None:
        return None
    rest = [*middleware, *last]
    if constant is not None:
        rest.append(_with_constant(constant))
    if has_hidden_state((torso, *others)):
        passed = _recurrent_pass(torso.embedder, rest, others)
    else:
        passed = _pass(torso.embedder, rest)
    return None if passed is None else _in_blocks(passed)


def _pass(embedder: ObservationEmbedder, rest: Sequence[Layer]) -> Forward | None:
    """An embedder and the layers behind it; None where it must be torch."""
    layers = _layers_by_key(embedder)
    if layers is None:
        return None
    if len(layers) > 1:

        def passed(observation: Observation) -> FloatArray:
            parts = [_through(own, observation[key]) for key, own in layers.items()]
            return _through(rest, np.concatenate(parts, axis=1))

        return passed
    ((key, own),) = layers.items()
    through = (*own, *rest)

    def passed_of_one(observation: Observation) -> FloatArray:
        values: Array = observation[key]
        for layer in through:
            values = layer(values)
        return values

    return passed_of_one


def _recurrent_pass(
    embedder: ObservationEmbedder, rest: Sequence[Layer], others: Sequence[ObservationEmbedder]
) -> Forward | None:
    """The same with hidden states behind the outputs; those of other embedders come last."""
    embedders = [each for each in map(_advance, (embedder, *others)) if each is not None]
    if len(embedders) <= len(others):
        return None
    first, *following = embedders

    def passed(observation: Observation) -> FloatArray:
        values, state = first(observation)
        if state is not None:
            values = values.copy()  # layers write to their input
        values = _through(rest, values)
        states = [state, *(each(observation)[1] for each in following)]
        return np.concatenate([values, *(each for each in states if each is not None)], axis=1)

    return passed


def _in_blocks(passed: Forward) -> Forward:
    """The same function, which gets thousands of rows in blocks."""

    def forward(observation: Observation) -> FloatArray:
        rows = len(next(iter(observation.values())))
        if rows < 2 * BLOCK:
            return passed(observation)
        bounds = np.linspace(0, rows, 1 + rows // BLOCK, dtype=np.int64)  # none shorter than BLOCK
        blocks = (slice(*each) for each in pairwise(bounds))
        pieces = ({key: values[each] for key, values in observation.items()} for each in blocks)
        return np.concatenate([passed(piece) for piece in pieces])

    return forward


def _layers_by_key(embedder: ObservationEmbedder) -> dict[str, list[Layer]] | None:
    """The layers of each observation key; None where some must be torch."""
    found = {}
    for key, modules in zip(embedder.keys, embedder.embedders, strict=True):
        layers = _layers(modules)
        if layers is None:
            return None
        found[key] = layers
    return found


def _advance(
    embedder: ObservationEmbedder,
) -> Callable[[Observation], tuple[FloatArray, FloatArray | None]] | None:
    """`ObservationEmbedder.advance` in numpy, one step; None where it must be torch."""
    known = _layers_by_key(embedder)
    layer = embedder.recurrence
    step = None if layer is None else layer.numpy_step()
    if known is None or (layer is not None and step is None):
        return None

    def advanced(observation: Observation) -> tuple[FloatArray, FloatArray | None]:
        parts = [_through(layers, observation[key]) for key, layers in known.items()]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return (values, None) if step is None else step(values, observation[HIDDEN_STATE])

    return advanced


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


def _through(layers: Sequence[Layer], values: Array) -> FloatArray:
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
        output: FloatArray = values @ weight
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
