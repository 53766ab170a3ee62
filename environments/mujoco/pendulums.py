"""InvertedPendulum-v5 and InvertedDoublePendulum-v5: balance poles on a cart."""

from typing import ClassVar

import numpy as np

from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.gymnasium_task import (
    GymnasiumTask,
    clip,
    start_normal,
    start_uniform,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Scene

_CAMERA = FrozenMapping[str]({"trackbodyid": 0, "distance": 2.04})


@parameter_class
class InvertedPendulum(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's InvertedPendulum-v5."""

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    reset_noise_scale: NonNegative[float] = 0.01
    """Size of the noise on the first pose."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions and velocities."""
        start_uniform(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions and velocities, [R, 4]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """1 while the pole is within 0.2 radians of upright, terminated otherwise."""
        del before, action
        # A state that is not finite never gets here, so the angle alone decides.
        terminated = np.abs(after.qpos[:, 1]) > 0.2
        survive = (~terminated).astype(np.int64)
        return survive.astype(np.float64), terminated, {"reward_survive": survive}


@parameter_class
class InvertedDoublePendulum(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's InvertedDoublePendulum-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "qfrc_constraint", "site_xpos")

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: Number = 10.0
    """Reward for each step that does not terminate."""
    reset_noise_scale: NonNegative[float] = 0.1
    """Size of the noise on the first pose."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions, normal noise on velocities."""
        start_normal(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Cart position, sines and cosines of the angles, velocities, constraint force, [R, 9]."""
        parts = (
            state.qpos[:, :1],
            np.sin(state.qpos[:, 1:]),
            np.cos(state.qpos[:, 1:]),
            clip(state.qvel, -10, 10),
            clip(state.qfrc_constraint[:, :1], -10, 10),
        )
        return np.concatenate(parts, axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """A bonus less the tip's distance and the speeds; terminated when the tip is at 1 m."""
        del before, action
        tip = after.site_xpos[:, 0]
        terminated = tip[:, 2] <= 1
        speed = after.qvel
        distance = 0.01 * _power_two(tip[:, 0]) + _power_two(tip[:, 2] - 2)
        velocity = 1e-3 * _power_two(speed[:, 1]) + 5e-3 * _power_two(speed[:, 2])
        survive = self.healthy_reward * (~terminated).astype(np.int64)
        info = {
            "reward_survive": survive,
            "distance_penalty": -distance,
            "velocity_penalty": -velocity,
        }
        return survive - distance - velocity, terminated, info


def _power_two(values: FloatArray) -> FloatArray:
    """Squares by C's `pow`, as Gymnasium takes them of scalars.

    It rounds some last bits otherwise than x * x, which numpy takes for arrays.
    """
    return np.array([value**2 for value in values.tolist()], np.float64)
