"""Humanoid-v5 and HumanoidStandup-v5: walk, or get up."""

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
    start_uniform,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import MujocoState, Number, Range, Scene

_WALK_CAMERA = FrozenMapping[str](
    {"trackbodyid": 1, "distance": 4.0, "lookat": (0.0, 0.0, 2.0), "elevation": -20.0}
)
_STANDUP_CAMERA = FrozenMapping[str](
    {"trackbodyid": 1, "distance": 4.0, "lookat": (0.0, 0.0, 0.8925), "elevation": -20.0}
)


@parameter_class
class _HumanoidBody(GymnasiumTask):
    """The shared half of both humanoid tasks: the robot, its observation, and its start."""

    reads: ClassVar[tuple[str, ...]] = (
        "qpos",
        "qvel",
        "ctrl",
        "cinert",
        "cvel",
        "qfrc_actuator",
        "cfrc_ext",
        "ten_length",
        "ten_velocity",
    )

    frame_skip: int = 5
    ctrl_cost_weight: Number = 0.1
    """Cost of the squared action."""
    reset_noise_scale: NonNegative[float] = 1e-2
    """Size of the noise on the first pose."""
    exclude_current_positions_from_observation: bool = True
    """Leave the x and y position out of the observation."""
    include_cinert_in_observation: bool = True
    """Observe the bodies' inertia about the centre of mass."""
    include_cvel_in_observation: bool = True
    """Observe the bodies' velocities about the centre of mass."""
    include_qfrc_actuator_in_observation: bool = True
    """Observe the actuators' forces."""
    include_cfrc_ext_in_observation: bool = True
    """Observe the contact forces."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Uniform noise on positions and velocities."""
        start_uniform(scene, data, rng, self.reset_noise_scale)

    def observation(self, state: MujocoState) -> Array:
        """Positions, velocities, inertia and forces, [R, 348] by default."""
        rows = len(state.qpos)
        skipped = 2 * int(self.exclude_current_positions_from_observation)
        parts = [state.qpos[:, skipped:], state.qvel]
        if self.include_cinert_in_observation:
            parts.append(state.cinert[:, 1:].reshape(rows, -1))
        if self.include_cvel_in_observation:
            parts.append(state.cvel[:, 1:].reshape(rows, -1))
        if self.include_qfrc_actuator_in_observation:
            parts.append(state.qfrc_actuator[:, 6:])
        if self.include_cfrc_ext_in_observation:
            parts.append(state.cfrc_ext[:, 1:].reshape(rows, -1))
        return np.concatenate(parts, axis=1)


@parameter_class
class Humanoid(_HumanoidBody):
    """Keyword arguments, defaults and numbers of Gymnasium's Humanoid-v5."""

    reads: ClassVar[tuple[str, ...]] = (*_HumanoidBody.reads, "xipos")

    xml_file: str = "humanoid.xml"
    default_camera_config: FrozenMapping[str] | None = _WALK_CAMERA
    forward_reward_weight: Number = 1.25
    """Reward per metre and second of forward velocity."""
    contact_cost_weight: Number = 5e-7
    """Cost of the squared contact forces."""
    contact_cost_range: Range = (-np.inf, 10.0)
    """Range to which the contact cost is clipped."""
    healthy_reward: Number = 5.0
    """Reward for each step that ends healthy."""
    terminate_when_unhealthy: bool = True
    """If True, an unhealthy state ends the episode."""
    healthy_z_range: Range = (1.0, 2.0)
    """Healthy range of the torso's height, in metres."""

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Forward velocity and health less control and contact costs; terminated when unhealthy."""
        del action  # the cost is that of `MjData.ctrl`, which is the action in double precision
        velocity = (_mass_center(after) - _mass_center(before)) / after.scene.dt
        low, high = self.healthy_z_range
        height = after.qpos[:, 2]
        healthy = (low < height) & (height < high)
        forward: Array = self.forward_reward_weight * velocity[:, 0]
        survive = healthy * self.healthy_reward
        control = weighted_squares(self.ctrl_cost_weight, after.ctrl)
        contact = weighted_squares(self.contact_cost_weight, after.cfrc_ext)
        contact = clip(contact, *self.contact_cost_range)
        info = {
            **self.reset_info(after),
            "x_velocity": velocity[:, 0],
            "y_velocity": velocity[:, 1],
            "reward_survive": survive,
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_contact": -contact,
        }
        reward = forward + survive - (control + contact)
        return reward, ~healthy & self.terminate_when_unhealthy, info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the positions of the robot and its tendons."""
        return {
            "x_position": state.qpos[:, 0],
            "y_position": state.qpos[:, 1],
            "tendon_length": state.ten_length,
            "tendon_velocity": state.ten_velocity,
            "distance_from_origin": norm(state.qpos[:, :2]),
        }


@parameter_class
class HumanoidStandup(_HumanoidBody):
    """Keyword arguments, defaults and numbers of Gymnasium's HumanoidStandup-v5."""

    xml_file: str = "humanoidstandup.xml"
    default_camera_config: FrozenMapping[str] | None = _STANDUP_CAMERA
    uph_cost_weight: Number = 1
    """Taken and, as in Gymnasium, without effect."""
    impact_cost_weight: Number = 0.5e-6
    """Cost of the squared contact forces."""
    impact_cost_range: Range = (-np.inf, 10.0)
    """Range to which the contact cost is clipped."""

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Height over the simulator's time step less control and impact costs; never terminated."""
        del before
        up = after.qpos[:, 2] / after.scene.model.opt.timestep
        control = weighted_squares(self.ctrl_cost_weight, after.ctrl)
        impact = weighted_squares(self.impact_cost_weight, after.cfrc_ext)
        impact = clip(impact, *self.impact_cost_range)
        info = {
            **self.reset_info(after),
            "reward_linup": up,
            "reward_quadctrl": -control,
            "reward_impact": -impact,
        }
        return up - control - impact + 1, np.zeros(len(action), np.bool_), info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        """Return the positions of the robot and its tendons."""
        return {
            "x_position": state.qpos[:, 0],
            "y_position": state.qpos[:, 1],
            "z_distance_from_origin": state.qpos[:, 2] - state.scene.init_qpos[2],
            "tendon_length": state.ten_length,
            "tendon_velocity": state.ten_velocity,
        }


def _mass_center(state: MujocoState) -> FloatArray:
    """The x and y of the centre of mass, [R, 2]."""
    mass = state.scene.model.body_mass
    return np.asarray((np.einsum("b,nbj->nj", mass, state.xipos) / mass.sum())[:, :2])
