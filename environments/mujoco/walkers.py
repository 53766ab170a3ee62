"""Hopper-v5 and Walker2d-v5: walk forward without falling."""

import numpy as np

from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.gymnasium_task import (
    GymnasiumTask,
    clip,
    start_uniform,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Range, Scene

_HOPPER_CAMERA = FrozenMapping[str](
    {"trackbodyid": 2, "distance": 3.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0}
)
_WALKER_CAMERA = FrozenMapping[str](
    {"trackbodyid": 2, "distance": 4.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0}
)


@parameter_class
class _PlanarWalker(GymnasiumTask):
    """The shared half of hopper and walker: a torso at height qpos[1] and angle qpos[2]."""

    frame_skip: int = 4
    forward_reward_weight: Number = 1.0
    """Reward per metre and second of forward velocity."""
    ctrl_cost_weight: Number = 1e-3
    """Cost of the squared action."""
    healthy_reward: Number = 1.0
    """Reward for each step that ends healthy."""
    terminate_when_unhealthy: bool = True
    """If True, an unhealthy state ends the episode."""
    reset_noise_scale: NonNegative[float] = 5e-3
    """Size of the noise on the first pose."""
    exclude_current_positions_from_observation: bool = True
    """Leave the x position out of the observation."""

    def is_healthy(self, state: MujocoState) -> BoolArray:
        """Return which robots have not fallen, [R]."""
        raise NotImplementedError

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions and velocities."""
        start_uniform(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions and clipped velocities."""
        skipped = int(self.exclude_current_positions_from_observation)
        return np.concatenate((state.qpos[:, skipped:], clip(state.qvel, -10, 10)), axis=1)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Forward velocity and health less the control cost; terminated when unhealthy."""
        x_position = after.qpos[:, 0]
        x_velocity = (x_position - before.qpos[:, 0]) / after.scene.dt
        healthy = self.is_healthy(after)
        forward: Array = self.forward_reward_weight * x_velocity
        survive = healthy * self.healthy_reward
        control = weighted_squares(self.ctrl_cost_weight, action)
        info = {
            "x_position": x_position,
            "z_distance_from_origin": after.qpos[:, 1] - after.scene.init_qpos[1],
            "x_velocity": x_velocity,
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_survive": survive,
        }
        return forward + survive - control, ~healthy & self.terminate_when_unhealthy, info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the robot's position."""
        return {
            "x_position": state.qpos[:, 0],
            "z_distance_from_origin": state.qpos[:, 1] - state.scene.init_qpos[1],
        }


@parameter_class
class Hopper(_PlanarWalker):
    """Keyword arguments, defaults and numbers of Gymnasium's Hopper-v5."""

    xml_file: str = "hopper.xml"
    default_camera_config: FrozenMapping[str] | None = _HOPPER_CAMERA
    healthy_state_range: Range = (-100.0, 100.0)
    """Healthy range of every position and velocity except the first two positions."""
    healthy_z_range: Range = (0.7, float("inf"))
    """Healthy range of the torso's height, in metres."""
    healthy_angle_range: Range = (-0.2, 0.2)
    """Healthy range of the torso's angle, in radians."""

    def is_healthy(self, state: MujocoState) -> BoolArray:
        """Return which robots have height, angle and all other coordinates in their ranges, [R]."""
        joints = np.concatenate((state.qpos[:, 2:], state.qvel), axis=1)
        low, high = self.healthy_state_range
        return np.asarray(
            _between(state.qpos[:, 1], self.healthy_z_range)
            & _between(state.qpos[:, 2], self.healthy_angle_range)
            & (np.minimum.reduce(joints, axis=1) > low)
            & (np.maximum.reduce(joints, axis=1) < high)
        )


@parameter_class
class Walker2d(_PlanarWalker):
    """Keyword arguments, defaults and numbers of Gymnasium's Walker2d-v5."""

    xml_file: str = "walker2d_v5.xml"
    default_camera_config: FrozenMapping[str] | None = _WALKER_CAMERA
    healthy_z_range: Range = (0.8, 2.0)
    """Healthy range of the torso's height, in metres."""
    healthy_angle_range: Range = (-1.0, 1.0)
    """Healthy range of the torso's angle, in radians."""

    def is_healthy(self, state: MujocoState) -> BoolArray:
        """Return which robots have height and angle in their ranges, [R]."""
        return np.asarray(
            _between(state.qpos[:, 1], self.healthy_z_range)
            & _between(state.qpos[:, 2], self.healthy_angle_range)
        )


def _between(values: Array, bounds: Range) -> Array:
    return np.asarray((bounds[0] < values) & (values < bounds[1]))
