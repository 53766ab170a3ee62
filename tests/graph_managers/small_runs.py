"""PPO on a point mass, in a few hundred steps."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import BasicGraphParameters, ScheduleParameters


def ppo(**algorithm):
    return PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            **{"rollout": EnvironmentSteps(64), "epochs": 2, "minibatch": 16, **algorithm}
        ),
        update_mode="eager",
    )


def parameters(**schedule):
    return BasicGraphParameters(
        agent=ppo(),
        environment=PointMassParameters(),
        num_envs=4,
        schedule=ScheduleParameters(
            **{
                "training": EnvironmentSteps(400),
                "heatup": EnvironmentSteps(40),
                "evaluation_interval": EnvironmentSteps(100),
                "evaluation_episodes": EnvironmentEpisodes(3),
                "progress_interval": EnvironmentSteps(100),
                **schedule,
            }
        ),
    )
