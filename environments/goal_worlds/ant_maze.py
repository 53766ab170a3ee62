"""An ant in a maze; the mazes of HIRO: walk around a wall, push a block, fill a gap with it."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.goal_worlds.ant_body import (
    GROUND_COLOR,
    POSITIONS,
    SPAN,
    VELOCITIES,
    add_ant,
    ground,
)
from coach_rl.environments.goal_worlds.ant_task import (
    GOAL_COLOR,
    AntTask,
    add_box,
    look_at,
)
from coach_rl.environments.goal_worlds.maze_map import ANT_FALL, ANT_MAZE, ANT_PUSH, Cell, MazeMap
from coach_rl.environments.mujoco import MujocoState, Range, Scene
from coach_rl.environments.mujoco.engine import mujoco

_BLOCK, _GAP = "B", "~"
_GROUND = "#.SG" + _BLOCK
_NOISE = 0.1
"""Noise of the first pose: uniform on positions, normal on velocities."""
_FIRM, _SOFT = (0.995, 0.995, 0.01), (0.8, 0.8, 0.01)
"""Impedance of contacts, with a block that moves and without."""
_MOVED = 0.05
"""Distance from its start at which a block counts as moved, in metres. An ant that brushes past the
block of Ant Push drags it farther, and it jams between the walls."""
_DEPTH_COLOR, _BLOCK_COLOR = (0.3, 0.25, 0.22, 1), (0.75, 0.25, 0.2, 1)
_REACH = (10.0, 10.0, 0.5, 1.0, 1.0, 1.0, 1.0, *(0.5, 0.3) * 4)
"""Largest relative sub-goals of HIRO's upper level, by element of the observation."""
_HIGHEST, _WIDEST = 2.0, np.pi / 2
"""More than a torso rises above the floor, in metres, and a joint turns, in radians."""


