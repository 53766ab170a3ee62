"""Worlds with goals on the MuJoCo batch, for hindsight and hierarchies.

Their models are built from parameters. May import coach_rl.core and the MuJoCo batch of this room.
Start reading in `goal_task.py` (what they have in common), then `goal_pendulum.py`,
`point_maze.py` and its maps in `maze_map.py`; `gymnasium_env.py` offers them to `gymnasium.make`.
"""

from coach_rl.environments.goal_worlds.goal_pendulum import AngleGoalPendulum, GoalPendulum
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.goal_worlds.gymnasium_env import GoalWorldEnv, register_goal_worlds
from coach_rl.environments.goal_worlds.maze_map import MazeMap
from coach_rl.environments.goal_worlds.parameters import GOAL_WORLDS, GoalWorldParameters
from coach_rl.environments.goal_worlds.point_maze import (
    PointMaze,
    PointMazeFourRooms,
    PointMazeLarge,
    PointMazeMedium,
    PointMazeU,
)

__all__ = [
    "GOAL_WORLDS",
    "AngleGoalPendulum",
    "GoalPendulum",
    "GoalTask",
    "GoalWorldEnv",
    "GoalWorldParameters",
    "MazeMap",
    "PointMaze",
    "PointMazeFourRooms",
    "PointMazeLarge",
    "PointMazeMedium",
    "PointMazeU",
    "register_goal_worlds",
]
