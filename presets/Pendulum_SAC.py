"""SAC on Pendulum: continuous actions, learned in a minute."""

from dataclasses import dataclass
from typing import ClassVar

from coach_rl import (
    ActorParameters,
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    CriticParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GymnasiumParameters,
    LearningParameters,
    LinearSchedule,
    ReplayMemoryParameters,
    SACAgentParameters,
    SACAlgorithmParameters,
    ScheduleParameters,
    TorsoParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    SEARCH: ClassVar = "learning_rate=log(1e-4, 3e-3); discount=uniform(0.95, 0.995)"
    num_envs: int = 1
    """Environments in parallel."""
    steps: int = 20_000
    """Environment steps to train for, heat-up included."""
    learning_rate: float = 1e-3
    """Learning rate of actor and critics at the start; it falls to zero."""
    discount: float = 0.98
    """Discount factor, as in RL Baselines3 Zoo's tuned Pendulum-v1."""
    layers: tuple[int, ...] = (256, 256)
    """Sizes of the hidden layers of actor and critics."""


def graph_manager(panel: Panel) -> GraphManager:
    """SAC swings a pendulum up and holds it there."""
    torso = TorsoParameters(middleware=panel.layers, activation="relu", orthogonal=False)
    agent = SACAgentParameters(
        actor=ActorParameters(torso=torso),
        critic=CriticParameters(torso=torso),
        algorithm=SACAlgorithmParameters(discount=panel.discount),
        learning=LearningParameters(batch=256),
        learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        memory=ReplayMemoryParameters(capacity=200_000),
        actor_optimizer=AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=AdamParameters(learning_rate=panel.learning_rate),
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level="Pendulum-v1"),
            threads=2,
            schedule=ScheduleParameters(
                heatup=EnvironmentSteps(1_000),
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(2_000),
                evaluation_episodes=EnvironmentEpisodes(20),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=-200.0, within=EnvironmentSteps(20_000)),
        )
    )
