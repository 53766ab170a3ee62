"""The point and ant mazes of OGBench, as worlds to train in.

After Park et al. 2025, "OGBench: Benchmarking Offline Goal-Conditioned RL": models, maps, the five
tasks of each maze, radii and time limits come from its package, whose environments behave alike.
"""

from functools import cache
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray
from coach_rl.environments.goal_worlds.ant_pose import PosedAnt
from coach_rl.environments.goal_worlds.ant_task import AntTask
from coach_rl.environments.goal_worlds.packaged_maze import Layout, PackagedMaze, away, text_of
from coach_rl.environments.gymnasium.recipe import imported
from coach_rl.environments.mujoco import MujocoState, Scene
from coach_rl.environments.mujoco.engine import mujoco

_POSE_NOISE = 0.1
"""Noise of the ant's first pose: uniform on positions, normal on velocities."""


@parameter_class
class OGBenchMaze(PackagedMaze):
    """A maze of OGBench with its five tasks: a start and a goal, both moved about in their cells.

    A step is worth 0 at the goal, else -1, as in OGBench's tasks with rewards (`singletask`); its
    environments for goals give 1 and 0.
    """

    mark: ClassVar[str] = "target"
    body: ClassVar[str]
    """Name of the body that moves, the package's."""
    size: ClassVar[str]
    """Name of the maze, the package's."""
    cell_size: ClassVar[float] = 4.0

    frame_skip: int = 5
    task: Literal[0, 1, 2, 3, 4, 5] = 0
    """Number of the task that all episodes have; 0: each draws one of the five."""

    @property
    def layout(self) -> Layout:
        """The maze; its tasks in their order, one start and goal each."""
        return _layout(self.body, self.size)

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Draw the task, and places up to a quarter of a cell from its start and its goal."""
        layout = self.layout
        task = self.task - 1 if self.task else int(rng.integers(len(layout.starts)))
        largest = self.cell_size / 4
        start, goal = layout.starts[task] + away(rng, largest), layout.goals[task]
        goal = goal + away(rng, largest)
        data.qpos[:] = scene.init_qpos + rng.uniform(-_POSE_NOISE, _POSE_NOISE, len(data.qpos))
        data.qvel[:] = scene.init_qvel + _POSE_NOISE * rng.standard_normal(len(data.qvel))
        self.begin(data, start, goal)


@parameter_class
class OGBenchPointMaze(OGBenchMaze):
    """A point is moved about; it has no speed, and walls push it out."""

    max_episode_steps: ClassVar[int | None] = 1000
    body: ClassVar[str] = "point"
    farthest_step: ClassVar[float] = 0.2
    """Distance along an axis that an action of 1 moves it, in metres."""

    goal_radius: Positive[float] = 1.0
    """Distance at which the goal is reached, in metres."""
    subgoal_radius: Positive[float] = 1.0
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        """Move the point and simulate one step from rest."""
        del rng
        data.qpos[:] += self.farthest_step * action
        data.qvel[:] = 0.0
        mujoco.mj_step(scene.model, data, self.frame_skip)

    def motion(self, state: MujocoState) -> FloatArray:
        """The place, [R, 2]."""
        return np.asarray(state.qpos)


@parameter_class
class OGBenchAntMaze(OGBenchMaze, PosedAnt):
    """The ant of this room's other mazes, observed alike: see `ant_body.OBSERVED`."""

    max_episode_steps: ClassVar[int | None] = 1000
    body: ClassVar[str] = "ant"
    mark_height: ClassVar[float] = AntTask.mark_height

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places in the maze, or poses, reached within `subgoal_radius`."""
        places = super().subgoal_space
        return self.poses(places) if self.shows_pose else places

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant, [R, 29]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)


@parameter_class
class OGBenchPointMazeMedium(OGBenchPointMaze):
    """OGBench's `pointmaze-medium-v0`."""

    size: ClassVar[str] = "medium"


@parameter_class
class OGBenchPointMazeLarge(OGBenchPointMaze):
    """OGBench's `pointmaze-large-v0`."""

    size: ClassVar[str] = "large"


@parameter_class
class OGBenchPointMazeGiant(OGBenchPointMaze):
    """OGBench's `pointmaze-giant-v0`."""

    size: ClassVar[str] = "giant"


@parameter_class
class OGBenchAntMazeMedium(OGBenchAntMaze):
    """OGBench's `antmaze-medium-v0`."""

    size: ClassVar[str] = "medium"


@parameter_class
class OGBenchAntMazeLarge(OGBenchAntMaze):
    """OGBench's `antmaze-large-v0`."""

    size: ClassVar[str] = "large"


@parameter_class
class OGBenchAntMazeGiant(OGBenchAntMaze):
    """OGBench's `antmaze-giant-v0`."""

    size: ClassVar[str] = "giant"


@cache
def _layout(body: str, size: str) -> Layout:
    package = imported("ogbench.locomaze.maze", kind="goal world")
    world = package.make_maze_env(body, "maze", maze_type=size)
    rows, columns = world.maze_map.shape
    half, tasks = OGBenchMaze.cell_size / 2, world.task_infos
    (left, lower), (right, upper) = map(world.ij_to_xy, ((1, 1), (rows - 2, columns - 2)))
    layout = Layout(
        model=text_of(world.fullpath),
        low=(left - half, lower - half),
        high=(right + half, upper + half),
        starts=np.array([task["init_xy"] for task in tasks], np.float64),
        goals=np.array([task["goal_xy"] for task in tasks], np.float64),
    )
    world.close()
    return layout
