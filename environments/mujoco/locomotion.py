"""Gymnasium's v5 robots that walk, run, swim or get up."""

from typing import ClassVar

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.mujoco.gymnasium_task import (
    NoisyStartTask,
    clip,
    norm,
    weighted_squares,
)
from coach_rl.environments.mujoco.task import Judgement, MujocoState, Number, Range

_NEAR_CAMERA = FrozenMapping[str]({"distance": 4.0})
_HOPPER_CAMERA = FrozenMapping[str](
    {"trackbodyid": 2, "distance": 3.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0}
)
_WALKER_CAMERA = FrozenMapping[str](
    {"trackbodyid": 2, "distance": 4.0, "lookat": (0.0, 0.0, 1.15), "elevation": -20.0}
)
_HUMANOID_CAMERA = FrozenMapping[str](
    {"trackbodyid": 1, "distance": 4.0, "lookat": (0.0, 0.0, 2.0), "elevation": -20.0}
)
_STANDUP_CAMERA = FrozenMapping[str](
    {"trackbodyid": 1, "distance": 4.0, "lookat": (0.0, 0.0, 0.8925), "elevation": -20.0}
)


@parameter_class
class Runner(NoisyStartTask):
    """A robot that is rewarded for its forward velocity."""

    place_elements: ClassVar[int] = 1
    """Positions that are its place: 1 for x, 2 where it can turn."""

    forward_reward_weight: Number = 1.0
    """Reward per metre and second of forward velocity."""
    ctrl_cost_weight: Number = 0.1
    """Cost of the squared action."""
    exclude_current_positions_from_observation: bool = True
    """Leave x, and y where the robot can turn, out of the observation."""

    def observation(self, state: MujocoState) -> Array:
        """Positions and velocities."""
        return np.concatenate((self._positions(state), state.qvel), axis=1)

    def _positions(self, state: MujocoState) -> FloatArray:
        hidden = self.exclude_current_positions_from_observation
        return state.qpos[:, self.place_elements * hidden :]


@parameter_class
class HalfCheetah(Runner):
    """Keyword arguments, defaults and numbers of Gymnasium's HalfCheetah-v5."""

    has_normal_velocities: ClassVar[bool] = True

    xml_file: str = "half_cheetah.xml"
    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _NEAR_CAMERA

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Forward velocity less the control cost; never terminated."""
        x_velocity = (after.qpos[:, 0] - before.qpos[:, 0]) / after.scene.dt
        forward: Array = self.forward_reward_weight * x_velocity
        control = weighted_squares(self.ctrl_cost_weight, action)
        info = {
            **self.reset_info(after),
            "x_velocity": x_velocity,
            "reward_forward": forward,
            "reward_ctrl": -control,
        }
        return forward - control, np.zeros(len(action), np.bool_), info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
        return {"x_position": state.qpos[:, 0]}


@parameter_class
class Swimmer(Runner):
    """Keyword arguments, defaults and numbers of Gymnasium's Swimmer-v5."""

    place_elements: ClassVar[int] = 2

    xml_file: str = "swimmer.xml"
    frame_skip: int = 4
    ctrl_cost_weight: Number = 1e-4

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
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
        return _way_from_origin(state)


