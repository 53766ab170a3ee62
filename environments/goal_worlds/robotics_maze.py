"""The ant and point mazes of Gymnasium-Robotics: AntMaze-v5 and PointMaze-v3.

Models, maps, starts, goals, radius and time limits come from the package, whose environments behave
alike (de Lazcano et al. 2024, after D4RL, Fu et al. 2020).
"""

from functools import cache
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.marks import Place
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray
from coach_rl.environments.goal_worlds.ant_body import POSITIONS, VELOCITIES
from coach_rl.environments.goal_worlds.ant_task import AntTask
from coach_rl.environments.goal_worlds.packaged_maze import Layout, PackagedMaze, away, text_of
from coach_rl.environments.gymnasium.recipe import imported
from coach_rl.environments.mujoco import MujocoState, Scene
from coach_rl.environments.mujoco.engine import mujoco

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


@parameter_class
class RoboticsMaze(PackagedMaze):
    """A maze of Gymnasium-Robotics: start and goal in two of its cells, both moved about in them.

    With the same seed and actions it shows the same as the package's environment. A step is worth 0
    at the goal, else -1; there 1 and 0. Episodes go on at the goal, as there, unless `terminate`
    says otherwise.
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
        """The maze."""
        return _layout(self.module, self.maker, self.maze)[0]

    @property
    def cell_size(self) -> float:
        """Side of a cell, in metres."""
        return _layout(self.module, self.maker, self.maze)[1]

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Draw a goal, then a start until it is more than half a cell from the goal; at rest."""
        del scene
        layout, side = self.layout, self.cell_size
        goal = layout.goals[rng.integers(len(layout.goals))] + side * away(rng, 0.25)
        start = goal
        while np.linalg.norm(start - goal) <= side / 2:
            start = layout.starts[rng.integers(len(layout.starts))]
        self.begin(data, start + side * away(rng, 0.25), goal)


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
    """A ball that is pushed about; its observation is place and velocity."""

    module: ClassVar[str] = "gymnasium_robotics.envs.maze.point_maze"
    maker: ClassVar[str] = "PointMazeEnv"
    mark_height: ClassVar[float] = 0.4
    max_speed: ClassVar[float] = 5.0
    """Speed along an axis with which a step begins at most, in metres per second."""
    farthest_step: ClassVar[float] = max_speed * 0.01
    """Largest distance along an axis in one step, of 10 ms, in metres."""

    subgoal_radius: Positive[float] = 0.25
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        """Clip the ball's speed, as the package does, and simulate one step."""
        np.clip(data.qvel, -self.max_speed, self.max_speed, out=data.qvel)
        mujoco.mj_forward(scene.model, data)
        super().advance(scene, data, action, rng)

    def motion(self, state: MujocoState) -> FloatArray:
        """Place and velocity, [R, 4]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)


@parameter_class
class RoboticsAntMazeU(RoboticsAntMaze):
    """Gymnasium-Robotics' `AntMaze_UMaze-v5`."""

    max_episode_steps: ClassVar[int | None] = 700


@parameter_class
class RoboticsAntMazeMedium(RoboticsAntMaze):
    """Gymnasium-Robotics' `AntMaze_Medium-v5`."""

    max_episode_steps: ClassVar[int | None] = 1000

    maze: MapName = "MEDIUM_MAZE"
    """The map, by its name in the package."""


@parameter_class
class RoboticsAntMazeLarge(RoboticsAntMaze):
    """Gymnasium-Robotics' `AntMaze_Large-v5`."""

    max_episode_steps: ClassVar[int | None] = 1000

    maze: MapName = "LARGE_MAZE"
    """The map, by its name in the package."""


@parameter_class
class RoboticsPointMazeU(RoboticsPointMaze):
    """Gymnasium-Robotics' `PointMaze_UMaze-v3`."""

    max_episode_steps: ClassVar[int | None] = 300


@parameter_class
class RoboticsPointMazeMedium(RoboticsPointMaze):
    """Gymnasium-Robotics' `PointMaze_Medium-v3`."""

    max_episode_steps: ClassVar[int | None] = 600

    maze: MapName = "MEDIUM_MAZE"
    """The map, by its name in the package."""


@parameter_class
class RoboticsPointMazeLarge(RoboticsPointMaze):
    """Gymnasium-Robotics' `PointMaze_Large-v3`."""

    max_episode_steps: ClassVar[int | None] = 800

    maze: MapName = "LARGE_MAZE"
    """The map, by its name in the package."""


@cache
def _layout(module: str, maker: str, name: str) -> tuple[Layout, float]:
    """The maze, and the side of its cells in metres."""
    cells = getattr(imported("gymnasium_robotics.envs.maze.maps", kind="goal world"), name)
    world = getattr(imported(module, kind="goal world"), maker)(maze_map=cells)
    maze = world.maze
    side = float(maze.maze_size_scaling)
    x, y = maze.x_map_center - side, maze.y_map_center - side  # without the rim
    layout = Layout(
        model=text_of(world.tmp_xml_file_path),
        low=(-x, -y),
        high=(x, y),
        starts=np.array(maze.unique_reset_locations, np.float64),
        goals=np.array(maze.unique_goal_locations, np.float64),
    )
    world.close()
    return layout, side
