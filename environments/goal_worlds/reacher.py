"""The ant worlds of the HAC paper: reach a place on a field, or in another of four rooms."""

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.goal_worlds.ant import (
    GOAL_COLOR,
    POSITIONS,
    SPAN,
    STANDING,
    AntTask,
    add_ant,
    add_box,
    elements,
    frame_scene,
    ground,
)
from coach_rl.environments.goal_worlds.goal_task import require_thresholds, within_thresholds
from coach_rl.environments.mujoco import Range, Scene
from coach_rl.environments.mujoco.engine import mujoco

_SUBGOAL = elements("x", "y", "z", "x_velocity", "y_velocity")
_HIGHEST = 1.0
_FASTEST = 3.0
"""Bounds of sub-goals: height in metres, velocity in metres per second."""
_WALL = 0.5
"""Thickness of the outer walls, in metres."""
_GOAL_HEIGHT = (0.45, 0.55)
"""Range of the height of goals, in metres."""


@parameter_class
class HACAntTask(AntTask):
    """An ant starts on its bent legs, at rest, and its goal is a place (x, y, z) within walls."""

    posed_elements: ClassVar[int] = 3

    frame_skip: int = 15
    threshold: tuple[Positive[float], ...] = (0.5, 0.5, 0.2)
    """Largest difference in each element of the goal at which it is reached, in metres."""
    subgoal_velocity_threshold: Positive[float] = 0.5
    """Largest difference in each velocity at which a sub-goal is reached, in metres per second."""
    half_side: Positive[float] = 12.0
    """Distance from the centre to the middle of an outer wall, in metres."""
    wall_height: Positive[float] = 0.8
    """Height of the walls in metres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require_thresholds(f"{type(self).__name__}.threshold", self.threshold, self.goal_size)

    @property
    def free_half_side(self) -> float:
        """Distance from the centre to the face of an outer wall, in metres."""
        return self.half_side - _WALL / 2

    @property
    def goal_space(self) -> GoalSpace:
        """Places anywhere within the walls."""
        side = self.free_half_side
        return GoalSpace(
            low=(-side, -side, 0.0),
            high=(side, side, _HIGHEST),
            threshold=self.threshold,
            key="achieved_goal",
        )

    @property
    def subgoal_space(self) -> GoalSpace:
        """The paper's sub-goals: x, y, z and the velocity along x and y.

        With `shows_pose` sub-goals are poses instead, within the thresholds of goals.
        """
        if self.shows_pose:
            return self.poses(self.goal_space)
        side = self.free_half_side
        fastest = _FASTEST
        velocity = (self.subgoal_velocity_threshold,) * 2
        return GoalSpace(
            low=(-side, -side, 0.0, -fastest, -fastest),
            high=(side, side, _HIGHEST, fastest, fastest),
            threshold=(*self.threshold, *velocity),
            elements=_SUBGOAL,
        )

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw the start and the goal of an episode, [2] each."""

    def spec(self) -> mujoco.MjSpec:
        """An ant among walls; a box as large as the thresholds at the goal."""
        spec = ground(
            "ant", timestep=self.timestep, half_side=self.half_side + _WALL, impedance=None
        )
        spec.nuserdata = self.goal_size
        frame_scene(spec, (0.0, 0.0, 0.0), 2 * self.half_side)
        add_ant(spec, height=0.0, gear=self.gear)
        self._add_walls(spec)
        mark = spec.worldbody.add_body(name="goal", mocap=True)
        mark.add_site(type=mujoco.mjtGeom.mjGEOM_BOX, size=self.threshold, rgba=GOAL_COLOR)
        return spec

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        del scene
        start, goal = self.draw(rng)
        data.qpos[:POSITIONS] = STANDING
        data.qpos[:2] = start
        data.userdata[:] = (*goal, rng.uniform(*_GOAL_HEIGHT))
        data.mocap_pos[0] = data.userdata

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return within_thresholds(np.asarray(achieved_goal) - desired_goal, self.threshold)

    def _add_walls(self, spec: mujoco.MjSpec) -> None:
        middle = self.half_side
        length = 2 * self.half_side + _WALL
        for side in (-middle, middle):
            self._add_wall(spec, (side, 0.0), (_WALL, length))
            self._add_wall(spec, (0.0, side), (length - 2 * _WALL, _WALL))

    def _add_wall(
        self, spec: mujoco.MjSpec, middle: tuple[float, float], size: tuple[float, float]
    ) -> None:
        height = self.wall_height
        add_box(spec, (*middle, height / 2), (*size, height))


