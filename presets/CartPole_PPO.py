"""PPO on CartPole: the smallest run that shows everything, solved in well under a minute."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)


def graph_manager(
    num_envs: int = 8, steps: int = 100_000, learning_rate: float = 1e-3, discount: float = 0.98
) -> BasicRLGraphManager:
    """PPO balances a pole on a cart.

    Settings after RL Baselines3 Zoo's tuned CartPole-v1.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size at the start; it falls to zero.
        discount: Gamma.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(256),
                    epochs=20,
                    minibatch=256,
                    discount=discount,
                    gae_lambda=0.8,
                    clip_schedule=LinearSchedule(start=1.0, end=0.0),
                    learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                ),
                optimizer=AdamParameters(
                    learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5
                ),
            ),
            environment=GymnasiumParameters(level="CartPole-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(5_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=475.0, within=EnvironmentSteps(100_000)),
        )
    )
