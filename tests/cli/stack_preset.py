"""A little stack: PPO above PPO, on the point mass."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import (
    GraphParameters,
    HRLGraphManager,
    LevelParameters,
    ScheduleParameters,
)

PPO = PPOAgentParameters(
    algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(16), epochs=1, minibatch=8),
    update_mode="eager",
)
PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))


def graph_manager() -> HRLGraphManager:
    """A stack of two."""
    low = LevelParameters(name="low", agent=PPO, goal_space=PLACES, horizon=4)
    return HRLGraphManager(
        GraphParameters(
            levels=(LevelParameters(name="top", agent=PPO), low),
            environment=PointMassParameters(),
            num_envs=4,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(120),
                evaluation_interval=EnvironmentSteps(60),
                evaluation_episodes=EnvironmentEpisodes(2),
            ),
        )
    )
