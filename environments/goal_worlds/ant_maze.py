"""Ants in mazes: the engine, with dense goals (HIRO), sparse ones, and keys to fetch first."""

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
from coach_rl.environments.goal_worlds.ant import (
    GOAL_COLOR,
    GROUND_COLOR,
    POSITIONS,
    SPAN,
    VELOCITIES,
    AntTask,
    add_ant,
    add_box,
    frame_scene,
    ground,
)
from coach_rl.environments.goal_worlds.goal_task import add_goal_disc
from coach_rl.environments.goal_worlds.maze_map import Cell, MazeMap
from coach_rl.environments.mujoco import MujocoState, Range, Scene
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import Judgement

_BLOCK = "B"
_GAP = "~"
_GROUND = "#.SG" + _BLOCK
"""Signs of the map under which the raised floor of Ant Fall is solid."""
_NOISE = 0.1
"""Noise of the first pose: uniform on positions, normal on velocities."""
_FIRM = (0.995, 0.995, 0.01)
_SOFT = (0.8, 0.8, 0.01)
"""Impedance of contacts, with a block that moves and without."""
_MOVED = 0.05
"""Distance from its start at which a block counts as moved, in metres: an ant that brushes past the
block of Ant Push drags it farther, and it jams between the walls."""
_ABOVE_FLOOR = 0.5
"""Height of sparse goals above a raised floor, in metres."""
_DEPTH_COLOR, _BLOCK_COLOR = (0.3, 0.25, 0.22, 1), (0.75, 0.25, 0.2, 1)
_REACH = (10.0, 10.0, 0.5, 1.0, 1.0, 1.0, 1.0, *(0.5, 0.3) * 4)
"""Largest relative sub-goals of HIRO's upper level, by element of the observation."""
_SIGNS = "123456789"
_KEY_REWARD, _CHEST_REWARD = 1.0, 5.0
_HALF_A_KEY = 0.5
"""Threshold of the number of keys in a goal: it must be equal."""
_KEY_COLOR = (0.2, 0.35, 0.9, 1)
_BURIED = -100.0
"""Height that hides a key that was taken, in metres."""
_HIGHEST = 2.0
_WIDEST = np.pi / 2
"""Bounds above what a torso rises over the floor, in metres, and a joint turns, in radians."""