@parameter_class
class _PlanarWalker(Runner):
    """Hopper or walker: a torso at height qpos[1] and angle qpos[2]."""

    frame_skip: int = 4
    ctrl_cost_weight: Number = 1e-3
    healthy_reward: Number = 1.0
    """Reward for each step that ends healthy."""
    terminate_when_unhealthy: bool = True
    """If True, an unhealthy state ends the episode."""
    reset_noise_scale: NonNegative[float] = 5e-3
    healthy_z_range: Range = (0.8, 2.0)
    """Healthy range of the torso's height, in metres."""
    healthy_angle_range: Range = (-1.0, 1.0)
    """Healthy range of the torso's angle, in radians."""

    def is_healthy(self, state: MujocoState) -> BoolArray:
        """Return whether each robot has not fallen, [R]."""
        return np.asarray(
            _between(state.qpos[:, 1], self.healthy_z_range)
            & _between(state.qpos[:, 2], self.healthy_angle_range)
        )

    def observation(self, state: MujocoState) -> Array:
        """Positions and clipped velocities."""
        return np.concatenate((self._positions(state), clip(state.qvel, -10, 10)), axis=1)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Forward velocity and health less the control cost; terminated when unhealthy."""
        x_velocity = (after.qpos[:, 0] - before.qpos[:, 0]) / after.scene.dt
        healthy = self.is_healthy(after)
        forward: Array = self.forward_reward_weight * x_velocity
        survive = healthy * self.healthy_reward
        control = weighted_squares(self.ctrl_cost_weight, action)
        info = {
            **self.reset_info(after),
            "x_velocity": x_velocity,
            "reward_forward": forward,
            "reward_ctrl": -control,
            "reward_survive": survive,
        }
        return forward + survive - control, ~healthy & self.terminate_when_unhealthy, info

    def reset_info(self, state: MujocoState) -> dict[str, Array]:
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
    healthy_angle_range: Range = (-0.2, 0.2)

    def is_healthy(self, state: MujocoState) -> BoolArray:
        joints = np.concatenate((state.qpos[:, 2:], state.qvel), axis=1)
        low, high = self.healthy_state_range
        return np.asarray(
            super().is_healthy(state)
            & (np.minimum.reduce(joints, axis=1) > low)
            & (np.maximum.reduce(joints, axis=1) < high)
        )


@parameter_class
class Walker2d(_PlanarWalker):
    """Keyword arguments, defaults and numbers of Gymnasium's Walker2d-v5."""

    xml_file: str = "walker2d_v5.xml"
    default_camera_config: FrozenMapping[str] | None = _WALKER_CAMERA


@parameter_class
class Ant(Runner):
    """Keyword arguments, defaults and numbers of Gymnasium's Ant-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos", "cfrc_ext")
    has_normal_velocities: ClassVar[bool] = True
    place_elements: ClassVar[int] = 2

    xml_file: str = "ant.xml"
    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _NEAR_CAMERA
    forward_reward_weight: Number = 1
    ctrl_cost_weight: Number = 0.5
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
    include_cfrc_ext_in_observation: bool = True
    """Observe the contact forces."""

    def observation(self, state: MujocoState) -> Array:
        """Positions, velocities and clipped contact forces, [R, 105] by default."""
        parts = [self._positions(state), state.qvel]
        if self.include_cfrc_ext_in_observation:
            forces = clip(state.cfrc_ext[:, 1:], *self.contact_force_range)
            parts.append(forces.reshape(len(forces), -1))
        return np.concatenate(parts, axis=1)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
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
        return _way_from_origin(state)


@parameter_class
class _HumanoidBody(NoisyStartTask):
    """The robot of both humanoid tasks, and its observation."""

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
    default_camera_config: FrozenMapping[str] | None = _HUMANOID_CAMERA
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

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Forward velocity and health less control and contact costs; terminated when unhealthy."""
        del action  # the cost is that of `MjData.ctrl`, which is the action in double precision
        velocity = (_mass_center(after) - _mass_center(before)) / after.scene.dt
        healthy = _between(after.qpos[:, 2], self.healthy_z_range)
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
    """Accepted and without effect, as in Gymnasium."""
    impact_cost_weight: Number = 0.5e-6
    """Cost of the squared contact forces."""
    impact_cost_range: Range = (-np.inf, 10.0)
    """Range to which the contact cost is clipped."""

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
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
        return {
            "x_position": state.qpos[:, 0],
            "y_position": state.qpos[:, 1],
            "z_distance_from_origin": state.qpos[:, 2] - state.scene.init_qpos[2],
            "tendon_length": state.ten_length,
            "tendon_velocity": state.ten_velocity,
        }


def _way_from_origin(state: MujocoState) -> dict[str, Array]:
    """Places of robots that can turn, and their distances from the origin, [R] each."""
    return {
        "x_position": state.qpos[:, 0],
        "y_position": state.qpos[:, 1],
        "distance_from_origin": norm(state.qpos[:, :2]),
    }


def _between(values: Array, bounds: Range) -> Array:
    return np.asarray((bounds[0] < values) & (values < bounds[1]))


def _mass_center(state: MujocoState) -> FloatArray:
    """The x and y of the centre of mass, [R, 2]."""
    mass = state.scene.model.body_mass
    return np.asarray((np.einsum("b,nbj->nj", mass, state.xipos) / mass.sum())[:, :2])