@parameter_class
class MazeOfAnAnt(AntTask):
    """An ant in a maze of cells.

    The middle of the start cell is the origin, x points right and y up on the map. On it `S` is the
    start, `B` a block that moves and `~` a gap; with a gap the rest of the floor is raised by the
    height of a block.
    """

    block_moves: ClassVar[tuple[str, ...]] = ()
    """Axes along which the map's blocks slide; one that slides along z falls into gaps."""
    block_mass: ClassVar[float] = 0.0
    """Kilograms."""

    terminate: bool = False
    """If True, reaching the goal ends the episode."""
    maze: tuple[str, ...] = ANT_MAZE
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 8.0
    """Side of a cell, in metres."""
    block_height: Positive[float] = 4.0
    """Height of walls and blocks, and depth of gaps, in metres."""
    goal_radius: Positive[float] = 5.0
    """Distance at which the goal is reached, in metres."""
    targets: Literal["training", "evaluation"] = "training"
    """Distribution of the goals: `training` or `evaluation`."""
    more_walls: tuple[tuple[float, float, float, float], ...] = ()
    """Walls that are no whole cells: x and y of the middle, extent along x and y, in metres."""
    observe_block: bool = False
    """If True, the positions of the blocks end the observation; HIRO hid them."""
    position_noise: NonNegative[float] = 0.0
    """Standard deviation of a push along x and y that the ant gets after each step, in metres; 0.05
    in the stochastic worlds of HIGL (Kim et al. 2021). What would push it into a wall puts it back
    to where the step began."""
    subgoal_radius: Positive[float] = 0.5
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        starts = self.map.cells("S")
        require(len(starts) == 1, f"{name}.maze must have one start 'S', got {len(starts)}")
        row, column = self.start
        around = "".join(line[column - 1 : column + 2] for line in self.maze[row - 1 : row + 2])
        require(
            self.cell_size * (1 if "#" in around else 3) > 2 * SPAN,
            f"{name}.cell_size must be more than {2 * SPAN:g}, or the ant would start in walls, "
            f"got {self.cell_size}",
        )

    @cached_property
    def map(self) -> MazeMap:
        """The maze, checked."""
        movable = _BLOCK if self.block_moves else ""
        return MazeMap(self.maze, more_signs=movable + (_GAP if "z" in self.block_moves else ""))

    @property
    def start(self) -> Cell:
        """The cell whose middle is the origin."""
        return self.map.cells("S")[0]

    @property
    def floor_height(self) -> float:
        """Height of the ground to walk on, in metres."""
        return self.block_height if self.map.cells(_GAP) else 0.0

    def place(self, cell: Cell) -> FloatArray:
        """Return the centre of a cell, [2]."""
        row, column = self.start
        return self.cell_size * np.array([cell[1] - column, row - cell[0]], np.float64)

    def spec(self) -> mujoco.MjSpec:
        """An ant in a maze, the blocks, and a disc where the goal is."""
        rows, columns = len(self.maze), len(self.maze[0])
        middle = (self.place((0, 0)) + self.place((rows - 1, columns - 1))) / 2
        largest = self.cell_size * max(rows, columns)
        spec = ground(
            "ant_maze",
            timestep=self.timestep,
            half_side=2 * largest,
            impedance=_FIRM if self.map.cells(_BLOCK) else _SOFT,
        )
        spec.nuserdata = self.goal_size
        look_at(spec, (*middle, 0.0), 0.85 * largest)  # of the outer walls only a part
        floor = self.floor_height
        add_ant(spec, height=floor, gear=self.gear)
        if floor > 0:
            spec.geom("ground").rgba = _DEPTH_COLOR
            self._add_boxes(spec, _GROUND, bottom=0.0, rgba=GROUND_COLOR)
        self._add_boxes(spec, "#", bottom=floor)
        for cell in self.map.cells(_BLOCK):
            self._add_block(spec, cell)
        for x, y, width, depth in self.more_walls:
            add_box(
                spec,
                (x, y, floor + self.block_height / 2),
                (width, depth, self.block_height),
            )
        mark = spec.worldbody.add_body(name="goal", mocap=True)
        mark.add_site(
            pos=[0, 0, 0.05],  # clear of the floor, or both would flicker
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[self.goal_radius, 0.01, 0.01],
            rgba=GOAL_COLOR,
        )
        return spec

    @abstractmethod
    def target(self, rng: np.random.Generator) -> Sequence[float] | FloatArray:
        """Draw a goal, [G]."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """A noisy pose at the start, blocks in their places; the goal is drawn from the targets."""
        data.qpos[:POSITIONS] = scene.init_qpos[:POSITIONS]
        data.qpos[:POSITIONS] += rng.uniform(-_NOISE, _NOISE, POSITIONS)
        mujoco.mju_normalize4(data.qpos[3:7])  # what MuJoCo takes the noisy orientation for
        data.qvel[:VELOCITIES] = _NOISE * rng.standard_normal(VELOCITIES)
        data.userdata[: self.goal_size] = self.target(rng)
        data.mocap_pos[0] = (*data.userdata[:2], self.floor_height)

    @property
    def has_own_advance(self) -> bool:
        """Return whether there is noise, or a subclass with rules of its own."""
        return self.position_noise > 0 or type(self).advance is not MazeOfAnAnt.advance

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        """Simulate one step, and push the ant about if `position_noise` says so."""
        before = data.qpos[:2].copy()
        super().advance(scene, data, action, rng)
        if self.position_noise == 0:
            return
        data.qpos[:2] += rng.normal(0.0, self.position_noise, 2)
        if self._is_wall(*data.qpos[:2]):
            data.qpos[:2] = before
        mujoco.mj_forward(scene.model, data)

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant [R, 29], places of the blocks [3 each] if asked.

        With `shows_pose` the height is that above the floor, so that who can walk on one can walk
        on any.
        """
        motion = super().motion(state)
        if self.shows_pose:
            motion[:, 2] -= self.floor_height
        if not self.observe_block:
            return motion
        return np.concatenate((motion, self._block_places(state)), axis=1)

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        """Return where the distance is within the goal's radius, [...]."""
        return self.distance(achieved_goal, desired_goal) <= self.goal_radius

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places in the maze, or poses, reached within `subgoal_radius`."""
        if not self.shows_pose:
            return self._places("observation", self._place, self.subgoal_radius)
        return self.poses(self._places("observation", (0, 1), self.subgoal_radius))

    @property
    def conditions(self) -> GoalSpace | None:
        """The places of blocks along the floor, or their heights if they fall; if observed.

        What counts is whether a block was moved, by more than the threshold, and which way: it fits
        between walls so closely that one pushed askew can't be pushed where it opens a way.
        """
        moves = "z" if "z" in self.block_moves else self.block_moves
        axes = ["xyz".index(axis) for axis in moves]
        cells = self.map.cells(_BLOCK)
        if not (self.observe_block and cells and axes):
            return None
        first = POSITIONS + VELOCITIES
        starts = [self._block_start(cell)[axis] for cell in cells for axis in axes]
        far = 3 * _MOVED
        return GoalSpace(
            low=tuple(start - far for start in starts),
            high=tuple(start + far for start in starts),
            threshold=(_MOVED,) * len(starts),
            elements=tuple(first + 3 * i + axis for i, _ in enumerate(cells) for axis in axes),
        )

    @property
    def extent(self) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Lowest and highest x, y and z where a torso can be."""
        rows, columns = len(self.maze), len(self.maze[0])
        low = self.place((rows - 2, 1)) - self.cell_size / 2
        high = self.place((1, columns - 2)) + self.cell_size / 2
        return (*low.tolist(), 0.0), (*high.tolist(), self.floor_height + _HIGHEST)

    @property
    def _place(self) -> tuple[int, ...]:
        """The elements of an observation, and of the simulator's positions, that are the place."""
        return tuple(range(min(self.goal_size, self.place_elements)))

    def _places(self, key: str, elements: tuple[int, ...] | None, radius: float) -> GoalSpace:
        low, high = self.extent
        size = self.goal_size if elements is None else len(elements)
        return GoalSpace(
            low=low[:size],
            high=high[:size],
            threshold=(radius,) * size,
            key=key,
            elements=elements,
            reward=self.reward_type,
            reached_within="ball",
        )

    def _is_wall(self, x: float, y: float) -> bool:
        """Return whether a place lies in a wall; so does everything beyond the map."""
        row = self.start[0] - round(y / self.cell_size)
        column = self.start[1] + round(x / self.cell_size)
        on_map = 0 <= row < len(self.maze) and 0 <= column < len(self.maze[0])
        return not on_map or self.maze[row][column] == "#"

    def _add_boxes(
        self,
        spec: mujoco.MjSpec,
        signs: str,
        *,
        bottom: float,
        rgba: tuple[float, float, float, float] | None = None,
    ) -> None:
        """A box under each run of cells with such signs."""
        color = {} if rgba is None else {"rgba": rgba}
        for row, first, count in self.map.runs(signs):
            x, y = (self.place((row, first)) + self.place((row, first + count - 1))) / 2
            add_box(
                spec,
                (x, y, bottom + self.block_height / 2),
                (count * self.cell_size, self.cell_size, self.block_height),
                **color,
            )

    def _add_block(self, spec: mujoco.MjSpec, cell: Cell) -> None:
        """A block that slides; it has no margin, which its contacts then have of what it meets.

        The margin of a contact was the larger one of two geoms' in MuJoCo 2, for which the mazes
        were made, and is now their sum: with its own a small block hovers above a gap that it fits.
        """
        name = f"block_{cell[0]}_{cell[1]}"
        block = spec.worldbody.add_body(name=name, pos=self._block_start(cell))
        falls = "z" in self.block_moves
        side = self.cell_size / 2 * (0.99 if falls else 1.0)  # a falling one must fit the gap
        block.add_geom(
            type=mujoco.mjtGeom.mjGEOM_BOX,
            size=[side, side, self.block_height / 2],
            mass=self.block_mass,
            margin=0,
            rgba=_BLOCK_COLOR,
        )
        far = self.cell_size
        for axis in self.block_moves:
            slide = block.add_joint(
                name=f"{name}_{axis}",
                type=mujoco.mjtJoint.mjJNT_SLIDE,
                axis=[axis == other for other in "xyz"],
                limited=falls,
                margin=0.01,
            )
            slide.range = [-self.block_height, 0] if axis == "z" else [-far, far]

    def _block_start(self, cell: Cell) -> tuple[float, float, float]:
        x, y = self.place(cell)
        return x, y, self.floor_height + self.block_height / 2

    def _block_places(self, state: MujocoState) -> FloatArray:
        """Middles of the blocks, [R, 3 for each]."""
        starts = np.array([self._block_start(cell) for cell in self.map.cells(_BLOCK)])
        shifts = state.qpos[:, POSITIONS:]
        places = np.tile(starts.reshape(1, -1, 3), (len(shifts), 1, 1))
        axes = ["xyz".index(axis) for axis in self.block_moves]
        places[:, :, axes] += shifts.reshape(len(shifts), len(starts), len(axes))
        return places.reshape(len(shifts), -1)


