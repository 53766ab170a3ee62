"""DDPG on Pendulum: continuous actions, learned in a minute."""

from dataclasses import dataclass

from coach_rl import (
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    ConstantSchedule,
    DDPGAgentParameters,
    DDPGAlgorithmParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GaussianNoise,
    GraphManager,
    GymnasiumParameters,
    LearningParameters,
    LinearSchedule,
    ReplayMemoryParameters,
    ScheduleParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    num_envs: int = 1
    """Environments in parallel."""
    steps: int = 20_000
    """Environment steps to train for, heat-up included."""
    learning_rate: float = 1e-3
    """Learning rate of actor and critic at the start; it falls to zero."""
    discount: float = 0.98
    """Discount factor, as in RL Baselines3 Zoo's tuned Pendulum-v1."""
    noise: float = 0.1
    """Standard deviation of the exploration noise, in half-ranges of the action."""


def graph_manager(panel: Panel) -> GraphManager:
    """DDPG swings a pendulum up and holds it there."""
    agent = DDPGAgentParameters(
        algorithm=DDPGAlgorithmParameters(discount=panel.discount),
        learning=LearningParameters(batch=256),
        learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        memory=ReplayMemoryParameters(capacity=200_000),
        exploration=GaussianNoise(scale=ConstantSchedule(value=panel.noise)),
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
