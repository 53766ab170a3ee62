"""SAC on Pendulum: continuous actions, learned in a minute."""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    SEARCH: ClassVar = "learning_rate=log(1e-4, 3e-3); discount=uniform(0.95, 0.995)"
    num_envs: int = 1
    steps: int = 20_000
    """Environment steps to train for, heat-up included."""
    learning_rate: float = 1e-3
    """Learning rate of actor and critics at the start; it falls to zero."""
    discount: float = 0.98
    """Discount factor, as in RL Baselines3 Zoo's tuned Pendulum-v1."""
    layers: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers of actor and critics."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC swings a pendulum up and holds it there."""
    torso = rl.TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    agent = rl.SACAgentParameters(
        actor=rl.ActorParameters(torso=torso),
        critic=rl.CriticParameters(torso=torso),
        algorithm=rl.SACAlgorithmParameters(discount=panel.discount),
        learning=rl.LearningParameters(batch=256),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        memory=rl.ReplayMemoryParameters(capacity=200_000),
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
