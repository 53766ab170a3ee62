"""Functions by which networks act that may have a hidden state: outputs, and the states after."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.architectures.actor_critic import ActorCritic
from coach_rl.architectures.hidden_states import stateful_layers
from coach_rl.architectures.numpy_layers import in_blocks, through
from coach_rl.architectures.numpy_policy import (
    layers_behind,
    layers_by_key,
    numpy_policy,
    torch_forward,
)
from coach_rl.architectures.other_torso import OtherTorso
from coach_rl.architectures.output_rules import Forward
from coach_rl.architectures.torso import ObservationEmbedder, Torso
from coach_rl.core.records import HIDDEN_STATE, FloatArray, Observation


def policy_forward(model: ActorCritic, device: torch.device) -> Forward:
    """The model's `policy` as a function of numpy observations; with hidden states, if any."""
    other = model.critic_torso
    stateful = recurrent_forward(
        model.actor_torso,
        nn.Sequential(model.policy_head),
        device,
        None if other is None or isinstance(other, OtherTorso) else other.embedder,
        constant=model.log_std,
    )
    return stateful or numpy_policy(model) or torch_forward(model.policy, device)


def recurrent_forward(
    torso: Torso | OtherTorso,
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
    if not stateful_layers((torso, *others)):
        return None

    def advanced(observation: dict[str, Tensor]) -> Tensor:
        features, state = torso.advance(observation)
        parts = [head(features), state, *(each.advance(observation)[1] for each in others)]
        if constant is not None:
            parts.insert(1, constant.expand(len(features), -1))
        return torch.cat([part for part in parts if part is not None], dim=1)

    in_numpy = None
    if isinstance(head, nn.Sequential) and isinstance(torso, Torso):
        in_numpy = _in_numpy(torso, head, others, constant)
    return in_numpy or torch_forward(advanced, device)


def _in_numpy(
    torso: Torso,
    head: nn.Sequential,
    others: Sequence[ObservationEmbedder],
    constant: Tensor | None,
) -> Forward | None:
    """`recurrent_forward` in numpy; None where it must be torch."""
    rest = layers_behind(torso, head, constant)
    embedders = [each for each in map(_advance, (torso.embedder, *others)) if each is not None]
    if rest is None or len(embedders) <= len(others):
        return None
    first, *following = embedders

    def passed(observation: Observation) -> FloatArray:
        values, state = first(observation)
        if state is not None:
            values = values.copy()  # layers write to their input
        values = through(rest, values)
        states = [state, *(each(observation)[1] for each in following)]
        return np.concatenate([values, *(each for each in states if each is not None)], axis=1)

    return in_blocks(passed)


def _advance(
    embedder: ObservationEmbedder,
) -> Callable[[Observation], tuple[FloatArray, FloatArray | None]] | None:
    """`ObservationEmbedder.advance` in numpy, one step; None where it must be torch."""
    known = layers_by_key(embedder)
    layer = embedder.recurrence
    step = None if layer is None else layer.numpy_step()
    if known is None or (layer is not None and step is None):
        return None

    def advanced(observation: Observation) -> tuple[FloatArray, FloatArray | None]:
        parts = [through(layers, observation[key]) for key, layers in known.items()]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
        return (values, None) if step is None else step(values, observation[HIDDEN_STATE])

    return advanced
