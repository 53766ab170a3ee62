"""DQN lands on the moon: shaped rewards, an engine to switch on and off, some minutes."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import DQNPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(DQNPanel):
    """Settings to change with -cp."""

    steps: int = 200_000
    learning_rate: float = 6.3e-4
    """Learning rate at the start; it falls to zero."""
    target_period: int = 250
    epsilon: float = 0.1
    epsilon_steps: int = 12_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DQN lands a craft between two flags.

    Settings after RL Baselines3 Zoo's tuned LunarLander, one gradient step per environment step.
    Needs the extra `box2d`.
    """
    return flat(
        panel,
        panel.agent(memory=50_000, batch=128, updates_per_step=1.0, learning_starts=128),
        rl.GymnasiumParameters(level="LunarLander-v3"),
        panel.schedule(evaluation_interval=10_000, evaluation_episodes=20),
        validation=solved(200.0, within=200_000),
    )