@parameter_class
class AntReacher(HACAntTask):
    """Ant reacher: a square field; the goal lies 8 m or more from the start."""

    max_episode_steps: ClassVar[int | None] = 500

    gear: float = 16.0
    """Torque of a motor at an action of 1, in newton metres."""
    field: Positive[float] = 9.5
    """Starts and goals lie within this distance of the middle along x and y, in metres."""
    min_distance: NonNegative[float] = 8.0
    """Smallest distance between a start and its goal, in metres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        most = self.free_half_side - SPAN
        require(
            self.field <= most,
            f"AntReacher.field must be at most half_side - {_WALL / 2 + SPAN:g} = "
            f"{most:g}, or episodes would start in walls, got {self.field}",
        )
        require(
            self.min_distance <= self.field,
            f"AntReacher.min_distance must be at most field = {self.field:g}, "
            f"or there might be no start for a goal, got {self.min_distance}",
        )

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        # Both are uniform in the field; the start is drawn until it is far enough from the goal.
        goal = rng.uniform(-self.field, self.field, 2)
        while True:
            start = rng.uniform(-self.field, self.field, 2)
            if np.hypot(*(goal - start)) >= self.min_distance:
                return start, goal


@parameter_class
class AntFourRooms(HACAntTask):
    """Ant four rooms: the goal lies in another room than the start, each open to two others."""

    max_episode_steps: ClassVar[int | None] = 700

    gear: float = 15.0
    """Torque of a motor at an action of 1, in newton metres."""
    threshold: tuple[Positive[float], ...] = (0.4, 0.4, 0.2)
    """Largest difference in each element of the goal at which it is reached, in metres."""
    subgoal_velocity_threshold: Positive[float] = 0.8
    """Largest difference in each velocity at which a sub-goal is reached, in metres per second."""
    half_side: Positive[float] = 8.25
    """Distance from the centre to the middle of an outer wall, in metres."""
    wall_height: Positive[float] = 2.0
    """Height of the walls in metres."""
    inner_wall: Positive[float] = 1.0
    """Thickness of the walls between rooms, in metres."""
    door: Range = (3.5, 6.5)
    """Opening in a wall between two rooms, in metres from the centre."""
    room: Range = (3.0, 6.5)
    """Range of starts and goals in their room, in metres from the centre along x and y."""

    def __post_init__(self) -> None:
        super().__post_init__()
        side = self.free_half_side
        require(
            0 < self.door[0] < self.door[1] < side,
            "AntFourRooms.door must lie between 0 and half_side - "
            f"{_WALL / 2:g} = {side:g} and not be closed, got {self.door}",
        )
        low, high = self.inner_wall / 2 + SPAN, side - SPAN
        require(
            low <= self.room[0] and self.room[1] <= high,
            f"AntFourRooms.room must lie in [{low:g}, {high:g}], or episodes would start in "
            f"walls, got {self.room}",
        )

    def draw(self, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        # Two different rooms, numbered 0 to 3 with signs (+, +), (+, -), (-, +), (-, -) of (x, y).
        rooms = rng.choice(4, 2, replace=False)
        signs = np.stack((1 - 2 * (rooms // 2), 1 - 2 * (rooms % 2)), axis=1)
        start, goal = signs * rng.uniform(*self.room, (2, 2))
        return start, goal

    def _add_walls(self, spec: mujoco.MjSpec) -> None:
        super()._add_walls(spec)
        near, far = self.door
        thickness = self.inner_wall
        side = self.free_half_side
        end = side - far
        middle = (side + far) / 2
        # The wall along x is whole in the middle, the one along y meets it from both sides.
        meets = near - thickness / 2
        self._add_wall(spec, (0.0, 0.0), (2 * near, thickness))
        for sign in (-1, 1):
            if meets > 0:
                self._add_wall(spec, (0.0, sign * (thickness / 2 + meets / 2)), (thickness, meets))
            self._add_wall(spec, (sign * middle, 0.0), (end, thickness))
            self._add_wall(spec, (0.0, sign * middle), (thickness, end))
