"""The shared half of Gymnasium's eleven tasks."""

from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import MujocoTask, Scene


@parameter_class
class GymnasiumTask(MujocoTask):
    """A task whose fields are the keyword arguments of the Gymnasium class, with its defaults.

    Every operation follows the order and precision of Gymnasium's own code, so that results are
    equal to the last bit.
    """

    render_mode: Literal["rgb_array"] | None = None
    """None or rgb_array; frames come from `MujocoBatch.render` either way."""

    def _path(self) -> Path:
        """A bare name is that of a file in Gymnasium, as in Gymnasium itself."""
        if self.xml_file.startswith((".", "/", "~")):
            return super()._path()
        assets = Path(str(files("gymnasium"))) / "envs" / "mujoco" / "assets"
        path = assets / self.xml_file
        if not path.is_file():
            known = [asset.name for asset in assets.glob("*.xml")]
            hint = "start a path of your own with '.', '/' or '~'"
            raise UnknownNameError("MJCF file of Gymnasium", self.xml_file, known, hint)
        return path


@parameter_class
class NoisyStartTask(GymnasiumTask):
    """A task whose episodes start in the rest pose with noise on positions and velocities."""

    has_normal_velocities: ClassVar[bool] = False
    """True if the noise on velocities is normal; otherwise uniform, as on positions."""

    reset_noise_scale: NonNegative[float] = 0.1
    """Size of the noise on the first pose."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        model = scene.model
        scale = self.reset_noise_scale
        data.qpos[:] = scene.init_qpos + rng.uniform(low=-scale, high=scale, size=model.nq)
        if self.has_normal_velocities:
            data.qvel[:] = scene.init_qvel + scale * rng.standard_normal(model.nv)
        else:
            data.qvel[:] = scene.init_qvel + rng.uniform(low=-scale, high=scale, size=model.nv)


def weighted_squares(weight: float, values: FloatArray) -> Array:
    """The weight times each row's sum of squares, [R], in the precision of `values`."""
    flat = values if values.ndim == 2 else values.reshape(len(values), -1)
    return np.asarray(weight * np.add.reduce(np.square(flat), axis=1))


def clip(values: Array, low: float, high: float) -> Array:
    """Clip like `np.clip`, without its overhead."""
    return np.minimum(np.maximum(values, low), high)


def norm(vectors: Array) -> Array:
    """Euclidean norms of [R, k], by the dot product that `np.linalg.norm` takes for one vector."""
    return np.asarray(np.sqrt(np.vecdot(vectors, vectors)))
