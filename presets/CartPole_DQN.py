"""DQN on CartPole: the smallest run from a replay memory, solved in a minute or two."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import DQNPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(DQNPanel):
    """Settings to change with -cp."""

    steps: int = 50_000
    learning_rate: float = 2.3e-3
    target_period: int = 128
    epsilon: float = 0.04
    epsilon_steps: int = 8_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DQN balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1, which learns in bursts of 128 gradient
    steps after every 256 steps and updates the target network between the bursts.
    """
    return flat(
        panel,
        panel.agent(memory=100_000, batch=64, updates_per_step=0.5, learning_starts=1_000),
        rl.GymnasiumParameters(level="CartPole-v1"),
        panel.schedule(evaluation_interval=2_500),
        validation=solved(475.0, within=100_000),
    )
