"""The parts shared by the ant worlds: the ant, its observation, and boxes in its way."""

from dataclasses import replace
from typing import ClassVar

import mujoco
import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, FloatArray
from coach_rl.environments.goal_worlds.ant_body import POSITIONS, VELOCITIES
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.mujoco import MujocoState

_CAMERA = FrozenMapping[str]({"azimuth": 90.0, "elevation": -65.0})
WALL_COLOR = (0.2, 0.24, 0.32, 1)
GOAL_COLOR = (0.95, 0.8, 0.1, 0.6)
_TILT = 1.0
"""Threshold of the torso's own axis at a sub-goal: at most a quarter turn from upright."""
_STANCE = 2.0
"""Threshold of the stance at a sub-goal: the difference between the best and the worst."""


@parameter_class
class AntTask(GoalTask):
    """An ant walks to a goal that is a place of its torso.

    `ant_body.OBSERVED` names the elements of its observation; they begin with x, y and z, so a goal
    of G elements is the first G of them.
    """

    place_elements: ClassVar[int] = 3
    posed_elements: ClassVar[int] = 2
    """Elements of the torso's place that a pose begins with."""
    mark_height: ClassVar[float] = 0.75  # of a torso on straight legs

    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    timestep: Positive[float] = 0.02
    """Seconds of a simulator step."""
    gear: Positive[float] = 30.0
    """Torque of a motor at an action of 1, in newton metres; Gymnasium's ant has 150."""
    shows_pose: bool = False
    """If True, observations have a `pose`, too: the torso's place and how far up its own axis
    points, 1 for an ant on its feet and -1 for one on its back. Sub-goals are poses then, so that
    an ant that has fallen over has reached none."""
    shows_stance: bool = False
    """If True, a pose ends with how the legs stand: 1 where all four point between the axes of the
    world, so that the ant is narrow along each, and -1 where they point along the axes. Sub-goals
    ask for it, too: in mazes the worse the stance is, the nearer to the place an ant must be."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.shows_pose or not self.shows_stance,
            f"{type(self).__name__}.shows_stance needs shows_pose=True",
        )

    @property
    def goal_size(self) -> int:
        """Elements of a goal, G."""
        return 3

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant, [R, 29], see `ant_body.OBSERVED`."""
        return np.concatenate((state.qpos[:, :POSITIONS], state.qvel[:, :VELOCITIES]), axis=1)

    def observation(self, state: MujocoState) -> dict[str, Array]:
        """Motion [R, O], achieved and desired goal [R, G]; if wanted, the pose [R, P + 1 or 2]."""
        seen = super().observation(state)
        if self.shows_pose:
            tilt = (state.qpos[:, 4:6] ** 2).sum(axis=1)  # of the quaternion's x and y
            place = state.qpos[:, : self.posed_elements]
            stance = [_stance(state.qpos[:, 3:7])] if self.shows_stance else []
            seen["pose"] = np.column_stack([place, 1 - 2 * tilt, *stance])
        return seen

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """Return the position of the torso, [R, G]."""
        return np.asarray(state.qpos[:, : self.goal_size])

    def poses(self, places: GoalSpace) -> GoalSpace:
        """Return sub-goals that ask for an ant on its feet at these places."""
        thresholds = (_TILT, _STANCE) if self.shows_stance else (_TILT,)
        return replace(
            places,
            low=(*places.low, *(-1.0 for _ in thresholds)),
            high=(*places.high, *(1.0 for _ in thresholds)),
            threshold=(*places.threshold, *thresholds),
            key="pose",
            elements=None,
        )


def _stance(orientations: FloatArray) -> FloatArray:
    """The cosine of four times the yaw of each unit quaternion [R, 4], [R]; legs are alike."""
    w, x, y, z = orientations.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    stances: FloatArray = np.cos(4 * yaw)
    return stances


def add_box(
    spec: mujoco.MjSpec,
    middle: tuple[float, float, float],
    size: tuple[float, float, float],
    rgba: tuple[float, float, float, float] = WALL_COLOR,
) -> None:
    """A box that never moves.

    Args:
        spec: Where to put it.
        middle: In metres.
        size: Its whole extent along x, y and z, in metres.
        rgba: Its colour.
    """
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, pos=middle, size=[side / 2 for side in size], rgba=rgba
    )


def look_at(spec: mujoco.MjSpec, middle: tuple[float, float, float], extent: float) -> None:
    """Let the camera see a square of this extent, in metres, around a place, in even light."""
    spec.stat.center = middle
    spec.stat.extent = 0.95 * extent  # the camera stands at 1.5 times the model's extent
    for light in spec.lights:
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.castshadow = False  # the shadows of high walls would hide the ant
