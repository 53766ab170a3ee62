"""HalfCheetah-v5: run forward, cheaply."""

import numpy as np

from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.gymnasium_task import (
    GymnasiumTask,
    start_normal,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Scene

_CAMERA = FrozenMapping[str]({"distance": 4.0})


@parameter_class
class HalfCheetah(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's HalfCheetah-v5."""

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    forward_reward_weight: Number = 1.0
    """Reward per metre and second of forward velocity."""
    ctrl_cost_weight: Number = 0.1
    """Cost of the squared action."""
    reset_noise_scale: NonNegative[float] = 0.1
    """Size of the noise on the first pose."""
    exclude_current_positions_from_observation: bool = True
    """Leave the x position out of the observation."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions, normal noise on velocities."""
        start_normal(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions and velocities, [R, 17] by default."""
        skipped = int(self.exclude_current_positions_from_observation)
        return np.concatenate((state.qpos[:, skipped:], state.qvel), axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Forward velocity less the control cost; never terminated."""
        x_position = after.qpos[:, 0]
        x_velocity = (x_position - before.qpos[:, 0]) / after.scene.dt
        forward: Array = self.forward_reward_weight * x_velocity
        control = weighted_squares(self.ctrl_cost_weight, action)
        info = {
            "x_position": x_position,
            "x_velocity": x_velocity,
            "reward_forward": forward,
            "reward_ctrl": -control,
        }
        return forward - control, np.zeros(len(action), np.bool_), info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the cheetah's position."""
        return {"x_position": state.qpos[:, 0]}
