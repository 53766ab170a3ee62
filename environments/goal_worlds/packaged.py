"""Mazes of OGBench and Gymnasium-Robotics: their models and rules, without their Python loop.

Models, maps, starts, goals, radii and time limits come from the packages, whose environments behave
alike: OGBench (Park et al. 2025, "OGBench: Benchmarking Offline Goal-Conditioned RL"), and the
AntMaze-v5 and PointMaze-v3 of Gymnasium-Robotics (de Lazcano et al. 2024, after D4RL, Fu et al.
2020).
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal, TypeVar

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import Place
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.goal_worlds.ant import (
    GOAL_COLOR,
    GROUND_COLOR,
    POSITIONS,
    VELOCITIES,
    WALL_COLOR,
    AntTask,
    PosedAnt,
    frame_scene,
)
from coach_rl.environments.goal_worlds.goal_task import GoalTask, add_goal_disc, variant
from coach_rl.environments.gymnasium.recipe import imported
from coach_rl.environments.mujoco import MujocoState, Scene
from coach_rl.environments.mujoco.engine import mujoco

Robotics = TypeVar("Robotics", bound="RoboticsMaze")

_FROM_ABOVE = FrozenMapping[str]({"azimuth": 90.0, "elevation": -89.9})
_UNSEEN = (0.0, 0.0, 0.0, 0.0)
_DIM, _NONE = (0.15,) * 3, (0.0,) * 3
_COLORS = {mujoco.mjtGeom.mjGEOM_PLANE: GROUND_COLOR, mujoco.mjtGeom.mjGEOM_BOX: WALL_COLOR}
_POSE_NOISE = 0.1
"""Noise of the ant's first pose: uniform on positions, normal on velocities."""
_BODIES = 14
"""Bodies of Gymnasium's ant, the world included; more are the mark's."""
MapName = Literal[
    "U_MAZE",
    "OPEN",
    "OPEN_DIVERSE_G",
    "OPEN_DIVERSE_GR",
    "MEDIUM_MAZE",
    "MEDIUM_MAZE_DIVERSE_G",
    "MEDIUM_MAZE_DIVERSE_GR",
    "LARGE_MAZE",
    "LARGE_MAZE_DIVERSE_G",
    "LARGE_MAZE_DIVERSE_GR",
]
"""Names in `gymnasium_robotics.envs.maze.maps`."""


@dataclass(frozen=True)
class Layout:
    """A maze as built by its package."""

    model: str
    """MJCF text."""
    low: tuple[float, float]
    """Lower ends of the floor along x and y, in metres."""
    high: tuple[float, float]
    """Upper ends of the floor along x and y, in metres."""
    starts: FloatArray
    """Centres of the cells in which episodes may start, [S, 2]."""
    goals: FloatArray
    """Centres of the cells in which goals may lie, [G, 2]."""


