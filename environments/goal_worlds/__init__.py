"""Worlds with goals on the MuJoCo batch, for hindsight and hierarchies.

Two engines, a ball (`point_maze`) and an ant (`ant`, `ant_maze`, `reacher`), a table of mazes
(`ant_mazes`), a pendulum, and the mazes of other packages (`packaged`). Start
reading in `goal_task` (the shared half) and `parameters` (the levels by name). May import
coach_rl.core, and of this room the MuJoCo batch and the import of packages.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.goal_worlds.ant import OBSERVED as ANT_OBSERVED
    from coach_rl.environments.goal_worlds.ant import AntSymmetry
    from coach_rl.environments.goal_worlds.ant import elements as ant_elements
    from coach_rl.environments.goal_worlds.ant_mazes import AntMaze
    from coach_rl.environments.goal_worlds.goal_task import GoalTask
    from coach_rl.environments.goal_worlds.maze_map import MazeMap
    from coach_rl.environments.goal_worlds.packaged import OGBenchPointMaze, RoboticsPointMaze
    from coach_rl.environments.goal_worlds.parameters import (
        GOAL_WORLDS,
        GoalWorldParameters,
        register_goal_worlds,
    )
    from coach_rl.environments.goal_worlds.pendulum import GoalPendulum
    from coach_rl.environments.goal_worlds.point_maze import PointMaze
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ANT_OBSERVED", "GOAL_WORLDS", "AntMaze", "AntSymmetry",
    "GoalPendulum", "GoalTask", "GoalWorldParameters", "MazeMap", "OGBenchPointMaze", "PointMaze",
    "RoboticsPointMaze", "ant_elements", "register_goal_worlds",
]  # fmt: skip
