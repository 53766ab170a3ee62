"""PPO on Atari games, from pictures."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.atari_games import AtariPanel
from coach_rl.presets.panels import ppo_optimizer


@dataclass(frozen=True, kw_only=True)
class Panel(AtariPanel):
    """Settings to change with -cp."""

    learning_rate: float = 2.5e-4
    """Learning rate at the start; it falls to zero."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    clip: float = 0.1
    """Clip range of the policy's probability ratio at the start; it falls to zero."""
    rollout: int = 1024
    """Steps collected before each round of updates."""
    epochs: int = 4
    """Passes over a rollout."""
    minibatch: int = 256
    """Batch size."""
    entropy_coefficient: float = 0.01
    """Weight of the entropy bonus."""
    sequence: int = 64
    """Steps of a sequence that recurrent networks learn from."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO on an Atari game.

    Settings of RL Baselines3 Zoo for all games, which are those of the paper. Needs the extra
    `atari`.
    """
    falling = rl.LinearSchedule(start=1.0, end=0.0)
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            epochs=panel.epochs,
            minibatch=panel.minibatch,
            sequence=panel.sequence,
            discount=panel.discount,
            gae_lambda=panel.gae_lambda,
            clip=panel.clip,
            clip_schedule=falling,
            learning_rate_schedule=falling,
            entropy_coefficient=panel.entropy_coefficient,
        ),
        network=rl.ActorCriticParameters(
            torso=panel.network(orthogonal=True),
            shared_torso=True,
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
        input_filter=panel.input_filter,
    )
    return panel.experiment(agent)