@parameter_class
class PackagedMaze(GoalTask):
    """A maze with the model and cells of a package; its goals are places, x and y.

    Rewards are those of all goal worlds. The package is needed to build a world or its goals.
    """

    mark: ClassVar[str]
    """Name of the package's own mark of the goal, hidden here: all rows would share it."""

    default_camera_config: FrozenMapping[str] | None = _FROM_ABOVE
    camera_id: int | None = -1
    """Render from this camera of the model; -1: from above, the whole maze."""
    goal_radius: Positive[float] = 0.5
    """Distance at which the goal is reached, in metres."""
    subgoal_radius: Positive[float] = 0.5
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The maze.

        Raises:
            ConfigurationError: The package is not installed.
        """

    @property
    def goal_space(self) -> GoalSpace:
        """Places in the maze, reached within `goal_radius`."""
        return self._places(self.goal_radius)

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places in the maze, reached within `subgoal_radius`."""
        return self._places(self.subgoal_radius)

    def spec(self) -> mujoco.MjSpec:
        """The package's model, and a disc at the row's goal."""
        layout = self.layout
        spec = mujoco.MjSpec.from_string(layout.model)
        spec.nuserdata = 2
        low, high = np.array(layout.low), np.array(layout.high)
        frame_scene(spec, (*(low + high) / 2, 0.0), 0.95 * float((high - low).max()))
        for light in spec.lights:
            light.ambient = _DIM
            light.diffuse = _DIM
            light.specular = _NONE
        for mark in (spec.site(self.mark), spec.geom(self.mark)):
            if mark is not None:
                mark.material = ""
                mark.rgba = _UNSEEN
        for geom in spec.worldbody.geoms:
            if geom.type in _COLORS:
                geom.material, geom.rgba = "", _COLORS[geom.type]
        add_goal_disc(spec, self.goal_radius, (*GOAL_COLOR[:3], 1.0), name="goal_of_the_row")
        return spec

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        return np.asarray(state.qpos[:, :2])

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return self.distance(achieved_goal, desired_goal) <= self.goal_radius

    def begin(self, data: mujoco.MjData, start: FloatArray, goal: FloatArray) -> None:
        """Write the start and the goal of an episode, [2] each, into a simulator."""
        data.qpos[:2] = start
        data.userdata[:] = goal
        data.mocap_pos[0] = (*goal, 0.0)

    def _places(self, radius: float) -> GoalSpace:
        layout = self.layout
        return GoalSpace(
            low=layout.low,
            high=layout.high,
            threshold=(radius, radius),
            key="achieved_goal",
            reward=self.reward_type,
            reached_within="ball",
        )


@parameter_class
class OGBenchMaze(PackagedMaze):
    """A maze of OGBench with its five tasks: a start and a goal, both with an offset in their cell.

    The reward is 0 at the goal, else -1, as in OGBench's tasks with rewards (`singletask`); its
    environments for goals give 1 and 0.
    """

    mark: ClassVar[str] = "target"
    body: ClassVar[str]
    """The package's name of the body that moves."""
    size: ClassVar[str]
    """The package's name of the maze."""
    cell_size: ClassVar[float] = 4.0

    frame_skip: int = 5
    task: Literal[0, 1, 2, 3, 4, 5] = 0
    """Number of the task of all episodes; 0: each draws one of the five."""

    @property
    def layout(self) -> Layout:
        """The maze; starts and goals are those of its tasks, in their order."""
        return _ogbench_layout(self.body, self.size)

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        # Start and goal are up to a quarter of a cell from those of the task.
        layout = self.layout
        task = self.task - 1 if self.task else int(rng.integers(len(layout.starts)))
        largest = self.cell_size / 4
        start = layout.starts[task] + rng.uniform(-largest, largest, 2)
        goal = layout.goals[task]
        goal = goal + rng.uniform(-largest, largest, 2)
        data.qpos[:] = scene.init_qpos + rng.uniform(-_POSE_NOISE, _POSE_NOISE, len(data.qpos))
        data.qvel[:] = scene.init_qvel + _POSE_NOISE * rng.standard_normal(len(data.qvel))
        self.begin(data, start, goal)


@parameter_class
class OGBenchPointMaze(OGBenchMaze):
    """A point without speed that is moved; walls push it out."""

    max_episode_steps: ClassVar[int | None] = 1000
    body: ClassVar[str] = "point"
    farthest_step: ClassVar[float] = 0.2
    """Distance along an axis for an action of 1, in metres."""

    goal_radius: Positive[float] = 1.0
    """Distance at which the goal is reached, in metres."""
    subgoal_radius: Positive[float] = 1.0
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        del rng
        data.qpos[:] += self.farthest_step * action
        data.qvel[:] = 0.0
        mujoco.mj_step(scene.model, data, self.frame_skip)

    def motion(self, state: MujocoState) -> FloatArray:
        """The place, [R, 2]."""
        return np.asarray(state.qpos)


@parameter_class
class OGBenchAntMaze(OGBenchMaze, PosedAnt):
    """The ant of the other mazes, with the same observation: see `ant.OBSERVED`."""

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


