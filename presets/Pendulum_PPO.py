"""PPO on Pendulum: continuous actions, episodes that end by their time limit only."""

from dataclasses import dataclass

from coach_rl import (
    ActorCriticParameters,
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GymnasiumParameters,
    LinearBoxToBoxMap,
    LinearSchedule,
    OutputFilter,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    num_envs: int = 8
    """Environments in parallel."""
    steps: int = 200_000
    """Environment steps to train for."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.9
    """Discount factor; low, as in RL Baselines3 Zoo's tuned Pendulum-v1."""


def graph_manager(panel: Panel) -> GraphManager:
    """PPO swings a pendulum up and holds it there."""
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(2048),
            discount=panel.discount,
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
            recompute_advantages=True,
            scale_returns=True,
        ),
        network=ActorCriticParameters(initial_log_std=-0.5),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        output_filter=OutputFilter(action=(LinearBoxToBoxMap(low=-1.0, high=1.0),)),
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level="Pendulum-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=-200.0, within=EnvironmentSteps(200_000)),
        )
    )
