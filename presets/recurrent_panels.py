"""Recurrent layers that presets choose by a word, and PPO that learns from sequences."""

from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, ppo_optimizer

Recurrence = Literal["none", "gru", "lstm", "min_gru", "attention"]
"""Kinds of recurrent layers, for panels."""


def recurrent_layer(
    kind: Recurrence, size: int, *, skip: bool = False, span: int | None = None
) -> rl.GRU | rl.LSTM | rl.MinGRU | rl.Attention | None:
    """The recurrent layer of a torso; None where there is none.

    Attention sees the newest 16 inputs, and has no use for a span.
    """
    match kind:
        case "gru":
            return rl.GRU(size=size, skip=skip, span=span)
        case "lstm":
            return rl.LSTM(size=size, skip=skip, span=span)
        case "min_gru":
            return rl.MinGRU(size=size, skip=skip, span=span)
        case "attention":
            return rl.Attention(size=size, skip=skip)
    return None


def recurrent_torso(kind: Recurrence) -> rl.TorsoParameters:
    """A torso that reads observations as they are, for tasks that hide velocities."""
    layer = recurrent_layer(kind, size=64, skip=True)
    return rl.TorsoParameters(embedder=(), recurrence=layer, middleware=(64, 64))


def recurrent_ppo(
    panel: FlatPanel,
    torso: rl.TorsoParameters,
    *,
    entropy_coefficient: float,
    sequence: int = 64,
) -> rl.PPOAgentParameters:
    """PPO that learns from sequences of up to so many steps, in four minibatches per epoch."""
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(128 * panel.num_envs),
            epochs=5,
            minibatch=32 * panel.num_envs,
            sequence=sequence,
            discount=panel.discount,
            entropy_coefficient=entropy_coefficient,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        network=rl.ActorCriticParameters(torso=torso),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
