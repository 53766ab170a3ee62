"""Ant-v5: walk forward on four legs."""

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
    norm,
    start_normal,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Range, Scene

_CAMERA = FrozenMapping[str]({"distance": 4.0})


@parameter_class
class Ant(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's Ant-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos", "cfrc_ext")

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    forward_reward_weight: Number = 1
    """Reward per metre and second of forward velocity."""
    ctrl_cost_weight: Number = 0.5
    """Cost of the squared action."""
    contact_cost_weight: Number = 5e-4
    """Cost of the squared, clipped contact forces."""
    healthy_reward: Number = 1.0
    """Reward for each step that ends healthy."""
    main_body: int | str = 1
    """The body whose velocity counts, by index or name."""
    terminate_when_unhealthy: bool = True
    """If True, an unhealthy state ends the episode."""
    healthy_z_range: Range = (0.2, 1.0)
    """Healthy range of the torso's height, in metres."""
    contact_force_range: Range = (-1.0, 1.0)
    """Range to which contact forces are clipped."""
    reset_noise_scale: NonNegative[float] = 0.1
    """Size of the noise on the first pose."""
    exclude_current_positions_from_observation: bool = True
    """Leave the x and y position out of the observation."""
    include_cfrc_ext_in_observation: bool = True
    """Observe the contact forces."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions, normal noise on velocities."""
        start_normal(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions, velocities and clipped contact forces, [R, 105] by default."""
        skipped = 2 * int(self.exclude_current_positions_from_observation)
        parts = [state.qpos[:, skipped:], state.qvel]
        if self.include_cfrc_ext_in_observation:
            forces = clip(state.cfrc_ext[:, 1:], *self.contact_force_range)
            parts.append(forces.reshape(len(forces), -1))
        return np.concatenate(parts, axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Forward velocity and health less control and contact costs; terminated when unhealthy."""
        index = after.scene.body(self.main_body)
        velocity = (after.xpos[:, index, :2] - before.xpos[:, index, :2]) / after.scene.dt
        # A state that is not finite never gets here, so health is a matter of height alone.
        low, high = self.healthy_z_range
        height = after.qpos[:, 2]
        healthy = (low <= height) & (height <= high)
        forward: Array = velocity[:, 0] * self.forward_reward_weight
        survive = healthy * self.healthy_reward
        control = weighted_squares(self.ctrl_cost_weight, action)
        forces = clip(after.cfrc_ext, *self.contact_force_range)
        contact = weighted_squares(self.contact_cost_weight, forces)
        info = {
            **self.reset_info(after),
            "x_velocity": velocity[:, 0],
            "y_velocity": velocity[:, 1],
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_contact": -contact,
            "reward_survive": survive,
        }
        reward = forward + survive - (control + contact)
        return reward, ~healthy & self.terminate_when_unhealthy, info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the ant's position."""
        return {
            "x_position": state.qpos[:, 0],
            "y_position": state.qpos[:, 1],
            "distance_from_origin": norm(state.qpos[:, :2]),
        }