@parameter_class
class AntMaze(MazeOfAnAnt):
    """HIRO's Ant Maze: from one end of a U to the other."""

    max_episode_steps: ClassVar[int | None] = 500

    reward_type: Literal["sparse", "dense"] = "dense"
    """sparse: a step is worth 0 where it led to the goal, else -1. dense: minus the distance to the
    goal after the step."""
    training_targets: tuple[Range, ...] = ((-4.0, 20.0), (-4.0, 20.0))
    """A range for each element of a goal, drawn uniformly, in metres."""
    evaluation_targets: tuple[Range, ...] = ((0.0, 0.0), (16.0, 16.0))
    """The same where `targets` is `evaluation`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            len(self.training_targets) == len(self.evaluation_targets) in (2, 3),
            f"{type(self).__name__}.training_targets and evaluation_targets must both have 2 or 3 "
            f"ranges, for x, y and z, got {len(self.training_targets)} and "
            f"{len(self.evaluation_targets)}",
        )

    @property
    def goal_size(self) -> int:
        """Elements of a goal, G."""
        return len(self.training_targets)

    @property
    def goal_space(self) -> GoalSpace:
        """The goals of the task, for the top level of a hierarchy: anywhere in the maze."""
        return self._places("achieved_goal", None, self.goal_radius)

    @property
    def subgoal_space(self) -> GoalSpace:
        """HIRO's sub-goals: how far to change each of the ant's 15 positions, rewarded densely.

        They are never reached, so a sub-goal holds for its whole horizon; and their bounds are so
        wide that they are never clipped. Poses, if `shows_pose` asks for them.
        """
        if self.shows_pose:
            return super().subgoal_space
        low = (*self.extent[0], *(-1.0,) * 4, *(-_WIDEST,) * 8)
        high = (*self.extent[1], *(1.0,) * 4, *(_WIDEST,) * 8)
        return GoalSpace(
            low=tuple(bound - reach for bound, reach in zip(low, _REACH, strict=True)),
            high=tuple(bound + reach for bound, reach in zip(high, _REACH, strict=True)),
            threshold=(0.0,) * POSITIONS,
            elements=tuple(range(POSITIONS)),
            relative=True,
            reach=_REACH,
            reward="dense",
        )

    def target(self, rng: np.random.Generator) -> Sequence[float]:
        """Draw a goal from its ranges, [G]."""
        ranges = self.training_targets if self.targets == "training" else self.evaluation_targets
        return [rng.uniform(*bounds) for bounds in ranges]


@parameter_class
class AntPush(AntMaze):
    """HIRO's Ant Push: a block closes the way up; it must be pushed away from its left."""

    block_moves: ClassVar[tuple[str, ...]] = ("x", "y")
    block_mass: ClassVar[float] = 0.0002

    maze: tuple[str, ...] = ANT_PUSH
    """Rows of the map, see `MazeMap`."""
    training_targets: tuple[Range, ...] = ((0.0, 0.0), (19.0, 19.0))
    """A range for each element of a goal, drawn uniformly, in metres."""
    evaluation_targets: tuple[Range, ...] = ((0.0, 0.0), (19.0, 19.0))
    """The same where `targets` is `evaluation`."""


@parameter_class
class AntFall(AntMaze):
    """HIRO's Ant Fall: a gap that can be crossed only over the block that was pushed into it."""

    block_moves: ClassVar[tuple[str, ...]] = ("y", "z")
    block_mass: ClassVar[float] = 0.001
    mark_height: ClassVar[float] = 4.75  # the floor is raised

    maze: tuple[str, ...] = ANT_FALL
    """Rows of the map, see `MazeMap`."""
    training_targets: tuple[Range, ...] = ((0.0, 0.0), (27.0, 27.0), (4.5, 4.5))
    """A range for each element of a goal, drawn uniformly, in metres."""
    evaluation_targets: tuple[Range, ...] = ((0.0, 0.0), (27.0, 27.0), (4.5, 4.5))
    """The same where `targets` is `evaluation`."""
