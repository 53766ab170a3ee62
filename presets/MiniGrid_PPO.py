"""PPO on levels of MiniGrid and BabyAI."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.minigrid_levels import MiniGridPanel
from coach_rl.presets.panels import ppo_optimizer


@dataclass(frozen=True, kw_only=True)
class Panel(MiniGridPanel):
    """Settings to change with -cp."""

    learning_rate: float = 1e-3
    """Learning rate."""
    gae_lambda: float = 0.95
    """Lambda of generalised advantage estimation."""
    rollout: int = 2048
    """Steps collected before each round of updates."""
    epochs: int = 4
    """Passes over a rollout."""
    minibatch: int = 256
    """Batch size."""
    entropy_coefficient: float = 5e-4
    """Weight of the entropy bonus. Where rewards are rare, larger ones keep the policy uniform."""
    normalise_advantage: bool = False
    """Give advantages of a minibatch mean 0 and standard deviation 1. Where rewards are rare, the
    critic's errors are most of what is learned then."""
    sequence: int = 32
    """Steps of a sequence that recurrent networks learn from."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO on a level of MiniGrid or BabyAI.

    Settings of rl-starter-files (16 environments, 128 steps of each in a rollout), but for the
    weight of the entropy, which is that of NovelD. Needs the extra `minigrid`.
    """
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            epochs=panel.epochs,
            minibatch=panel.minibatch,
            sequence=panel.sequence,
            discount=panel.discount,
            gae_lambda=panel.gae_lambda,
            entropy_coefficient=panel.entropy_coefficient,
            normalise_advantage=panel.normalise_advantage,
        ),
        network=rl.ActorCriticParameters(torso=panel.network(), shared_torso=True),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    return panel.experiment(agent)