@parameter_class
class MazeOfAnAnt(AntTask):
    """An ant in a maze of cells.

    The middle of the start cell is the origin, x points right and y up on the map. `S` is the
    start, `B` a block that moves and `~` a gap; with a gap the rest of the floor is raised by the
    height of a block.
    """

    block_moves: ClassVar[tuple[str, ...]] = ()
    """Axes along which the map's blocks slide; one that slides along z falls into gaps."""
    block_mass: ClassVar[float] = 0.0
    """Mass of each block, in kilograms."""
    wall_friction: ClassVar[tuple[float, float, float] | None] = None
    """Sliding, torsional and rolling friction of walls; None: that of the floor."""

    terminate: bool = False
    """If True, reaching the goal ends the episode."""
    maze: tuple[str, ...]
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
    """Standard deviation of a random push along x and y after each step, in metres; 0.05 in the
    stochastic worlds of HIGL (Kim et al. 2021). A push into a wall returns the ant to where the
    step began."""
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
        """The checked map."""
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
        """Centre of a cell, [2]: cell_size * (column - start column, start row - row)."""
        row, column = self.start
        return self.cell_size * np.array([cell[1] - column, row - cell[0]], np.float64)

    def spec(self) -> mujoco.MjSpec:
        """An ant in a maze, its blocks, and a disc at the goal."""
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
        frame_scene(spec, (*middle, 0.0), 0.85 * largest)  # of the outer walls only a part
        floor = self.floor_height
        add_ant(spec, height=floor, gear=self.gear)
        if floor > 0:
            spec.geom("ground").rgba = _DEPTH_COLOR
            self._add_boxes(spec, _GROUND, bottom=0.0, rgba=GROUND_COLOR)
        self._add_boxes(spec, "#", bottom=floor)
        for cell in self.map.cells(_BLOCK):
            self._add_block(spec, cell)
        height = self.block_height
        for x, y, width, depth in self.more_walls:
            add_box(spec, (x, y, floor + height / 2), (width, depth, height))
        add_goal_disc(spec, self.goal_radius, GOAL_COLOR)
        for geom in spec.worldbody.geoms if self.wall_friction else ():
            if geom.type == mujoco.mjtGeom.mjGEOM_BOX:
                geom.friction = self.wall_friction
        return spec

    @abstractmethod
    def target(self, rng: np.random.Generator) -> Sequence[float] | FloatArray:
        """Draw a goal, [G]."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        data.qpos[:POSITIONS] = scene.init_qpos[:POSITIONS]
        data.qpos[:POSITIONS] += rng.uniform(-_NOISE, _NOISE, POSITIONS)
        mujoco.mju_normalize4(data.qpos[3:7])  # as MuJoCo itself reads the noisy orientation
        data.qvel[:VELOCITIES] = _NOISE * rng.standard_normal(VELOCITIES)
        data.userdata[: self.goal_size] = self.target(rng)
        data.mocap_pos[0] = (*data.userdata[:2], self.floor_height)

    @property
    def has_own_advance(self) -> bool:
        # With noise, or rules of a subclass.
        return self.position_noise > 0 or type(self).advance is not MazeOfAnAnt.advance

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        before = data.qpos[:2].copy()
        super().advance(scene, data, action, rng)
        if self.position_noise == 0:
            return
        data.qpos[:2] += rng.normal(0.0, self.position_noise, 2)
        if self._is_wall(*data.qpos[:2]):
            data.qpos[:2] = before
        mujoco.mj_forward(scene.model, data)

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities [R, 29], with `observe_block` the blocks' places [3 each].

        With `shows_pose` the height is measured from the floor, so that a policy for one floor
        works on any.
        """
        motion = super().motion(state)
        if self.shows_pose:
            motion[:, 2] -= self.floor_height
        if not self.observe_block:
            return motion
        return np.concatenate((motion, self._block_places(state)), axis=1)

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return self.distance(achieved_goal, desired_goal) <= self.goal_radius

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places in the maze, or poses, reached within `subgoal_radius`."""
        if not self.shows_pose:
            return self._places("observation", self._place, self.subgoal_radius)
        return self.poses(self._places("observation", (0, 1), self.subgoal_radius))

    @property
    def conditions(self) -> GoalSpace | None:
        """Places of observed blocks along the floor, or their heights if they fall.

        A block counts as moved beyond the threshold, in either direction: it fits between walls so
        closely that once pushed askew it can't be pushed where it opens a way.
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
        """Lowest and highest x, y and z of a torso."""
        rows, columns = len(self.maze), len(self.maze[0])
        low = self.place((rows - 2, 1)) - self.cell_size / 2
        high = self.place((1, columns - 2)) + self.cell_size / 2
        return (*low.tolist(), 0.0), (*high.tolist(), self.floor_height + _HIGHEST)

    @property
    def _place(self) -> tuple[int, ...]:
        """Elements of the observation, and of `qpos`, that are the place."""
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
        """Return whether a place lies in a wall or beyond the map."""
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
        """Add a box for each run of neighbouring cells with such signs."""
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
        """Add a sliding block without a contact margin of its own.

        MuJoCo 2, for which the mazes were made, took the larger margin of two geoms; now it is
        their sum, with which a small block would hover above a gap that it fits.
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
        """Middles of the B blocks, [R, 3 B]."""
        starts = np.array([self._block_start(cell) for cell in self.map.cells(_BLOCK)])  # [B, 3]
        shifts = state.qpos[:, POSITIONS:]  # [R, B * axes]
        places = np.tile(starts.reshape(1, -1, 3), (len(shifts), 1, 1))  # [R, B, 3]
        axes = ["xyz".index(axis) for axis in self.block_moves]
        places[:, :, axes] += shifts.reshape(len(shifts), len(starts), len(axes))
        return places.reshape(len(shifts), -1)


@parameter_class
class DenseAntMaze(MazeOfAnAnt):
    """An ant in a maze of HIRO, with dense rewards and goals from ranges."""

    reward_type: Literal["sparse", "dense"] = "dense"
    training_targets: tuple[Range, ...] = ((-4.0, 20.0), (-4.0, 20.0))
    """Range of each element of a goal in training, in metres; goals are uniform in it."""
    evaluation_targets: tuple[Range, ...] = ((0.0, 0.0), (16.0, 16.0))
    """The same in evaluations."""

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
        return len(self.training_targets)

    @property
    def goal_space(self) -> GoalSpace:
        return self._places("achieved_goal", None, self.goal_radius)

    @property
    def subgoal_space(self) -> GoalSpace:
        """HIRO's sub-goals: changes of the ant's 15 positions, rewarded densely.

        They are never reached, so a sub-goal holds for its whole horizon, and their bounds are so
        wide that they are never clipped. With `shows_pose` sub-goals are poses instead.
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
        ranges = self.training_targets if self.targets == "training" else self.evaluation_targets
        return [rng.uniform(*bounds) for bounds in ranges]


