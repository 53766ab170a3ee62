"""Worlds with goals on the MuJoCo batch, for hindsight and hierarchies.

Their models are built from parameters, or come from packages. May import coach_rl.core, and of this
room the MuJoCo batch and how packages are imported.
Start reading in `goal_task.py` (what they have in common), then `goal_pendulum.py`,
`point_maze.py` and its maps in `maze_map.py`; the ant is built in `ant_body.py`, its worlds share
`ant_task.py` and `ant_pose.py`, its mazes `ant_maze.py`, and `ant_symmetry.py` is for its agents.
Mazes of other packages share `packaged_maze.py`. `registration.py` makes all known to
`gymnasium.make`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.goal_worlds.ant_block_maze import (
        AntFallSparse,
        AntFallStochastic,
        AntFourRoomsSparse,
        AntPushSparse,
        AntPushStochastic,
    )
    from coach_rl.environments.goal_worlds.ant_body import OBSERVED as ANT_OBSERVED
    from coach_rl.environments.goal_worlds.ant_body import elements as ant_elements
    from coach_rl.environments.goal_worlds.ant_key_chest import AntDoubleKeyChest, AntKeyChest
    from coach_rl.environments.goal_worlds.ant_maze import AntFall, AntMaze, AntPush
    from coach_rl.environments.goal_worlds.ant_reacher import AntFourRooms, AntReacher
    from coach_rl.environments.goal_worlds.ant_sparse_maze import (
        AntGaps,
        AntMazeBottleneck,
        AntMazeComplex,
        AntMazePi,
        AntMazeS,
        AntMazeU12,
        AntMazeU24,
        AntMazeW,
        SparseAntMaze,
    )
    from coach_rl.environments.goal_worlds.ant_symmetry import AntSymmetry
    from coach_rl.environments.goal_worlds.goal_pendulum import AngleGoalPendulum, GoalPendulum
    from coach_rl.environments.goal_worlds.goal_task import GoalTask
    from coach_rl.environments.goal_worlds.maze_map import MazeMap
    from coach_rl.environments.goal_worlds.ogbench_maze import (
        OGBenchAntMazeGiant,
        OGBenchAntMazeLarge,
        OGBenchAntMazeMedium,
        OGBenchPointMaze,
        OGBenchPointMazeGiant,
        OGBenchPointMazeLarge,
        OGBenchPointMazeMedium,
    )
    from coach_rl.environments.goal_worlds.parameters import GOAL_WORLDS, GoalWorldParameters
    from coach_rl.environments.goal_worlds.point_maze import (
        PointMaze,
        PointMazeFourRooms,
        PointMazeLarge,
        PointMazeMedium,
        PointMazeU,
    )
    from coach_rl.environments.goal_worlds.registration import GoalWorldEnv, register_goal_worlds
    from coach_rl.environments.goal_worlds.robotics_maze import (
        RoboticsAntMazeLarge,
        RoboticsAntMazeMedium,
        RoboticsAntMazeU,
        RoboticsPointMaze,
        RoboticsPointMazeLarge,
        RoboticsPointMazeMedium,
        RoboticsPointMazeU,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ANT_OBSERVED", "GOAL_WORLDS", "AngleGoalPendulum", "AntDoubleKeyChest", "AntFall",
    "AntFallSparse", "AntFallStochastic", "AntFourRooms", "AntFourRoomsSparse", "AntGaps",
    "AntKeyChest", "AntMaze", "AntMazeBottleneck", "AntMazeComplex", "AntMazePi", "AntMazeS",
    "AntMazeU12", "AntMazeU24", "AntMazeW", "AntPush", "AntPushSparse", "AntPushStochastic",
    "AntReacher", "AntSymmetry", "GoalPendulum", "GoalTask", "GoalWorldEnv", "GoalWorldParameters",
    "MazeMap", "OGBenchAntMazeGiant", "OGBenchAntMazeLarge", "OGBenchAntMazeMedium",
    "OGBenchPointMaze", "OGBenchPointMazeGiant", "OGBenchPointMazeLarge", "OGBenchPointMazeMedium",
    "PointMaze", "PointMazeFourRooms", "PointMazeLarge", "PointMazeMedium", "PointMazeU",
    "RoboticsAntMazeLarge", "RoboticsAntMazeMedium", "RoboticsAntMazeU", "RoboticsPointMaze",
    "RoboticsPointMazeLarge", "RoboticsPointMazeMedium", "RoboticsPointMazeU", "SparseAntMaze",
    "ant_elements", "register_goal_worlds",
]  # fmt: skip
