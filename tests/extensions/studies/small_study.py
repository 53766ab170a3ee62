"""A study of four variants whose runs take a second or two each."""

from coach_rl import Study, Variant

MAZE = {
    "evaluation_interval": 500,
    "layers": (32, 32),
    "schedule.evaluation_episodes": 2,
    "upper_updates_per_step": 0.1,
}


def study() -> Study:
    """Balance a pole, swing up a pendulum, find the way through a maze flat and with two levels."""
    return Study(
        name="small_study",
        question="Do all kinds of runs have the same numbers wherever they are made?",
        variants=(
            Variant(
                name="cart pole",
                preset="CartPole_PPO",
                changes={"learning_rate": 1e-3},
                steps=3_000,
            ),
            Variant(
                name="pendulum",
                preset="Pendulum_PPO",
                changes={"schedule.evaluation_interval": 2_000},
                steps=4_096,
            ),
            Variant(
                name="maze, flat",
                preset="PointMaze_HAC",
                level="point_maze_u",
                changes={**MAZE, "hierarchy": "none"},
            ),
            Variant(
                name="maze, two levels",
                preset="PointMaze_HAC",
                level="point_maze_u",
                changes=MAZE,
            ),
        ),
        seeds=(0, 1, 2, 3, 4),
        steps=1_200,
        metric="reward_mean",
        baseline="maze, flat",
    )