@cache
def _ogbench_layout(body: str, size: str) -> Layout:
    package = imported("ogbench.locomaze.maze", kind="goal world")
    world = package.make_maze_env(body, "maze", maze_type=size)
    rows, columns = world.maze_map.shape
    half = OGBenchMaze.cell_size / 2
    tasks = world.task_infos
    (left, lower), (right, upper) = map(world.ij_to_xy, ((1, 1), (rows - 2, columns - 2)))
    layout = Layout(
        model=_read_and_delete(world.fullpath),
        low=(left - half, lower - half),
        high=(right + half, upper + half),
        starts=np.array([task["init_xy"] for task in tasks], np.float64),
        goals=np.array([task["goal_xy"] for task in tasks], np.float64),
    )
    world.close()
    return layout


OGBenchPointMazeMedium = variant(
    "OGBenchPointMazeMedium", OGBenchPointMaze, "OGBench's `pointmaze-medium-v0`.", size="medium"
)
OGBenchPointMazeLarge = variant(
    "OGBenchPointMazeLarge", OGBenchPointMaze, "OGBench's `pointmaze-large-v0`.", size="large"
)
OGBenchPointMazeGiant = variant(
    "OGBenchPointMazeGiant", OGBenchPointMaze, "OGBench's `pointmaze-giant-v0`.", size="giant"
)
OGBenchAntMazeMedium = variant(
    "OGBenchAntMazeMedium", OGBenchAntMaze, "OGBench's `antmaze-medium-v0`.", size="medium"
)
OGBenchAntMazeLarge = variant(
    "OGBenchAntMazeLarge", OGBenchAntMaze, "OGBench's `antmaze-large-v0`.", size="large"
)
OGBenchAntMazeGiant = variant(
    "OGBenchAntMazeGiant", OGBenchAntMaze, "OGBench's `antmaze-giant-v0`.", size="giant"
)


@parameter_class
class RoboticsMaze(PackagedMaze):
    """A maze of Gymnasium-Robotics: start and goal in two of its cells, with an offset in each.

    With the same seed and actions its observations are those of the package's environment. The
    reward is 0 at the goal, else -1; there 1 and 0. Episodes continue at the goal, as there, unless
    `terminate` is True.
    """

    mark: ClassVar[str] = "target"
    module: ClassVar[str]
    """The environment's module in the package."""
    maker: ClassVar[str]
    """The environment's class."""

    terminate: bool = False
    """If True, reaching the goal ends the episode."""
    maze: MapName = "U_MAZE"
    """The map, by its name in the package."""
    goal_radius: Positive[float] = 0.45
    """Distance at which the goal is reached, in metres."""

    @property
    def layout(self) -> Layout:
        return _robotics_layout(self.module, self.maker, self.maze)[0]

    @property
    def cell_size(self) -> float:
        """Side of a cell, in metres."""
        return _robotics_layout(self.module, self.maker, self.maze)[1]

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        # The start is drawn until it is more than half a cell from the goal.
        del scene
        layout = self.layout
        side = self.cell_size
        goal = layout.goals[rng.integers(len(layout.goals))] + side * rng.uniform(-0.25, 0.25, 2)
        start = goal
        while np.linalg.norm(start - goal) <= side / 2:
            start = layout.starts[rng.integers(len(layout.starts))]
        self.begin(data, start + side * rng.uniform(-0.25, 0.25, 2), goal)


