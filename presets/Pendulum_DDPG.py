"""DDPG on Pendulum: continuous actions, learned in a minute."""

from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.optimizers import AdamParameters
from coach_rl.core.schedules import ConstantSchedule, LinearSchedule
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.exploration_policies import GaussianNoise
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
    ValidationParameters,
)
from coach_rl.memories import ReplayMemoryParameters


def graph_manager(
    num_envs: int = 1,
    steps: int = 20_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    noise: float = 0.1,
) -> BasicRLGraphManager:
    """DDPG swings a pendulum up and holds it there.

    Args:
        num_envs: Environments in parallel.
        steps: Environment steps to train for, heat-up included.
        learning_rate: Adam's step size at first, of actor and critic; it falls to 0 over the run.
        discount: Gamma, as in RL Baselines3 Zoo's tuned Pendulum-v1.
        noise: Deviation of the exploration, in halves of the action range.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=DDPGAgentParameters(
                algorithm=DDPGAlgorithmParameters(discount=discount),
                learning=LearningParameters(batch=256),
                learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
                memory=ReplayMemoryParameters(capacity=200_000),
                exploration=GaussianNoise(scale=ConstantSchedule(value=noise)),
                actor_optimizer=AdamParameters(learning_rate=learning_rate),
                critic_optimizer=AdamParameters(learning_rate=learning_rate),
            ),
            environment=GymnasiumParameters(level="Pendulum-v1"),
            schedule=ScheduleParameters(
                heatup=EnvironmentSteps(1_000),
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(2_000),
                evaluation_episodes=EnvironmentEpisodes(20),
            ),
            num_envs=num_envs,
            validation=ValidationParameters(reward=-200.0, within=EnvironmentSteps(20_000)),
        )
    )
