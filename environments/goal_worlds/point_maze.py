"""A ball pushed through a maze: the point mazes."""

from functools import cached_property
from typing import Annotated, ClassVar

import numpy as np
from annotated_types import Interval

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.goal_worlds.goal_task import (
    GoalTask,
    add_goal_disc,
    empty_scene,
    set_damping,
    variant,
)
from coach_rl.environments.goal_worlds.maze_map import Cell, MazeMap
from coach_rl.environments.mujoco import MujocoState, Scene
from coach_rl.environments.mujoco.engine import mujoco

_FROM_ABOVE = FrozenMapping[str]({"azimuth": 90.0, "elevation": -89.9})


U = (
    "#####",
    "#...#",
    "###.#",
    "#...#",
    "#####",
)
"""One wall to go around."""
MEDIUM = (
    "########",
    "#..##..#",
    "#..#...#",
    "##...###",
    "#..#...#",
    "#.#..#.#",
    "#...#..#",
    "########",
)
"""The medium maze of D4RL (Fu et al. 2020)."""
LARGE = (
    "############",
    "#....#.....#",
    "#.##.#.#.#.#",
    "#......#...#",
    "#.####.###.#",
    "#..#.#.....#",
    "##.#.#.#.###",
    "#..#...#...#",
    "############",
)
"""The large maze of D4RL."""
FOUR_ROOMS = (
    "###########",
    "#....#....#",
    "#....#....#",
    "#.........#",
    "#....#....#",
    "##.####.###",
    "#....#....#",
    "#....#....#",
    "#.........#",
    "#....#....#",
    "###########",
)
"""Four rooms, each with a door to both of its neighbours, after Sutton, Precup and Singh 1999."""


