"""DDPG on Pendulum: continuous actions, learned in a minute."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    num_envs: int = 1
    steps: int = 20_000
    """Environment steps to train for, heat-up included."""
    learning_rate: float = 1e-3
    """Learning rate of actor and critic at the start; it falls to zero."""
    discount: float = 0.98
    """Discount factor, as in RL Baselines3 Zoo's tuned Pendulum-v1."""
    noise: float = 0.1
    """Standard deviation of the exploration noise, in half-ranges of the action."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DDPG swings a pendulum up and holds it there."""
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    agent = rl.DDPGAgentParameters(
        algorithm=rl.DDPGAlgorithmParameters(discount=panel.discount),
        learning=rl.LearningParameters(batch=256),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        memory=rl.ReplayMemoryParameters(capacity=200_000),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor_optimizer=adam,
        critic_optimizer=adam,
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="Pendulum-v1"),
        panel.schedule(evaluation_interval=2_000, evaluation_episodes=20, heatup=1_000),
        validation=solved(-200.0, within=20_000),
        threads=2,
    )
