"""The ant: a ball on four legs of two joints each, built geometry by geometry."""

from dataclasses import dataclass

import numpy as np

from coach_rl.core.errors import UnknownNameError
from coach_rl.environments.goal_worlds.goal_task import damp, empty_scene
from coach_rl.environments.mujoco.engine import mujoco

_JOINTS = tuple(f"{joint}_{leg}" for leg in (1, 2, 3, 4) for joint in ("hip", "ankle"))
OBSERVED = (
    *("x", "y", "z"),
    *("quaternion_w", "quaternion_x", "quaternion_y", "quaternion_z"),
    *_JOINTS,
    *("x_velocity", "y_velocity", "z_velocity"),
    *("roll_velocity", "pitch_velocity", "yaw_velocity"),
    *(f"{joint}_velocity" for joint in _JOINTS),
)
"""Names of the elements of the ant's observation: 15 positions, 14 velocities.

Metres, radians and seconds; the torso's linear velocity is in the world's axes, its angular
velocity in its own.
"""
POSITIONS, VELOCITIES = 15, 14
"""Number of elements of `qpos` and `qvel` that are the ant's: the first ones."""
DROP_HEIGHT = 0.75
"""Height of the torso in the model's own pose, legs stretched, in metres above the ground."""
STANDING = (0.0, 0.0, 0.55, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)
"""Positions of an ant that stands at the origin with its legs bent."""
SPAN = 1.25
"""Extent of a segment along x and along y; the shoulder is as long as the thigh."""
GROUND_COLOR = (0.62, 0.64, 0.62, 1)

_TORSO_RADIUS, _LEG_RADIUS = 0.25, 0.08
_THIGH, _SHIN = 0.2, 0.4
"""Length of a segment along x and along y; the shoulder is as long as the thigh."""
_DENSITY = 5.0
_ARMATURE, _DAMPING = 1.0, 1.0
_HIP_RANGE, _ANKLE_RANGE = (-30.0, 30.0), (30.0, 70.0)
_COLOR, _TORSO_COLOR = (0.2, 0.55, 0.85, 1), (0.15, 0.4, 0.7, 1)


@dataclass(frozen=True)
class Leg:
    """A leg's direction, and the direction in which its ankle bends down."""

    number: int
    direction: tuple[int, int]
    axis: tuple[int, int]
    bends: int

    @property
    def ankle_range(self) -> tuple[float, float]:
        """Degrees."""
        low, high = (self.bends * angle for angle in _ANKLE_RANGE)
        return min(low, high), max(low, high)


LEGS = (
    Leg(1, (1, 1), (-1, 1), 1),
    Leg(2, (-1, 1), (1, 1), -1),
    Leg(3, (-1, -1), (-1, 1), -1),
    Leg(4, (1, -1), (1, 1), 1),
)
"""Legs in the order of their joints, each a quarter turn to the left of the one before."""
MOTORS = (4, 1, 2, 3)
"""Legs in the order of their actions, as in Gymnasium's model."""


def elements(*names: str) -> tuple[int, ...]:
    """Return the indices of named observation elements, e.g. for `GoalSpace`; see `OBSERVED`.

    Raises:
        UnknownNameError: No element has such a name.
    """
    for name in names:
        if name not in OBSERVED:
            raise UnknownNameError("element of the ant's observation", name, OBSERVED)
    return tuple(OBSERVED.index(name) for name in names)


def ground(
    name: str, *, timestep: float, half_side: float, impedance: tuple[float, float, float] | None
) -> mujoco.MjSpec:
    """A floor, and the contacts of everything that will stand on it.

    Args:
        name: Of the model.
        timestep: Of the simulator, in seconds.
        half_side: Of the floor, in metres.
        impedance: The first three `solimp` of all contacts; None: MuJoCo's own.
    """
    spec = empty_scene(name)
    spec.compiler.degree = False
    spec.option.timestep = timestep
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_RK4
    contacts = spec.default.geom
    contacts.friction = [1, 0.5, 0.5]
    contacts.margin = 0.01
    contacts.density = _DENSITY
    if impedance is not None:
        contacts.solimp[:3] = impedance
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[half_side] * 2 + [1],
        rgba=GROUND_COLOR,
    )
    return spec


def add_ant(spec: mujoco.MjSpec, *, height: float, gear: float) -> None:
    """Put an ant over the origin, with its motors; first of all bodies that move.

    Args:
        spec: With the contacts of `ground`.
        height: Of the ground under it, in metres.
        gear: Torque of each motor at an action of 1, in newton metres.
    """
    torso = spec.worldbody.add_body(name="torso", pos=[0, 0, height + DROP_HEIGHT])
    torso.add_freejoint(name="root")
    torso.add_geom(
        type=mujoco.mjtGeom.mjGEOM_SPHERE,
        size=[_TORSO_RADIUS, 0, 0],
        rgba=_TORSO_COLOR,
        conaffinity=0,
    )
    for leg in LEGS:
        x, y = leg.direction
        end = [_THIGH * x, _THIGH * y, 0]
        shoulder = torso.add_body(name=f"shoulder_{leg.number}")
        _add_segment(shoulder, end)
        thigh = shoulder.add_body(name=f"thigh_{leg.number}", pos=end)
        _add_hinge(thigh, f"hip_{leg.number}", axis=[0, 0, 1], degrees=_HIP_RANGE)
        _add_segment(thigh, end)
        shin = thigh.add_body(name=f"shin_{leg.number}", pos=end)
        _add_hinge(shin, f"ankle_{leg.number}", axis=[*leg.axis, 0], degrees=leg.ankle_range)
        _add_segment(shin, [_SHIN * x, _SHIN * y, 0])
    for number in MOTORS:
        for joint in ("hip", "ankle"):
            name = f"{joint}_{number}"
            motor = spec.add_actuator(
                name=name, target=name, trntype=mujoco.mjtTrn.mjTRN_JOINT, ctrllimited=True
            )
            motor.ctrlrange = [-1, 1]
            motor.gear[0] = gear


def _add_segment(body: mujoco.MjsBody, end: list[float]) -> None:
    body.add_geom(
        type=mujoco.mjtGeom.mjGEOM_CAPSULE,
        fromto=[0, 0, 0, *end],
        size=[_LEG_RADIUS, 0, 0],
        rgba=_COLOR,
        conaffinity=0,  # legs pass through each other
    )


def _add_hinge(
    body: mujoco.MjsBody, name: str, *, axis: list[float], degrees: tuple[float, float]
) -> None:
    hinge = body.add_joint(
        name=name, type=mujoco.mjtJoint.mjJNT_HINGE, axis=axis, armature=_ARMATURE, limited=True
    )
    hinge.range = np.deg2rad(degrees)
    damp(hinge, _DAMPING)
