"""PPO on Acrobot: discrete actions and a reward that says nothing until the goal is reached."""

from dataclasses import dataclass

from coach_rl import (
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GymnasiumParameters,
    InputFilter,
    ObservationNormalizationFilter,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    num_envs: int = 16
    """Environments in parallel."""
    steps: int = 200_000
    """Environment steps to train for."""
    learning_rate: float = 3e-4
    """Learning rate of actor and critic."""
    discount: float = 0.99
    """Discount factor."""


def graph_manager(panel: Panel) -> GraphManager:
    """PPO swings a two-link arm up to a line."""
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(4096), discount=panel.discount, gae_lambda=0.94
        ),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        input_filter=InputFilter(
            observation={"observation": (ObservationNormalizationFilter(clip=10.0),)}
        ),
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level="Acrobot-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=-100.0, within=EnvironmentSteps(200_000)),
        )
    )
