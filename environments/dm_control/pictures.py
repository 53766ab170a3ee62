"""Pictures of a task, drawn off screen by EGL or OSMesa."""

from typing import Any

from coach_rl.core.records import Array
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.render import FrameRenderer
from coach_rl.environments.mujoco.task import MujocoTask

RANGEFINDER = int(mujoco.mjtVisFlag.mjVIS_RANGEFINDER)
"""Rays of distance sensors, which dm_control does not draw."""


class Camera:
    """One camera of a task, as dm_control's `physics.render` shows it.

    OpenGL is that of MUJOCO_GL or, without it, the first of EGL, GLFW and OSMesa that works.

    Args:
        physics: The task's `dm_control.mujoco.Physics`.
        number: Number of the camera.
        height: Pixels.
        width: Pixels.

    Raises:
        RunError: No OpenGL works here; the message has the reason of each kind.
    """

    def __init__(self, physics: Any, *, number: int, height: int, width: int) -> None:
        settings = MujocoTask(
            camera_id=number,
            height=height,
            width=width,
            visual_options=FrozenMapping({RANGEFINDER: 0}),
        )
        self._physics = physics
        self._renderer = FrameRenderer(physics.model.ptr, settings)

    def picture(self) -> Array:
        """The camera's present picture, uint8 [height, width, 3]."""
        return self._renderer.frame(self._physics.data.ptr)

    def close(self) -> None:
        self._renderer.close()