@parameter_class
class PointMaze(GoalTask):
    """Push a ball along x and y to a goal in another cell of a maze; walls are in the way.

    The middle of the map is the origin, x points right and y up on it. Start and goal are drawn
    from the map's cells, never from the same one, and moved about in them.
    """

    max_episode_steps: ClassVar[int | None] = 200
    mark_height: ClassVar[float] = 0.2  # as high as the walls, or they would hide it

    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _FROM_ABOVE
    maze: tuple[str, ...] = U
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 1.0
    """Side of a cell, in metres."""
    ball_radius: Positive[float] = 0.1
    """Radius of the ball in metres."""
    max_speed: Positive[float] = 2.0
    """Speed along each axis under full force, in metres per second."""
    response_time: Positive[float] = 0.25
    """Seconds in which the speed covers 63 % of the difference to its final value."""
    min_path: Positive[int] = 1
    """Minimum number of steps from cell to neighbouring cell between start and goal."""
    noise: Annotated[float, Interval(ge=0, lt=0.5)] = 0.25
    """Largest distance of start and goal from their cells' centres along x and y, in cells."""
    goal_radius: Positive[float] = 0.45
    """Distance at which the goal is reached, in metres."""
    subgoal_radius: Positive[float] = 0.25
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""
    timestep: Positive[float] = 0.01
    """Seconds of a simulator step."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        room = (0.5 - self.noise) * self.cell_size
        require(
            self.ball_radius < room,
            f"{name}.ball_radius must be less than (0.5 - noise) * cell_size = {room:g}, or "
            f"episodes would start in walls, got {self.ball_radius}",
        )
        apart = (1 - 2 * self.noise) * self.cell_size
        require(
            self.goal_radius < apart,
            f"{name}.goal_radius must be less than (1 - 2 * noise) * cell_size = {apart:g}, or "
            f"episodes would start at the goal, got {self.goal_radius}",
        )
        step = self.max_speed * self.timestep
        most = self.ball_radius
        require(
            step <= most,
            f"{name}.max_speed * timestep must be at most ball_radius, or the ball would pass "
            f"through walls, got {step:g} and {most}",
        )
        require(
            len(self.pairs) > 0,
            f"{name}.min_path is longer than any way from a start to a goal, got {self.min_path}",
        )

    @cached_property
    def map(self) -> MazeMap:
        """The checked map."""
        return MazeMap(self.maze)

    @cached_property
    def pairs(self) -> tuple[tuple[Cell, Cell], ...]:
        """All pairs of a start and a goal that is far enough away."""
        pairs = []
        for start in self.map.starts:
            away = self.map.distances(start)
            pairs += [(start, goal) for goal in self.map.goals if away[goal] >= self.min_path]
        return tuple(pairs)

    @property
    def farthest_step(self) -> float:
        """Largest distance along an axis in one step, in metres."""
        return self.max_speed * self.timestep * self.frame_skip

    def place(self, cell: Cell) -> FloatArray:
        """Centre of a cell, [2]."""
        rows, columns = len(self.maze), len(self.maze[0])
        return self.cell_size * np.array(
            [cell[1] - (columns - 1) / 2, (rows - 1) / 2 - cell[0]], np.float64
        )

    def spec(self) -> mujoco.MjSpec:
        """A ball of 1 kg on two rails among frictionless walls; a disc at the goal."""
        spec = empty_scene("point_maze")
        spec.option.timestep = self.timestep
        spec.nuserdata = 2
        # The camera stands at 1.5 times the extent: there a square frame shows the whole map.
        spec.stat.extent = 0.84 * self.cell_size * max(len(self.maze), len(self.maze[0]))
        spec.stat.center = [0, 0, 0]
        half = self.cell_size / 2
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE,
            size=[half * len(self.maze[0]), half * len(self.maze), 0.1],
            rgba=[0.62, 0.64, 0.62, 1],
            contype=0,
            conaffinity=0,
        )
        height = 2 * self.ball_radius
        for row, first, count in self.map.runs("#"):
            middle = (self.place((row, first)) + self.place((row, first + count - 1))) / 2
            spec.worldbody.add_geom(
                type=mujoco.mjtGeom.mjGEOM_BOX,
                pos=[*middle, height / 2],
                size=[half * count, half, height / 2],
                rgba=[0.2, 0.24, 0.32, 1],
                condim=1,
            )
        ball = spec.worldbody.add_body(name="ball", pos=[0, 0, self.ball_radius])
        # The ball has 1 kg: full speed is force over damping, the time to reach it 1 / damping.
        for name, axis in (("x", [1, 0, 0]), ("y", [0, 1, 0])):
            rail = ball.add_joint(name=name, type=mujoco.mjtJoint.mjJNT_SLIDE, axis=axis)
            set_damping(rail, 1 / self.response_time)
            motor = spec.add_actuator(
                name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrllimited=True
            )
            motor.ctrlrange = [-1, 1]
            motor.gear[0] = self.max_speed / self.response_time
        ball.add_geom(
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            size=[self.ball_radius, 0, 0],
            mass=1,
            rgba=[0.2, 0.55, 0.85, 1],
            condim=1,
        )
        add_goal_disc(spec, self.goal_radius, (0.95, 0.8, 0.1, 0.7))
        return spec

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        del scene
        pairs = self.pairs
        start, goal = pairs[rng.integers(len(pairs))]
        size = self.noise * self.cell_size
        data.qpos[:] = self.place(start) + rng.uniform(-size, size, 2)
        data.userdata[:] = self.place(goal) + rng.uniform(-size, size, 2)
        data.mocap_pos[0] = (*data.userdata, 0.0)

    @property
    def goal_space(self) -> GoalSpace:
        """Places on the map, reached within `goal_radius`."""
        return self._places("achieved_goal", None, self.goal_radius)

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places on the map, reached within `subgoal_radius` at any speed."""
        return self._places("observation", (0, 1), self.subgoal_radius)

    def _places(self, key: str, elements: tuple[int, ...] | None, radius: float) -> GoalSpace:
        half = self.cell_size / 2
        x, y = half * (len(self.maze[0]) - 2), half * (len(self.maze) - 2)  # without the rim
        return GoalSpace(
            key=key,
            elements=elements,
            low=(-x, -y),
            high=(x, y),
            threshold=(radius, radius),
            reached_within="ball",
        )

    def motion(self, state: MujocoState) -> FloatArray:
        """Place and velocity, [R, 4]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        return np.asarray(state.qpos)

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return self.distance(achieved_goal, desired_goal) <= self.goal_radius


PointMazeU = variant("PointMazeU", PointMaze, "One wall to go around.")
PointMazeMedium = variant(
    "PointMazeMedium",
    PointMaze,
    "The medium maze of D4RL.",
    max_episode_steps=400,
    maze=MEDIUM,
)
PointMazeLarge = variant(
    "PointMazeLarge",
    PointMaze,
    "The large maze of D4RL.",
    max_episode_steps=600,
    maze=LARGE,
)
PointMazeFourRooms = variant(
    "PointMazeFourRooms",
    PointMaze,
    "Four rooms and four doors; the goal lies in another room than the start.",
    max_episode_steps=400,
    maze=FOUR_ROOMS,
    min_path=7,  # six steps lead from any cell of a room to any other
)
