"""The parts shared by the ant worlds: the ant, its observation, and boxes in its way."""

from typing import ClassVar

import numpy as np

from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray
from coach_rl.environments.goal_worlds.ant_body import POSITIONS, VELOCITIES
from coach_rl.environments.goal_worlds.ant_pose import PosedAnt
from coach_rl.environments.mujoco import MujocoState
from coach_rl.environments.mujoco.engine import mujoco

_CAMERA = FrozenMapping[str]({"azimuth": 90.0, "elevation": -65.0})
WALL_COLOR = (0.2, 0.24, 0.32, 1)
GOAL_COLOR = (0.95, 0.8, 0.1, 0.6)


@parameter_class
class AntTask(PosedAnt):
    """An ant walks to a goal that is a place of its torso.

    `ant_body.OBSERVED` names the elements of its observation; they begin with x, y and z, so a goal
    of G elements is the first G of them.
    """

    place_elements: ClassVar[int] = 3
    mark_height: ClassVar[float] = 0.75  # of a torso on straight legs

    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    timestep: Positive[float] = 0.02
    """Seconds of a simulator step."""
    gear: Positive[float] = 30.0
    """Torque of a motor at an action of 1, in newton metres; Gymnasium's ant has 150."""

    @property
    def goal_size(self) -> int:
        """Elements of a goal, G."""
        return 3

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant, [R, 29], see `ant_body.OBSERVED`."""
        return np.concatenate((state.qpos[:, :POSITIONS], state.qvel[:, :VELOCITIES]), axis=1)

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """Return the position of the torso, [R, G]."""
        return np.asarray(state.qpos[:, : self.goal_size])


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
