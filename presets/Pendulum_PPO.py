"""PPO on Pendulum: continuous actions, episodes that end by their time limit only."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    steps: int = 200_000
    learning_rate: float = 1e-3
    discount: float = 0.9
    """Discount factor; low, as in RL Baselines3 Zoo's tuned Pendulum-v1."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """PPO swings a pendulum up and holds it there."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(2048),
            discount=panel.discount,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
            recompute_advantages=True,
            scale_returns=True,
        ),
        network=rl.ActorCriticParameters(initial_log_std=-0.5),
        optimizer=ppo_optimizer(panel.learning_rate),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),)),
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="Pendulum-v1"),
        panel.schedule(evaluation_interval=10_000),
        validation=solved(-200.0, within=200_000),
    )
