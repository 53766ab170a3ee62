"""PPO on Acrobot: discrete actions and a reward that says nothing until the goal is reached."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)


def graph_manager(
    num_envs: int = 16, steps: int = 200_000, learning_rate: float = 3e-4, discount: float = 0.99
) -> BasicRLGraphManager:
    """PPO swings a two-link arm up to a line.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size.
        discount: Gamma.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(4096), discount=discount, gae_lambda=0.94
                ),
                optimizer=AdamParameters(
                    learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5
                ),
                input_filter=InputFilter(
                    observation={"observation": (ObservationNormalizationFilter(clip=10.0),)}
                ),
            ),
            environment=GymnasiumParameters(level="Acrobot-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=-100.0, within=EnvironmentSteps(200_000)),
        )
    )
