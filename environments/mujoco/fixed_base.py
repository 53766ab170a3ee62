"""Gymnasium's robots on a fixed base or cart: v5 of Reacher, Pusher and the inverted pendulums."""

from typing import ClassVar

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.gymnasium_task import (
    GymnasiumTask,
    NoisyStartTask,
    clip,
    norm,
)
from coach_rl.environments.mujoco.task import Judgement, MujocoState, Number, Scene

_REACHER_CAMERA = FrozenMapping[str]({"trackbodyid": 0})
_PUSHER_CAMERA = FrozenMapping[str]({"trackbodyid": -1, "distance": 4.0})
_PENDULUM_CAMERA = FrozenMapping[str]({"trackbodyid": 0, "distance": 2.04})


@parameter_class
class Reacher(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's Reacher-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos")
    max_episode_steps: ClassVar[int | None] = 50

    xml_file: str = "reacher.xml"
    frame_skip: int = 2
    default_camera_config: FrozenMapping[str] | None = _REACHER_CAMERA
    reward_dist_weight: Number = 1
    """Cost per metre between fingertip and target."""
    reward_control_weight: Number = 1
    """Cost of the squared action."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        # A noisy pose, and a target drawn uniformly from a disc of 0.2 m.
        model = scene.model
        qpos = rng.uniform(low=-0.1, high=0.1, size=model.nq) + scene.init_qpos
        goal = rng.uniform(low=-0.2, high=0.2, size=2)
        while np.linalg.norm(goal) >= 0.2:
            goal = rng.uniform(low=-0.2, high=0.2, size=2)
        qpos[-2:] = goal
        qvel = scene.init_qvel + rng.uniform(low=-0.005, high=0.005, size=model.nv)
        qvel[-2:] = 0
        data.qpos[:] = qpos
        data.qvel[:] = qvel

    def observation(self, state: MujocoState) -> Array:
        """Cosines and sines of the joints, target, velocities, fingertip to target, [R, 10]."""
        theta = state.qpos[:, :2]
        parts = (
            np.cos(theta),
            np.sin(theta),
            state.qpos[:, 2:],
            state.qvel[:, :2],
            _offset(state, "fingertip", "target")[:, :2],
        )
        return np.concatenate(parts, axis=1)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Minus the distance to the target, minus the squared action; never terminated."""
        del before
        distance: Array = -norm(_offset(after, "fingertip", "target")) * self.reward_dist_weight
        control = _action_cost(action, self.reward_control_weight)
        info = {"reward_dist": distance, "reward_ctrl": control}
        return distance + control, np.zeros(len(action), np.bool_), info


@parameter_class
class Pusher(GymnasiumTask):
    """Keyword arguments, defaults and numbers of Gymnasium's Pusher-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "xpos")
    max_episode_steps: ClassVar[int | None] = 100

    xml_file: str = "pusher_v5.xml"
    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _PUSHER_CAMERA
    reward_near_weight: Number = 0.5
    """Cost per metre between arm and object."""
    reward_dist_weight: Number = 1
    """Cost per metre between object and goal."""
    reward_control_weight: Number = 0.1
    """Cost of the squared action."""

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        # The arm at rest, the object at least 0.17 m from the goal.
        cylinder = _cylinder_position(rng)
        while np.linalg.norm(cylinder) <= 0.17:
            cylinder = _cylinder_position(rng)
        data.qpos[:] = scene.init_qpos
        data.qpos[-4:-2] = cylinder
        data.qpos[-2:] = 0
        data.qvel[:] = scene.init_qvel + rng.uniform(low=-0.005, high=0.005, size=scene.model.nv)
        data.qvel[-4:] = 0

    def observation(self, state: MujocoState) -> Array:
        """Joint angles and velocities, arm tip, object and goal, [R, 23]."""
        bodies = [state.xpos[:, state.scene.body(name)] for name in ("tips_arm", "object", "goal")]
        return np.concatenate((state.qpos[:, :7], state.qvel[:, :7], *bodies), axis=1)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Minus the distances arm to object and object to goal, minus the squared action."""
        del before
        near: Array = -norm(_offset(after, "object", "tips_arm")) * self.reward_near_weight
        distance: Array = -norm(_offset(after, "object", "goal")) * self.reward_dist_weight
        control = _action_cost(action, self.reward_control_weight)
        info = {"reward_dist": distance, "reward_ctrl": control, "reward_near": near}
        return distance + control + near, np.zeros(len(action), np.bool_), info


@parameter_class
class InvertedPendulum(NoisyStartTask):
    """Keyword arguments, defaults and numbers of Gymnasium's InvertedPendulum-v5."""

    xml_file: str = "inverted_pendulum.xml"
    frame_skip: int = 2
    default_camera_config: FrozenMapping[str] | None = _PENDULUM_CAMERA
    reset_noise_scale: NonNegative[float] = 0.01

    def observation(self, state: MujocoState) -> Array:
        """Positions and velocities, [R, 4]."""
        return np.concatenate((state.qpos, state.qvel), axis=1)

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """1 while the pole is within 0.2 radians of upright, terminated otherwise."""
        del before, action
        # A state that is not finite never gets here, so the angle alone decides.
        terminated = np.abs(after.qpos[:, 1]) > 0.2
        survive = (~terminated).astype(np.int64)
        return survive.astype(np.float64), terminated, {"reward_survive": survive}


@parameter_class
class InvertedDoublePendulum(NoisyStartTask):
    """Keyword arguments, defaults and numbers of Gymnasium's InvertedDoublePendulum-v5."""

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "qfrc_constraint", "site_xpos")
    has_normal_velocities: ClassVar[bool] = True

    xml_file: str = "inverted_double_pendulum.xml"
    frame_skip: int = 5
    healthy_reward: Number = 10.0
    """Reward for each step that does not terminate."""

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

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
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


def _offset(state: MujocoState, tip: str, target: str) -> Array:
    """Vectors from one body to another, [R, 3]."""
    body = state.scene.body
    return np.asarray(state.xpos[:, body(tip)] - state.xpos[:, body(target)])


def _action_cost(action: FloatArray, weight: float) -> Array:
    return np.asarray(-np.add.reduce(np.square(action), axis=1) * weight)


def _cylinder_position(rng: np.random.Generator) -> FloatArray:
    x = rng.uniform(low=-0.3, high=0, size=1)
    y = rng.uniform(low=-0.2, high=0.2, size=1)
    return np.concatenate((x, y))


def _power_two(values: FloatArray) -> FloatArray:
    """Squares by C's `pow`, as Gymnasium takes them of scalars.

    It rounds some last bits otherwise than x * x, which numpy takes for arrays.
    """
    return np.array([value**2 for value in values.tolist()], np.float64)
