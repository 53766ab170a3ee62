"""A preset whose evaluations can be filmed; it trains for a fraction of a second."""

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    ScheduleParameters,
)


def graph_manager(level: str = "point_maze_u") -> BasicRLGraphManager:
    """PPO for a moment.

    Args:
        level: Where.
    """
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(
                    rollout=EnvironmentSteps(64), epochs=1, minibatch=32
                ),
                update_mode="eager",
            ),
            environment=parameters(level, max_episode_steps=20),
            num_envs=2,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(128),
                evaluation_interval=EnvironmentSteps(64),
                evaluation_episodes=EnvironmentEpisodes(2),
            ),
        )
    )
