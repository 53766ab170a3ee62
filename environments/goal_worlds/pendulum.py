"""Swing a pendulum up with a motor too weak to lift it: a first task for hierarchies."""

from typing import ClassVar

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import Place
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.goal_worlds.goal_task import (
    GoalTask,
    empty_scene,
    require_thresholds,
    set_damping,
    within_thresholds,
)
from coach_rl.environments.mujoco import MujocoState, Range, Scene
from coach_rl.environments.mujoco.engine import mujoco

_CAMERA = FrozenMapping[str]({"distance": 2.4, "azimuth": 90.0, "elevation": -12.0})
_HINGE_HEIGHT = 0.6
_MAX_TORQUE = 2.0
"""Largest torque in newton metres; holding the pole level takes 9.81 * mass * length."""
_TURN = 2 * np.pi
_FASTEST_GOAL = 15.0
"""Radians per second; the bound of Coach's and the HAC paper's goal spaces."""


@parameter_class
class GoalPendulum(GoalTask):
    """Coach's `PendulumWithGoals`, as its preset `Pendulum_HAC` uses it.

    Observation and goals are sine and cosine of the angle and the angular velocity; angle 0 is
    upright. An episode starts hanging or leaning; its goal is to be upright and slow. The motor is
    too weak to lift the mass at once. Different from Coach: an episode cut off by its time limit is
    truncated, not terminated, and starts where it was drawn, not one simulator step later.
    """

    max_episode_steps: ClassVar[int | None] = 1000

    frame_skip: int = 10
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    timestep: Positive[float] = 0.002
    """Seconds of a simulator step."""
    length: Positive[float] = 0.5
    """Length from the hinge to the mass, in metres."""
    mass: Positive[float] = 1.0
    """Mass of the ball at the end, in kilograms; the pole has none."""
    damping: NonNegative[float] = 0.1
    """Damping of the hinge, in newton metres per radian and second."""
    start_angle: Range = (np.pi / 4, 7 * np.pi / 4)
    """Range of start angles, in radians from upright."""
    start_velocity: Range = (-0.05, 0.05)
    """Velocity at the start, in radians per second."""
    goal_angle: Range = (0.0, 0.0)
    """Range of goal angles, in radians from upright; (-pi / 8, pi / 8) for Coach's random goals."""
    goal_velocity: Range = (0.0, 0.0)
    """Velocity of goals, in radians per second; (-0.2, 0.2) for Coach's random goals."""
    threshold: tuple[Positive[float], ...] = (0.075, 0.075, 0.75)
    """Largest difference in each element of the goal at which it is reached."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        elements = len(self._goal(np.zeros(1), np.zeros(1))[0])
        require_thresholds(f"{name}.threshold", self.threshold, elements)

    def spec(self) -> mujoco.MjSpec:
        """A massless pole with a ball, on a hinge; a mark at the goal."""
        spec = empty_scene("goal_pendulum")
        spec.option.timestep = self.timestep
        spec.option.disableflags = int(mujoco.mjtDisableBit.mjDSBL_CONTACT)
        spec.nuserdata = len(self.threshold)
        spec.worldbody.add_geom(
            type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2, 2, 0.2], rgba=[0.55, 0.6, 0.65, 1]
        )
        pole = spec.worldbody.add_body(name="pole", pos=[0, 0, _HINGE_HEIGHT])
        hinge = pole.add_joint(name="hinge", type=mujoco.mjtJoint.mjJNT_HINGE, axis=[0, 1, 0])
        set_damping(hinge, self.damping)
        pole.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CAPSULE,
            fromto=[0, 0, 0, 0, 0, self.length],
            size=[0.02, 0, 0],
            mass=0,
            rgba=[0.75, 0.75, 0.78, 1],
        )
        pole.add_geom(
            name="mass",
            type=mujoco.mjtGeom.mjGEOM_SPHERE,
            pos=[0, 0, self.length],
            size=[0.05, 0, 0],
            mass=self.mass,
            rgba=[0.2, 0.55, 0.85, 1],
        )
        mark = spec.worldbody.add_body(name="goal", mocap=True)
        mark.add_site(size=[0.06, 0.06, 0.06], rgba=[0.95, 0.8, 0.1, 0.6])
        motor = spec.add_actuator(
            name="torque", target="hinge", trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrllimited=True
        )
        motor.ctrlrange = [-_MAX_TORQUE, _MAX_TORQUE]
        return spec

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        del scene
        data.qpos[:] = rng.uniform(*self.start_angle)
        data.qvel[:] = rng.uniform(*self.start_velocity)
        angle = rng.uniform(*self.goal_angle, size=1)
        data.userdata[:] = self._goal(angle, rng.uniform(*self.goal_velocity, size=1))[0]
        data.mocap_pos[0] = self._tip(angle[0])

    @property
    def goal_space(self) -> GoalSpace:
        fastest = (-1.0, -1.0, -_FASTEST_GOAL), (1.0, 1.0, _FASTEST_GOAL)
        return GoalSpace(
            key="achieved_goal", low=fastest[0], high=fastest[1], threshold=self.threshold
        )

    @property
    def subgoal_space(self) -> GoalSpace:
        """The goals of the task, as in Coach's preset."""
        return self.goal_space

    def motion(self, state: MujocoState) -> FloatArray:
        """Sine and cosine of the angle, angular velocity, [R, 3]."""
        return _on_the_circle(state.qpos[:, 0], state.qvel[:, 0])

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        return self._goal(state.qpos[:, 0], state.qvel[:, 0])

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return within_thresholds(np.asarray(achieved_goal) - desired_goal, self.threshold)

    def goal_place(self, key: str, elements: tuple[int, ...], goal: FloatArray) -> Place | None:
        del key  # observations and goals show the same angle, that of the pole
        value = dict(zip(elements, goal.tolist(), strict=True))
        if not {0, 1} <= value.keys():
            return None
        return self._tip(np.arctan2(value[0], value[1]))

    def _goal(self, angle: FloatArray, velocity: FloatArray) -> FloatArray:
        """The goal at angles [R] and velocities [R]: what `motion` shows, [R, 3]."""
        return _on_the_circle(angle, velocity)

    def _tip(self, angle: float) -> Place:
        """Return the position of the ball at the end of the pole."""
        x, z = self.length * np.sin(angle), self.length * np.cos(angle)
        return float(x), 0.0, float(_HINGE_HEIGHT + z)


