"""Swimmer-v5: swim forward."""

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.gymnasium_task import (
    GymnasiumTask,
    norm,
    start_uniform,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Scene


@parameter_class
class Swimmer(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's Swimmer-v5."""

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    forward_reward_weight: Number = 1.0
    """Reward per metre and second of forward velocity."""
    ctrl_cost_weight: Number = 1e-4
    """Cost of the squared action."""
    reset_noise_scale: NonNegative[float] = 0.1
    """Size of the noise on the first pose."""
    exclude_current_positions_from_observation: bool = True
    """Leave the x and y position out of the observation."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions and velocities."""
        start_uniform(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions and velocities, [R, 8] by default."""
        skipped = 2 * int(self.exclude_current_positions_from_observation)
        return np.concatenate((state.qpos[:, skipped:], state.qvel), axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Forward velocity less the control cost; never terminated."""
        velocity = (after.qpos[:, :2] - before.qpos[:, :2]) / after.scene.dt
        forward: Array = self.forward_reward_weight * velocity[:, 0]
        control = weighted_squares(self.ctrl_cost_weight, action)
        info = {
            **self.reset_info(after),
            "x_velocity": velocity[:, 0],
            "y_velocity": velocity[:, 1],
            "reward_forward": forward,
            "reward_ctrl": -control,
        }
        return forward - control, np.zeros(len(action), np.bool_), info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the swimmer's position."""
        return {
            "x_position": state.qpos[:, 0],
            "y_position": state.qpos[:, 1],
            "distance_from_origin": norm(state.qpos[:, :2]),
        }
