"""PPO on CartPole: the smallest run that shows everything, solved in well under a minute."""

from dataclasses import dataclass

from coach_rl import (
    AdamParameters,
    BasicGraphParameters,
    BasicRLGraphManager,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GymnasiumParameters,
    LinearSchedule,
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
    steps: int = 100_000
    """Environment steps to train for."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.98
    """Discount factor."""


def graph_manager(panel: Panel) -> GraphManager:
    """PPO balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1.
    """
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(256),
            epochs=20,
            minibatch=256,
            discount=panel.discount,
            gae_lambda=0.8,
            clip_schedule=LinearSchedule(start=1.0, end=0.0),
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        ),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
    )
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level="CartPole-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(5_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=panel.num_envs,
            validation=ValidationParameters(reward=475.0, within=EnvironmentSteps(100_000)),
        )
    )
