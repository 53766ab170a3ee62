"""Parameters of the goal worlds."""

from dataclasses import field

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.frozen import Arguments, FrozenMapping, frozen
from coach_rl.core.level_name import name_of_class
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.environments.goal_worlds.ant_block_maze import (
    AntFallSparse,
    AntFallStochastic,
    AntFourRoomsSparse,
    AntPushSparse,
    AntPushStochastic,
)
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
)
from coach_rl.environments.goal_worlds.goal_pendulum import AngleGoalPendulum, GoalPendulum
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.goal_worlds.ogbench_maze import (
    OGBenchAntMazeGiant,
    OGBenchAntMazeLarge,
    OGBenchAntMazeMedium,
    OGBenchPointMazeGiant,
    OGBenchPointMazeLarge,
    OGBenchPointMazeMedium,
)
from coach_rl.environments.goal_worlds.point_maze import (
    PointMazeFourRooms,
    PointMazeLarge,
    PointMazeMedium,
    PointMazeU,
)
from coach_rl.environments.goal_worlds.robotics_maze import (
    RoboticsAntMazeLarge,
    RoboticsAntMazeMedium,
    RoboticsAntMazeU,
    RoboticsPointMazeLarge,
    RoboticsPointMazeMedium,
    RoboticsPointMazeU,
)
from coach_rl.environments.mujoco.parameters import SimulationParameters

GOAL_WORLDS: dict[str, type[GoalTask]] = {
    "angle_goal_pendulum": AngleGoalPendulum,
    "ant_double_key_chest": AntDoubleKeyChest,
    "ant_fall": AntFall,
    "ant_fall_sparse": AntFallSparse,
    "ant_fall_stochastic": AntFallStochastic,
    "ant_four_rooms": AntFourRooms,
    "ant_four_rooms_sparse": AntFourRoomsSparse,
    "ant_gaps": AntGaps,
    "ant_key_chest": AntKeyChest,
    "ant_maze": AntMaze,
    "ant_maze_bottleneck": AntMazeBottleneck,
    "ant_maze_complex": AntMazeComplex,
    "ant_maze_pi": AntMazePi,
    "ant_maze_s": AntMazeS,
    "ant_maze_u12": AntMazeU12,
    "ant_maze_u24": AntMazeU24,
    "ant_maze_w": AntMazeW,
    "ant_push": AntPush,
    "ant_push_sparse": AntPushSparse,
    "ant_push_stochastic": AntPushStochastic,
    "ant_reacher": AntReacher,
    "goal_pendulum": GoalPendulum,
    "ogbench_ant_maze_giant": OGBenchAntMazeGiant,
    "ogbench_ant_maze_large": OGBenchAntMazeLarge,
    "ogbench_ant_maze_medium": OGBenchAntMazeMedium,
    "ogbench_point_maze_giant": OGBenchPointMazeGiant,
    "ogbench_point_maze_large": OGBenchPointMazeLarge,
    "ogbench_point_maze_medium": OGBenchPointMazeMedium,
    "point_maze_four_rooms": PointMazeFourRooms,
    "point_maze_large": PointMazeLarge,
    "point_maze_medium": PointMazeMedium,
    "point_maze_u": PointMazeU,
    "robotics_ant_maze_large": RoboticsAntMazeLarge,
    "robotics_ant_maze_medium": RoboticsAntMazeMedium,
    "robotics_ant_maze_u": RoboticsAntMazeU,
    "robotics_point_maze_large": RoboticsPointMazeLarge,
    "robotics_point_maze_medium": RoboticsPointMazeMedium,
    "robotics_point_maze_u": RoboticsPointMazeU,
}
"""The goal worlds by level."""


@parameter_class
class GoalWorldParameters(SimulationParameters):
    """One of the goal worlds.

    parameters = GoalWorldParameters(level="goal_pendulum", kwargs={"terminate": False})
    environment = parameters.build(num_envs=16)
    """

    level: str = field(metadata={ADVICE: name_of_class})
    """A goal world, such as `goal_pendulum`."""
    kwargs: Arguments = FrozenMapping[str]()
    """Fields of the world's class, e.g. `terminate`."""

    def __post_init__(self) -> None:
        if self.level not in GOAL_WORLDS:
            raise UnknownNameError("goal world", self.level, GOAL_WORLDS)
        object.__setattr__(self, "kwargs", frozen(self.kwargs))
        GOAL_WORLDS[self.level](**self.kwargs)  # refuses what does not fit

    @property
    def task(self) -> GoalTask:
        """The world with these parameters."""
        return GOAL_WORLDS[self.level](**self.kwargs)
