"""Networks as functions of numpy observations: in numpy where they can be, else in torch."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.actor_critic import ActorCritic
from coach_rl.architectures.layers import Activate, FlattenVector, ScaleToBox
from coach_rl.architectures.numpy_layers import (
    ACTIVATIONS,
    Layer,
    dense,
    flat_rows,
    in_blocks,
    joint_pass,
    layer_norm,
    normaliser,
    scaler,
    unit,
    with_constant,
)
from coach_rl.architectures.observation_normaliser import Normalise
from coach_rl.architectures.other_torso import OtherTorso
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.torso import ObservationEmbedder, Torso
from coach_rl.core.records import FloatArray, Observation


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
    first = layers_by_key(torso.embedder)
    return None if first is None else in_blocks(joint_pass(first, rest))


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
    more = [] if constant is None else [with_constant(constant)]
    return [*middleware, *last, *more]


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
                layers[-1] = dense(previous, rectified=True)
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
            return [flat_rows, unit] if module.is_scaled else [flat_rows]
        case nn.Linear():
            return [dense(module)]
        case nn.LayerNorm():
            return [layer_norm(module)]
        case Normalise():
            return [normaliser(module)]
        case ScaleToBox():
            return [scaler(module)]
        case Activate() if module.name in ACTIVATIONS:
            return [ACTIVATIONS[module.name]]
        case nn.Sequential():
            return _layers(module)
        case _:
            return None
