"""Parameters of the goal worlds, and their registration with `gymnasium.make`."""

from dataclasses import field
from functools import cached_property
from typing import Any

import gymnasium
import numpy as np

from coach_rl.core.errors import UnknownNameError, require
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.records import Array, Observation
from coach_rl.core.shown_text import name_of_class
from coach_rl.core.typed_values import Arguments, FrozenMapping, frozen
from coach_rl.environments.goal_worlds import (
    ant_mazes,
    packaged,
    pendulum,
    point_maze,
    reacher,
)
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.mujoco.parameters import SimulationParameters

GOAL_WORLDS: dict[str, type[GoalTask]] = {
    "angle_goal_pendulum": pendulum.AngleGoalPendulum,
    "ant_double_key_chest": ant_mazes.AntDoubleKeyChest,
    "ant_fall": ant_mazes.AntFall,
    "ant_fall_sparse": ant_mazes.AntFallSparse,
    "ant_fall_stochastic": ant_mazes.AntFallStochastic,
    "ant_four_rooms": reacher.AntFourRooms,
    "ant_four_rooms_sparse": ant_mazes.AntFourRoomsSparse,
    "ant_gaps": ant_mazes.AntGaps,
    "ant_key_chest": ant_mazes.AntKeyChest,
    "ant_maze": ant_mazes.AntMaze,
    "ant_maze_bottleneck": ant_mazes.AntMazeBottleneck,
    "ant_maze_complex": ant_mazes.AntMazeComplex,
    "ant_maze_pi": ant_mazes.AntMazePi,
    "ant_maze_s": ant_mazes.AntMazeS,
    "ant_maze_u12": ant_mazes.AntMazeU12,
    "ant_maze_u24": ant_mazes.AntMazeU24,
    "ant_maze_w": ant_mazes.AntMazeW,
    "ant_push": ant_mazes.AntPush,
    "ant_push_sparse": ant_mazes.AntPushSparse,
    "ant_push_stochastic": ant_mazes.AntPushStochastic,
    "ant_reacher": reacher.AntReacher,
    "goal_pendulum": pendulum.GoalPendulum,
    "ogbench_ant_maze_giant": packaged.OGBenchAntMazeGiant,
    "ogbench_ant_maze_large": packaged.OGBenchAntMazeLarge,
    "ogbench_ant_maze_medium": packaged.OGBenchAntMazeMedium,
    "ogbench_point_maze_giant": packaged.OGBenchPointMazeGiant,
    "ogbench_point_maze_large": packaged.OGBenchPointMazeLarge,
    "ogbench_point_maze_medium": packaged.OGBenchPointMazeMedium,
    "point_maze_four_rooms": point_maze.PointMazeFourRooms,
    "point_maze_large": point_maze.PointMazeLarge,
    "point_maze_medium": point_maze.PointMazeMedium,
    "point_maze_u": point_maze.PointMazeU,
    "robotics_ant_maze_large": packaged.RoboticsAntMazeLarge,
    "robotics_ant_maze_medium": packaged.RoboticsAntMazeMedium,
    "robotics_ant_maze_u": packaged.RoboticsAntMazeU,
    "robotics_point_maze_large": packaged.RoboticsPointMazeLarge,
    "robotics_point_maze_medium": packaged.RoboticsPointMazeMedium,
    "robotics_point_maze_u": packaged.RoboticsPointMazeU,
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
        _ = self.task  # raises an error for fields that do not fit

    @cached_property
    def task(self) -> GoalTask:
        return GOAL_WORLDS[self.level](**self.kwargs)


def register_goal_worlds() -> None:
    """Register `coach_rl/GoalPendulum-v0` and the like with Gymnasium, once."""
    for level, task in GOAL_WORLDS.items():
        name = f"coach_rl/{task.__name__}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point=f"{GoalWorldEnv.__module__}:{GoalWorldEnv.__name__}",
                kwargs={"level": level},
                max_episode_steps=task.max_episode_steps,
            )


class GoalWorldEnv(gymnasium.Env[dict[str, Any], Array]):
    """A goal world of one row as a Gymnasium environment; `gymnasium.make` adds the time limit.

    Args:
        level: Which world.
        render_mode: None or rgb_array.
        kwargs: Fields of the world's class.

    Raises:
        ConfigurationError: There is no such world, or a field is unknown or wrong.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - read by Gymnasium from the class

    def __init__(self, level: str, *, render_mode: str | None = None, **kwargs: object) -> None:
        require(
            render_mode in (None, "rgb_array"),
            f"render_mode must be None or 'rgb_array', got {render_mode!r}",
        )
        self._task = GoalWorldParameters(level=level, kwargs=kwargs).task
        # A batch restarts an ended episode at once, Gymnasium only at a reset.
        endless = GoalWorldParameters(
            level=level, kwargs={**kwargs, "terminate": False}, max_episode_steps=-1, threads=1
        )
        self._batch = endless.build(num_envs=1)
        self.render_mode = render_mode
        self.observation_space = self._batch.spaces.observation
        self.action_space = self._batch.spaces.action
        seconds = self._task.load().opt.timestep * self._task.frame_skip
        self.metadata = {**self.metadata, "render_fps": round(1 / seconds)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[dict[str, Array], dict[str, object]]:
        super().reset(seed=seed, options=options)
        return _of_the_row(self._batch.reset(None if seed is None else [seed]).observation), {}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, object]]:
        """One step; terminated at the goal if the world's `terminate` is True."""
        self._batch.send(np.asarray(action)[None])
        answer = self._batch.recv()
        success = bool(answer.info["is_success"][0])
        terminated = success and self._task.terminate
        info: dict[str, object] = {"is_success": success}
        return _of_the_row(answer.observation), float(answer.reward[0]), terminated, False, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: object) -> Array:
        """See `GoalTask.compute_reward`."""
        return self._task.compute_reward(achieved_goal, desired_goal, info)

    def render(self) -> Array | None:
        """A frame, uint8 [height, width, 3], with render mode rgb_array."""
        return None if self.render_mode is None else self._batch.render()

    def close(self) -> None:
        self._batch.close()


def _of_the_row(observation: Observation) -> dict[str, Array]:
    return {key: values[0] for key, values in observation.items()}
