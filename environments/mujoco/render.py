"""Frames of a simulator, drawn off screen."""

import importlib
import os
import platform
import warnings
from collections.abc import Sequence

import numpy as np

from coach_rl.core.errors import ConfigurationError, RunError, UnknownNameError
from coach_rl.core.interfaces import Mark
from coach_rl.core.records import Array
from coach_rl.environments.mujoco.engine import OFF, mujoco
from coach_rl.environments.mujoco.task import MujocoTask

_FONT_SCALE = 150
_BALL_SIZE, _LINE_SIZE = 0.025, 0.004
"""Radius of marks without a size, as a share of the model's extent."""


class FrameRenderer:
    """A renderer of any simulator of one model, with the task's camera settings.

    Without a named camera the view follows the body that the settings (`trackbodyid`) or the
    model's own `track` camera name, from the distance and angle in the settings.

    Args:
        model: The model.
        task: Frame size, camera and drawing options.

    Raises:
        RunError: OpenGL is not available.
        ConfigurationError: The model has no camera of that name or number.
    """

    def __init__(self, model: mujoco.MjModel, task: MujocoTask) -> None:
        # The frame buffer grows with the frame; nothing that is simulated changes.
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, task.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, task.height)
        self._model = model
        self._camera = _camera(model, task)
        self._gl, self._context = _contexts(model, task.width, task.height)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self._context)
        self._room = task.max_geom
        self._scene = mujoco.MjvScene(model, self._room)
        self._options = mujoco.MjvOption()
        for flag, value in (task.visual_options or {}).items():
            self._options.flags[flag] = value
        self._viewport = mujoco.MjrRect(0, 0, task.width, task.height)
        self._heights = model.hfield_data.copy()
        """Heights of the ground, as OpenGL has them."""

    def frame(self, data: mujoco.MjData, marks: Sequence[Mark] = ()) -> Array:
        """The camera's image, uint8 [height, width, 3].

        Args:
            data: The simulator; only read.
            marks: Drawn into this frame only.
        """
        self._gl.make_current()
        if not np.array_equal(self._heights, self._model.hfield_data):  # episodes may change them
            self._heights[:] = self._model.hfield_data
            for number in range(self._model.nhfield):
                mujoco.mjr_uploadHField(self._model, self._context, number)
        if self._scene.maxgeom < self._room + len(marks):
            self._scene = mujoco.MjvScene(self._model, self._room + len(marks))
        mujoco.mjv_updateScene(
            self._model,
            data,
            self._options,
            None,
            self._camera,
            mujoco.mjtCatBit.mjCAT_ALL,
            self._scene,
        )
        for mark in marks:
            self._draw(mark)
        mujoco.mjr_render(self._viewport, self._scene, self._context)
        pixels = np.empty((self._viewport.height, self._viewport.width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self._viewport, self._context)
        return pixels[::-1].copy()  # OpenGL counts rows from below

    def close(self) -> None:
        self._gl.make_current()
        self._context.free()
        self._gl.free()

    def _draw(self, mark: Mark) -> None:
        """Add a ball or a line to the scene of this frame."""
        scene = self._scene
        is_line = mark.line_to is not None
        share = _LINE_SIZE if is_line else _BALL_SIZE
        size = share * self._model.stat.extent if mark.size is None else mark.size
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(
            geom,
            mujoco.mjtGeom.mjGEOM_CAPSULE if is_line else mujoco.mjtGeom.mjGEOM_SPHERE,
            np.full(3, size, np.float64),
            np.array(mark.place, np.float64),
            np.eye(3).ravel(),
            np.array(mark.colour, np.float32),
        )
        if is_line:
            ends = (np.array(end, np.float64) for end in (mark.place, mark.line_to))
            mujoco.mjv_connector(geom, mujoco.mjtGeom.mjGEOM_CAPSULE, size, *ends)
        geom.label = mark.label
        geom.category = mujoco.mjtCatBit.mjCAT_DECOR
        scene.ngeom += 1


def _camera(model: mujoco.MjModel, task: MujocoTask) -> mujoco.MjvCamera:
    camera = mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(model, camera)
    for key, value in (task.default_camera_config or {}).items():
        setattr(camera, key, value)
    names = [model.camera(index).name for index in range(model.ncam)]
    if task.camera_name is not None and task.camera_name not in names:
        raise UnknownNameError("camera in the MuJoCo model", task.camera_name, names)
    fixed = names.index(task.camera_name) if task.camera_name is not None else task.camera_id
    if fixed is not None and fixed >= model.ncam:
        raise ConfigurationError(
            f"camera {fixed} is not in the MuJoCo model, which has {model.ncam}: "
            f"{', '.join(f'{number} {name}'.strip() for number, name in enumerate(names))}"
        )
    if fixed is not None and fixed >= 0:
        camera.type = mujoco.mjtCamera.mjCAMERA_FIXED
        camera.fixedcamid = fixed
        return camera
    if camera.trackbodyid < 1 and "track" in names:
        camera.trackbodyid = model.cam_bodyid[names.index("track")]
    if fixed is None and camera.trackbodyid >= 1:
        camera.type = mujoco.mjtCamera.mjCAMERA_TRACKING
    return camera


def _contexts(
    model: mujoco.MjModel, width: int, height: int
) -> "tuple[mujoco.GLContext, mujoco.MjrContext]":  # without OpenGL there is no GLContext
    """OpenGL's context, and MuJoCo's on it: of the kind MUJOCO_GL names, or the first that works.

    Raises:
        RunError: None works.
    """
    backend = os.environ.get("MUJOCO_GL", "").lower().strip()
    if backend in OFF:
        raise RunError(
            f"cannot draw: MUJOCO_GL={backend} turns drawing off; unset it, or set it to egl, "
            "osmesa or glfw"
        )
    usual = ("cgl",) if platform.system() == "Darwin" else ("egl", "glfw", "osmesa")
    kinds = (backend,) if backend in ("egl", "glfw", "osmesa", "cgl") else usual
    reasons = []
    with warnings.catch_warnings(action="ignore"):  # GLFW's, of what fails next
        for kind in kinds:
            try:
                gl = importlib.import_module(f"mujoco.{kind}").GLContext(width, height)
                gl.make_current()
                return gl, mujoco.MjrContext(model, _FONT_SCALE)
            # Each library fails in its own way, from ImportError to errors of its own.
            except Exception as error:
                reasons.append(f"{kind}: {type(error).__name__} {error}".strip())
    raise RunError(
        f"cannot draw: no OpenGL on this machine ({'; '.join(reasons)}); "
        "install Mesa's EGL or OSMesa library, or unset MUJOCO_GL or set it to egl, osmesa or glfw"
    )
