"""PPO on Pendulum: continuous actions, episodes that end by their time limit only."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.filters import LinearBoxToBoxMap, OutputFilter
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)


def graph_manager(
    num_envs: int = 8, steps: int = 200_000, learning_rate: float = 1e-3, discount: float = 0.9
) -> BasicRLGraphManager:
    """PPO swings a pendulum up and holds it there.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size at the start; it falls to zero.
        discount: Gamma; low, as in RL Baselines3 Zoo's tuned Pendulum-v1.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(2048),
                    discount=discount,
                    learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                    recompute_advantages=True,
                    scale_returns=True,
                ),
                network=ActorCriticParameters(initial_log_std=-0.5),
                optimizer=AdamParameters(
                    learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5
                ),
                output_filter=OutputFilter(action=(LinearBoxToBoxMap(low=-1.0, high=1.0),)),
            ),
            environment=GymnasiumParameters(level="Pendulum-v1"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(10_000),
                evaluation_episodes=EnvironmentEpisodes(10),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=-200.0, within=EnvironmentSteps(200_000)),
        )
    )
