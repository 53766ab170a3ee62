"""A little stack: PPO above a level of one's choice, on the point mass."""

from dataclasses import replace
from typing import Literal

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OptionSpace
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
UPPER = {"ppo": PPO, "dqn": DQNAgentParameters(), "ddpg": DDPGAgentParameters()}
PLACES = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))


def graph_manager(
    upper: Literal["ppo", "dqn", "ddpg"] = "ppo", options: int = 0, lower: bool = True
) -> HRLGraphManager:
    """A stack of two.

    Args:
        upper: Who decides above.
        options: How many options there are; 0 for goals.
        lower: Whether anyone decides below.
    """
    low = LevelParameters(name="low", agent=PPO, goal_space=PLACES, horizon=4)
    if options:
        low = replace(low, goal_space=OptionSpace(count=options))
    if not lower:
        low = LevelParameters(name="low", goal_space=PLACES)
    return HRLGraphManager(
        GraphParameters(
            levels=(LevelParameters(name="top", agent=UPPER[upper]), low),
            environment=PointMassParameters(),
            num_envs=4,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(120),
                evaluation_interval=EnvironmentSteps(60),
                evaluation_episodes=EnvironmentEpisodes(2),
            ),
        )
    )