@parameter_class
class AngleGoalPendulum(GoalPendulum):
    """The inverted pendulum of the HAC paper (Levy et al. 2019), by its authors' code.

    Goals are the angle, in (-pi, pi], and the velocity, clipped to 15 radians per second. Goals are
    drawn as in training; the paper tests with `goal_angle=(0, 0)` and `goal_velocity=(0, 0)`.
    Angles are compared around the circle, unlike in the authors' code: it differs near pi only.
    """

    goal_angle: Range = (float(np.deg2rad(-16)), float(np.deg2rad(16)))
    """Range of goal angles, in radians from upright."""
    goal_velocity: Range = (-0.6, 0.6)
    """Velocity of goals, in radians per second."""
    threshold: tuple[Positive[float], ...] = (float(np.deg2rad(9.5)), 0.6)
    """Largest difference in angle and velocity at which the goal is reached."""

    @property
    def goal_space(self) -> GoalSpace:
        """Angle and velocity, within the thresholds; angles around the circle."""
        return GoalSpace(
            key="achieved_goal",
            low=(-np.pi, -_FASTEST_GOAL),
            high=(np.pi, _FASTEST_GOAL),
            threshold=self.threshold,
            angles=(0,),
        )

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return within_thresholds(_difference(achieved_goal, desired_goal), self.threshold)

    def distance(self, achieved_goal: Array, desired_goal: Array) -> FloatArray:
        """Euclidean, angles compared around the circle, [...]."""
        return np.asarray(np.sqrt((_difference(achieved_goal, desired_goal) ** 2).sum(axis=-1)))

    def goal_place(self, key: str, elements: tuple[int, ...], goal: FloatArray) -> Place | None:
        if key == "observation":  # shows sine and cosine
            return super().goal_place(key, elements, goal)
        return self._tip(goal[elements.index(0)]) if 0 in elements else None

    def _goal(self, angle: FloatArray, velocity: FloatArray) -> FloatArray:
        """Angle and bounded velocity, [R, 2]."""
        bounded = np.clip(velocity, -_FASTEST_GOAL, _FASTEST_GOAL)
        return np.stack((_wrapped(angle), bounded), axis=1)


def _on_the_circle(angle: FloatArray, velocity: FloatArray) -> FloatArray:
    return np.stack((np.sin(angle), np.cos(angle), velocity), axis=1)


def _difference(achieved_goal: Array, desired_goal: Array) -> FloatArray:
    """Return the difference of angles and velocities [..., 2], angles within half a turn."""
    difference = np.array(np.asarray(achieved_goal) - desired_goal, np.float64)
    difference[..., 0] = _wrapped(difference[..., 0])
    return difference


def _wrapped(angle: FloatArray) -> FloatArray:
    """The same angle in (-pi, pi]."""
    return np.asarray(np.pi - (np.pi - angle) % _TURN)