@parameter_class
class RoboticsAntMaze(RoboticsMaze):
    """Gymnasium's Ant-v5 in a maze; its x and y are the achieved goal, not in the observation."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "cfrc_ext", "userdata")
    mark_height: ClassVar[float] = AntTask.mark_height
    module: ClassVar[str] = "gymnasium_robotics.envs.maze.ant_maze_v5"
    maker: ClassVar[str] = "AntMazeEnv"

    frame_skip: int = 5

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions but x and y, velocities, clipped contact forces, [R, 105]."""
        forces = np.clip(state.cfrc_ext[:, 1:_BODIES], -1.0, 1.0)
        return np.concatenate(
            (
                state.qpos[:, 2:POSITIONS],
                state.qvel[:, :VELOCITIES],
                forces.reshape(len(forces), -1),
            ),
            axis=1,
        )

    def goal_place(self, key: str, elements: tuple[int, ...], goal: FloatArray) -> Place | None:
        """x, y and z of a goal; the observation holds no place."""
        return None if key == "observation" else super().goal_place(key, elements, goal)


@parameter_class
class RoboticsPointMaze(RoboticsMaze):
    """A ball that is pushed; its observation is place and velocity."""

    module: ClassVar[str] = "gymnasium_robotics.envs.maze.point_maze"
    maker: ClassVar[str] = "PointMazeEnv"
    mark_height: ClassVar[float] = 0.4
    max_speed: ClassVar[float] = 5.0
    """Largest speed along an axis at the beginning of a step, in metres per second."""
    farthest_step: ClassVar[float] = max_speed * 0.01
    """Largest distance along an axis in one step, of 10 ms, in metres."""

    subgoal_radius: Positive[float] = 0.25
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        # The package clips the ball's speed.
        np.clip(data.qvel, -self.max_speed, self.max_speed, out=data.qvel)
        mujoco.mj_forward(scene.model, data)
        super().advance(scene, data, action, rng)

    def motion(self, state: MujocoState) -> FloatArray:
        """Place and velocity, [R, 4]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)


@cache
def _robotics_layout(module: str, maker: str, name: str) -> tuple[Layout, float]:
    """The maze, and the side of its cells, in metres."""
    cells = getattr(imported("gymnasium_robotics.envs.maze.maps", kind="goal world"), name)
    world = getattr(imported(module, kind="goal world"), maker)(maze_map=cells)
    maze = world.maze
    side = float(maze.maze_size_scaling)
    x, y = maze.x_map_center - side, maze.y_map_center - side  # without the rim
    layout = Layout(
        model=_read_and_delete(world.tmp_xml_file_path),
        low=(-x, -y),
        high=(x, y),
        starts=np.array(maze.unique_reset_locations, np.float64),
        goals=np.array(maze.unique_goal_locations, np.float64),
    )
    world.close()
    return layout, side


def _robotics(
    name: str, engine: type[Robotics], world: str, maze: MapName, steps: int
) -> type[Robotics]:
    summary = f"Gymnasium-Robotics' `{world}`."
    return variant(name, engine, summary, max_episode_steps=steps, maze=maze)


RoboticsAntMazeU = _robotics("RoboticsAntMazeU", RoboticsAntMaze, "AntMaze_UMaze-v5", "U_MAZE", 700)
RoboticsAntMazeMedium = _robotics(
    "RoboticsAntMazeMedium", RoboticsAntMaze, "AntMaze_Medium-v5", "MEDIUM_MAZE", 1000
)
RoboticsAntMazeLarge = _robotics(
    "RoboticsAntMazeLarge", RoboticsAntMaze, "AntMaze_Large-v5", "LARGE_MAZE", 1000
)
RoboticsPointMazeU = _robotics(
    "RoboticsPointMazeU", RoboticsPointMaze, "PointMaze_UMaze-v3", "U_MAZE", 300
)
RoboticsPointMazeMedium = _robotics(
    "RoboticsPointMazeMedium", RoboticsPointMaze, "PointMaze_Medium-v3", "MEDIUM_MAZE", 600
)
RoboticsPointMazeLarge = _robotics(
    "RoboticsPointMazeLarge", RoboticsPointMaze, "PointMaze_Large-v3", "LARGE_MAZE", 800
)


def _read_and_delete(path: str) -> str:
    """The text of a temporary file that a package leaves behind."""
    file = Path(path)
    text = file.read_text(encoding="utf-8")
    file.unlink()
    return text
