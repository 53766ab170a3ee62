"""Which goal world, and with what parameters."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from coach_rl.core.errors import UnknownNameError
from coach_rl.environments.goal_worlds.ant_maze import AntFall, AntMaze, AntPush
from coach_rl.environments.goal_worlds.ant_reacher import AntFourRooms, AntReacher
from coach_rl.environments.goal_worlds.goal_pendulum import AngleGoalPendulum, GoalPendulum
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.goal_worlds.point_maze import (
    PointMazeFourRooms,
    PointMazeLarge,
    PointMazeMedium,
    PointMazeU,
)
from coach_rl.environments.mujoco import FrozenMapping
from coach_rl.environments.mujoco.parameters import BatchParameters

GOAL_WORLDS: dict[str, type[GoalTask]] = {
    "angle_goal_pendulum": AngleGoalPendulum,
    "ant_fall": AntFall,
    "ant_four_rooms": AntFourRooms,
    "ant_maze": AntMaze,
    "ant_push": AntPush,
    "ant_reacher": AntReacher,
    "goal_pendulum": GoalPendulum,
    "point_maze_four_rooms": PointMazeFourRooms,
    "point_maze_large": PointMazeLarge,
    "point_maze_medium": PointMazeMedium,
    "point_maze_u": PointMazeU,
}
"""The goal worlds by level."""


@dataclass(frozen=True, kw_only=True)
class GoalWorldParameters(BatchParameters):
    """One of the goal worlds.

    parameters = GoalWorldParameters(level="goal_pendulum", kwargs={"terminate": False})
    environment = parameters.build(num_envs=16)
    """

    level: str
    """A goal world, such as `goal_pendulum`."""
    kwargs: Mapping[str, Any] = FrozenMapping[str]()
    """Fields of the world's class, e.g. `terminate`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "kwargs", FrozenMapping(self.kwargs))
        if self.level not in GOAL_WORLDS:
            raise UnknownNameError("goal world", self.level, GOAL_WORLDS)
        # The model is built from the other fields.
        known = [field.name for field in fields(GOAL_WORLDS[self.level])]
        known.remove("xml_file")
        for name in self.kwargs:
            if name not in known:
                raise UnknownNameError(f"parameter of {self.level}", name, known)
        _ = self.task  # checks the values

    @property
    def task(self) -> GoalTask:
        """The world with these parameters."""
        return GOAL_WORLDS[self.level](**self.kwargs)
