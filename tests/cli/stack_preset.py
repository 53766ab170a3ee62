"""A little stack: PPO above PPO, on the point mass."""

import coach_rl as rl

PPO = rl.PPOAgentParameters(
    algorithm=rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(16), epochs=1, minibatch=8),
    update_mode="eager",
)
PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.2, 0.2), elements=(0, 1))


def graph_manager() -> rl.HRLGraphManager:
    """A stack of two."""
    low = rl.LevelParameters(name="low", agent=PPO, goal_space=PLACES, horizon=4)
    return rl.HRLGraphManager(
        rl.GraphParameters(
            levels=(rl.LevelParameters(name="top", agent=PPO), low),
            environment=rl.PointMassParameters(),
            num_envs=4,
            schedule=rl.ScheduleParameters(
                training=rl.EnvironmentSteps(120),
                evaluation_interval=rl.EnvironmentSteps(60),
                evaluation_episodes=rl.EnvironmentEpisodes(2),
            ),
        )
    )
