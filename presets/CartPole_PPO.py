"""PPO on CartPole: the smallest run that shows everything, solved in well under a minute."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    steps: int = 100_000
    learning_rate: float = 1e-3
    discount: float = 0.98


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1.
    """
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(256),
            epochs=20,
            minibatch=256,
            discount=panel.discount,
            gae_lambda=0.8,
            clip_schedule=rl.LinearSchedule(start=1.0, end=0.0),
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="CartPole-v1"),
        panel.schedule(evaluation_interval=5_000),
        validation=solved(475.0, within=100_000),
    )