@parameter_class
class SparseAntMaze(MazeOfAnAnt):
    """An ant in a maze that is rewarded for nothing but being at its goal.

    In training a goal lies anywhere on the free floor; in evaluations in the middle of a cell `G`
    of the map. An episode succeeds within `goal_radius`; rewards need the smaller `reward_radius`.
    """

    goal_size: ClassVar[int] = 2

    reward_radius: Positive[float] = 0.5
    """Distance at which the reward of a step becomes 0 instead of -1, in metres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        require(
            self.reward_radius <= self.goal_radius,
            f"{name}.reward_radius must be at most goal_radius = {self.goal_radius:g}, got "
            f"{self.reward_radius}",
        )
        require(len(self.map.cells("G")) > 0, f"{name}.maze must have goals 'G', got {self.maze}")

    @property
    def floor(self) -> str:
        """Signs of the cells in which goals of training may lie."""
        return ".SG" + (_BLOCK if self.block_moves else "")

    @property
    def goal_space(self) -> GoalSpace:
        """Places in the maze, reached within `reward_radius`."""
        return self._places("achieved_goal", None, self.reward_radius)

    def target(self, rng: np.random.Generator) -> FloatArray:
        cells = self.map.cells("G" if self.targets == "evaluation" else self.floor)
        place = self.place(cells[rng.integers(len(cells))])
        if self.targets == "training":
            place = place + rng.uniform(-0.5, 0.5, 2) * self.cell_size
        if "z" in self.block_moves:  # beyond the gap, on the raised floor
            place = np.append(place, self.floor_height + _ABOVE_FLOOR)
        return place

    def _worth(self, achieved_goal: Array, desired_goal: Array, success: BoolArray) -> FloatArray:
        del success  # which needs `goal_radius` only
        distance = self.distance(achieved_goal, desired_goal)
        if self.reward_type == "dense":
            return -distance
        return np.where(distance <= self.reward_radius, 0.0, -1.0)


@parameter_class
class KeyChestMaze(SparseAntMaze):
    """A maze of SSE with a chest that opens only with all keys.

    A goal is (x, y, keys): a place, and how many keys must have been taken. A key is taken within
    `goal_radius`, the keys of a map `1`, `2`, ... only in this order. The observation ends in a 1
    for each key that was taken and a 0 for each other.
    """

    goal_size: ClassVar[int] = 3
    place_elements: ClassVar[int] = 2

    terminate: bool = True
    """If True, opening the chest ends the episode."""
    maze: tuple[str, ...]
    """Rows of the map, see `MazeMap`; `1` to `9` are keys."""
    reward_radius: Positive[float] = 5.0
    """Distance from the chest at which it is opened and rewarded, in metres."""
    sparse_rewards: Literal["stages", "goal"] = "stages"
    """stages: 1 for taking a key, 5 at the chest with all keys, else 0, as in SSE. goal: 0 at the
    chest with all keys, else -1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        signs = [sign for sign in _SIGNS for _ in self.map.cells(sign)]
        require(
            len(signs) > 0 and signs == list(_SIGNS[: len(signs)]),
            f"{type(self).__name__}.maze must have keys '1', '2' and so on, each once, got {signs}",
        )

    @cached_property
    def map(self) -> MazeMap:
        return MazeMap(self.maze, more_signs=_SIGNS)

    @property
    def floor(self) -> str:
        return ".SG" + _SIGNS

    @cached_property
    def keys(self) -> FloatArray:
        """Places of the keys, [K, 2]."""
        signs = _SIGNS[: len(self.map.cells(_SIGNS))]
        return np.array([self.place(self.map.cells(sign)[0]) for sign in signs])

    @property
    def goal_space(self) -> GoalSpace:
        """A place within `reward_radius`, and a number of keys."""
        low, high = self.extent
        return GoalSpace(
            low=(*low[:2], 0.0),
            high=(*high[:2], float(len(self.keys))),
            threshold=(self.reward_radius, self.reward_radius, _HALF_A_KEY),
            key="achieved_goal",
            reward=self.reward_type,
            reached_within="ball",
        )

    def spec(self) -> mujoco.MjSpec:
        """The maze, with a post at each key."""
        spec = super().spec()
        spec.nuserdata = self.goal_size + 1  # the last one: how many keys were taken
        for number, _ in enumerate(self.keys):
            spec.worldbody.add_body(name=f"key_{number + 1}", mocap=True).add_site(
                type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.6, 0.6, 1.0], rgba=_KEY_COLOR
            )
        return spec

    def target(self, rng: np.random.Generator) -> FloatArray:
        """A place, as in all sparse mazes, and the number of keys, [3]."""
        return np.append(super().target(rng), float(len(self.keys)))

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        super().reset(scene, data, rng)
        data.userdata[-1] = 0.0
        data.mocap_pos[1:, :2] = self.keys
        data.mocap_pos[1:, 2] = 1.0

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        super().advance(scene, data, action, rng)
        taken = int(data.userdata[-1])
        if taken < len(self.keys):
            x, y = data.qpos[:2] - self.keys[taken]
            if np.hypot(x, y) <= self.goal_radius:
                data.userdata[-1] = taken + 1
                data.mocap_pos[1 + taken, 2] = _BURIED

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities, and a 1 for each key that was taken, [R, 29 + K]."""
        has = state.userdata[:, -1:] > np.arange(len(self.keys))  # [R, K]
        return np.concatenate((super().motion(state), has), axis=1)

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """Place of the torso, and number of keys taken, [R, 3]."""
        return np.concatenate((state.qpos[:, :2], state.userdata[:, -1:]), axis=1)

    def desired_goal(self, state: MujocoState) -> FloatArray:
        """Place of the goal, and number of keys, [R, 3]; behind it, the keys taken are stored."""
        return np.asarray(state.userdata[:, : self.goal_size])

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return self._near(achieved_goal, desired_goal, self.goal_radius)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        worth, terminated, info = super().judge(before, action, after)
        if self._is_staged:
            took_a_key = after.userdata[:, -1] > before.userdata[:, -1]
            worth = np.where((worth == 0) & took_a_key, _KEY_REWARD, worth)
        return worth, terminated, info

    @property
    def _is_staged(self) -> bool:
        return self.reward_type == "sparse" and self.sparse_rewards == "stages"

    def _near(self, achieved_goal: Array, desired_goal: Array, radius: float) -> BoolArray:
        away = np.asarray(achieved_goal) - desired_goal
        near = np.hypot(away[..., 0], away[..., 1]) <= radius
        return np.asarray(near & (np.abs(away[..., 2]) < _HALF_A_KEY))

    def _worth(self, achieved_goal: Array, desired_goal: Array, success: BoolArray) -> FloatArray:
        if self.reward_type == "dense":
            return super()._worth(achieved_goal, desired_goal, success)
        there = self._near(achieved_goal, desired_goal, self.reward_radius)
        return np.where(there, _CHEST_REWARD, 0.0) if self._is_staged else there - 1.0
