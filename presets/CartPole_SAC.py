"""SAC on CartPole: discrete actions, learned from a replay memory in a few minutes."""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, flat, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    SEARCH: ClassVar = "learning_rate=log(1e-4, 3e-3); entropy=uniform(0.1, 0.98)"
    num_envs: int = 1
    steps: int = 20_000
    """Environment steps to train for, heat-up included."""
    learning_rate: float = 3e-3
    """Learning rate of actor, critics and temperature at the start; it falls to zero."""
    discount: float = 0.99
    """Discount factor."""
    entropy: float = 0.5
    """Target entropy as a share of that of even choices."""
    layers: tuple[int, ...] = (128, 128)
    """Sizes of the hidden layers of actor and critics."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC with discrete actions balances a pole on a cart."""
    torso = rl.TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    adam = rl.AdamParameters(learning_rate=panel.learning_rate)
    agent = rl.SACAgentParameters(
        actor=rl.ActorParameters(torso=torso),
        critic=rl.CriticParameters(torso=torso),
        algorithm=rl.SACAlgorithmParameters(
            discount=panel.discount,
            target_entropy_scale=panel.entropy,
            target_sync=rl.TargetSync(rate=0.02),
        ),
        learning=rl.LearningParameters(batch=128),
        learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
        memory=rl.ReplayMemoryParameters(capacity=20_000),
        actor_optimizer=adam,
        critic_optimizer=adam,
        temperature_optimizer=adam,
    )
    return flat(
        panel,
        agent,
        rl.GymnasiumParameters(level="CartPole-v1"),
        panel.schedule(evaluation_interval=2_000, heatup=1_000),
        validation=solved(475.0, within=20_000),
    )
