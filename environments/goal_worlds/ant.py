"""The ant: a ball on four legs of two joints each; its pose, and the symmetry of its body."""

from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError, require
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.goal_worlds.goal_task import GoalTask, empty_scene, set_damping
from coach_rl.environments.mujoco import MujocoState
from coach_rl.environments.mujoco.engine import mujoco

_JOINT_NAMES = tuple(f"{joint}_{leg}" for leg in (1, 2, 3, 4) for joint in ("hip", "ankle"))
OBSERVED = (
    *("x", "y", "z"),
    *("quaternion_w", "quaternion_x", "quaternion_y", "quaternion_z"),
    *_JOINT_NAMES,
    *("x_velocity", "y_velocity", "z_velocity"),
    *("roll_velocity", "pitch_velocity", "yaw_velocity"),
    *(f"{joint}_velocity" for joint in _JOINT_NAMES),
)
"""Names of the elements of the ant's observation: 15 positions, 14 velocities.

Metres, radians and seconds; the torso's linear velocity is in the world's axes, its angular
velocity in its own.
"""
POSITIONS = 15
VELOCITIES = 14
"""Number of elements of `qpos` and `qvel` that are the ant's: the first ones."""
DROP_HEIGHT = 0.75
"""Height of the torso in the model's own pose, legs stretched, in metres above the ground."""
STANDING = (0.0, 0.0, 0.55, 1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, -1.0, 0.0, -1.0, 0.0, 1.0)
"""Positions of an ant that stands at the origin with its legs bent."""
SPAN = 1.25
"""Length from the torso's centre to the tip of a stretched leg, rounded up, in metres."""
GROUND_COLOR = (0.62, 0.64, 0.62, 1)

_TORSO_RADIUS, _LEG_RADIUS = 0.25, 0.08
_THIGH = 0.2
_SHIN = 0.4
"""Length of a segment along x and along y; the shoulder is as long as the thigh."""
_DENSITY = 5.0
_ARMATURE = 1.0
_DAMPING = 1.0
_HIP_RANGE, _ANKLE_RANGE = (-30.0, 30.0), (30.0, 70.0)
_COLOR = (0.2, 0.55, 0.85, 1)
_TORSO_COLOR = (0.15, 0.4, 0.7, 1)


MOTORS = (4, 1, 2, 3)
"""Legs in the order of their actions, as in Gymnasium's model."""
_TILT = 1.0
"""Threshold of the torso's own axis at a sub-goal: at most a quarter turn from upright."""
_STANCE = 2.0
"""Threshold of the stance at a sub-goal: the difference between the best and the worst."""
_CAMERA = FrozenMapping[str]({"azimuth": 90.0, "elevation": -65.0})
WALL_COLOR = (0.2, 0.24, 0.32, 1)
GOAL_COLOR = (0.95, 0.8, 0.1, 0.6)
_QUARTER_TURNS = np.array([1, 1j, -1, -1j])
_UPSIDE_DOWN = 1e-12
"""Squared length of a twist below which the heading is undefined."""


@dataclass(frozen=True)
class Leg:
    """A leg's direction, and the direction in which its ankle bends down."""

    number: int
    direction: tuple[int, int]
    axis: tuple[int, int]
    bends: int

    @property
    def ankle_range(self) -> tuple[float, float]:
        """Lowest and highest angle of the ankle, in degrees."""
        low, high = (self.bends * angle for angle in _ANKLE_RANGE)
        return min(low, high), max(low, high)


LEGS = (
    Leg(1, (1, 1), (-1, 1), 1),
    Leg(2, (-1, 1), (1, 1), -1),
    Leg(3, (-1, -1), (-1, 1), -1),
    Leg(4, (1, -1), (1, 1), 1),
)
"""Legs in the order of their joints, each a quarter turn to the left of the one before it."""

_KEY = "observation"
_POSE = "pose"
_ANT = POSITIONS + VELOCITIES
_JOINTS = slice(7, POSITIONS), slice(POSITIONS + 6, _ANT)
"""Elements of the joints' angles, and of their velocities; legs in turn, hip and ankle of each."""
_ACTIONS = 2 * len(LEGS)


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
    """A model with a floor, and with the contact settings of everything that is added to it.

    Args:
        name: Name of the model.
        timestep: Time step of the simulator, in seconds.
        half_side: Half the side of the floor, in metres.
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
    """Add an ant with its motors above the origin; it must be the first body that moves.

    Args:
        spec: A model made by `ground`.
        height: Height of the ground under the ant, in metres.
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
    set_damping(hinge, _DAMPING)


@parameter_class
class PosedAnt(GoalTask):
    """A goal world of an ant whose observation can include its pose."""

    posed_elements: ClassVar[int] = 2
    """Elements of the torso's place that a pose begins with."""

    shows_pose: bool = False
    """If True, observations include a `pose`: the torso's place and how far up its own axis points,
    1 for an ant on its feet and -1 for one on its back. Sub-goals are poses then, so that an ant
    that has fallen over has reached none."""
    shows_stance: bool = False
    """If True, a pose ends with the stance: 1 where all four legs point between the axes of the
    world, so that the ant is narrow along each, and -1 where they point along the axes. Sub-goals
    include it: in mazes, the worse the stance is, the nearer to the place an ant must be."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.shows_pose or not self.shows_stance,
            f"{type(self).__name__}.shows_stance needs shows_pose=True",
        )

    def observation(self, state: MujocoState) -> dict[str, Array]:
        """Motion [R, O], goals [R, G]; with `shows_pose` the pose [R, P + 1 or 2]."""
        seen = super().observation(state)
        if self.shows_pose:
            # The torso's own z axis has the vertical component 1 - 2 (x^2 + y^2) of its quaternion.
            tilt = (state.qpos[:, 4:6] ** 2).sum(axis=1)  # [R]
            place = state.qpos[:, : self.posed_elements]  # [R, P]
            stance = [_stance(state.qpos[:, 3:7])] if self.shows_stance else []
            seen["pose"] = np.column_stack([place, 1 - 2 * tilt, *stance])
        return seen

    def poses(self, places: GoalSpace) -> GoalSpace:
        """Sub-goals of an ant on its feet at these places."""
        thresholds = (_TILT, _STANCE) if self.shows_stance else (_TILT,)
        return replace(
            places,
            low=(*places.low, *(-1.0 for _ in thresholds)),
            high=(*places.high, *(1.0 for _ in thresholds)),
            threshold=(*places.threshold, *thresholds),
            key="pose",
            elements=None,
        )


def _stance(orientations: FloatArray) -> FloatArray:
    """cos(4 yaw) of unit quaternions [R, 4], [R]; equal after a quarter turn, as the legs are."""
    w, x, y, z = orientations.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    stances: FloatArray = np.cos(4 * yaw)
    return stances


@parameter_class
class AntTask(PosedAnt):
    """An ant whose goals are places of its torso.

    `OBSERVED` names the elements of its observation; they begin with x, y and z, so a goal of G
    elements is the first G of them.
    """

    place_elements: ClassVar[int] = 3
    mark_height: ClassVar[float] = 0.75  # of a torso on straight legs

    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = _CAMERA
    timestep: Positive[float] = 0.02
    """Seconds of a simulator step."""
    gear: Positive[float] = 30.0
    """Torque of a motor at an action of 1, in newton metres; Gymnasium's ant has 150."""

    @property
    def goal_size(self) -> int:
        """Elements of a goal, G."""
        return 3

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant, [R, 29], see `OBSERVED`."""
        return np.concatenate((state.qpos[:, :POSITIONS], state.qvel[:, :VELOCITIES]), axis=1)

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """Position of the torso, [R, G]."""
        return np.asarray(state.qpos[:, : self.goal_size])


def add_box(
    spec: mujoco.MjSpec,
    middle: tuple[float, float, float],
    size: tuple[float, float, float],
    rgba: tuple[float, float, float, float] = WALL_COLOR,
) -> None:
    """Add a fixed box to a model.

    Args:
        spec: The model.
        middle: Position of its centre, in metres.
        size: Its full extent along x, y and z, in metres.
        rgba: Its colour.
    """
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_BOX, pos=middle, size=[side / 2 for side in size], rgba=rgba
    )


def frame_scene(spec: mujoco.MjSpec, middle: tuple[float, float, float], extent: float) -> None:
    """Point camera and even light at a square of this extent, in metres, around a place."""
    spec.stat.center = middle
    spec.stat.extent = 0.95 * extent  # the camera stands at 1.5 times the model's extent
    for light in spec.lights:
        light.type = mujoco.mjtLightType.mjLIGHT_DIRECTIONAL
        light.castshadow = False  # the shadows of high walls would hide the ant


@parameter_class
class AntSymmetry:
    """Observations in which every way-point lies ahead of the ant, and to its left.

    Renaming the legs turns the way-point ahead, a mirror moves it to the left. The ant then no
    longer observes where the world's axes point. Its goals are poses (`shows_pose`), observed
    relative to the ant.
    """

    mirrored: bool = True
    """If False, way-points are only ahead: all legs are alike, but left and right are not."""
    shows_axes: bool = False
    """If True, the z of the quaternion, otherwise 0, is the sine of four times the heading: the
    direction in which to turn for a stance (`shows_stance`)."""

    def build(self, context: AgentContext) -> "AntTurns":
        """The symmetry of an ant's observations and actions.

        Raises:
            ConfigurationError: The level's goals are no poses relative to the ant.
        """
        goal = context.place.goal
        if goal is None or goal.key != _POSE or goal.observed != "relative":
            got = "no goals" if goal is None else f"key='{goal.key}', observed='{goal.observed}'"
            raise ConfigurationError(
                f"AntSymmetry needs GoalSpace(key='{_POSE}', observed='relative'), goals of an ant "
                f"in a world with shows_pose=True, got {got}; set symmetry=None there"
            )
        return AntTurns(self, context.spaces)


class _Views(NamedTuple):
    """The turn and the mirror that are applied to each of R ants."""

    quarters: IntArray
    """[R] quarter turns from an ant's own front to its canonical front."""
    mirrored: BoolArray
    """[R] whether left and right are swapped."""
    front: Array
    """[R] complex: direction of the canonical front in the ant's own axes."""
    heading: Array
    """[R] complex: direction of the ant's own x axis in the world."""
    twist: Array
    """[R] complex: the unit quaternion of that turn, w + iz."""

    @property
    def number(self) -> IntArray:
        """[R] row of the tables of joints and motors: quarters + 4 * mirrored."""
        return self.quarters + len(LEGS) * self.mirrored


class AntTurns:
    """Turned and mirrored observations of ants, and their actions turned back.

    With q = (w, x, y, z) an orientation, the heading is that of its twist about the vertical,
    (w, 0, 0, z); the tilt is what remains, and its z is 0. Complex numbers are vectors x + iy.

    Args:
        params: What is observed.
        level_spaces: Spaces of the ant's level.
        vectors: Key and first element of the vectors in the world's axes that are turned, besides
            the velocity; the first is that to the way-point.

    Raises:
        SpaceError: They are not those of an ant.
    """

    def __init__(
        self,
        params: AntSymmetry,
        level_spaces: EnvironmentSpaces,
        vectors: tuple[tuple[str, int], ...] = ((GOAL_KEY, 0),),
    ) -> None:
        observed = level_spaces.observation
        actions = level_spaces.action
        shape = observed[_KEY].shape or ()
        if len(shape) != 1 or shape[0] < _ANT:
            raise SpaceError(
                f"AntSymmetry reads the {_ANT} elements of an ant's observation, got {shape}"
            )
        if not (
            isinstance(actions, spaces.Box)
            and actions.shape == (_ACTIONS,)
            and (actions.high == actions.high[0]).all()
            and (actions.low == -actions.high).all()
        ):
            raise SpaceError(
                f"AntSymmetry turns the {_ACTIONS} motors of an ant, all with the same range "
                f"around 0, got {actions}"
            )
        self.params = params
        self.description = str(params)
        self.vectors = vectors
        self.due: slice | None = None
        """Elements of a one-hot code of the vector that leads to the way-point, in steps of two
        elements from the first one; None: the first does."""
        self.joints, self.joint_signs = _joint_tables()
        self.motors, self.motor_signs = _motor_tables()
        shown = dict(observed.items())
        if GOAL_KEY in shown:
            goals = shown[GOAL_KEY]
            assert isinstance(goals, spaces.Box)
            high = goals.high.copy()
            high[:2] = np.hypot(*goals.high[:2])
            shown[GOAL_KEY] = spaces.Box(-high, high)
        self.observation_space = spaces.Dict(shown)

    def canonical(self, observation: Observation) -> Observation:
        """The equivalent observations in which each ant's way-point lies ahead and to the left.

        Elements of the observation behind the ant's own, and of goals behind x and y, stay.
        """
        seen = observation[_KEY]  # [R, 29 or more]
        views = self._views(observation)
        mirrored = views.mirrored
        to_front = views.front.conj()
        sign = np.where(mirrored, -1.0, 1.0)
        # Multiplying by `to_front` turns from the ant's own axes to its canonical ones, [R].
        from_world = views.heading.conj() * to_front
        tilt = _complex(seen, 4) * views.twist.conj() * to_front
        rates = _complex(seen, 18) * to_front  # about the ant's own axes
        vectors = ((_KEY, 15), *self.vectors)
        turned = {key: observation[key].copy() for key in dict(vectors)}
        for key, first in vectors:
            vector = _complex(observation[key], first) * from_world
            turned[key][:, first] = vector.real
            turned[key][:, first + 1] = sign * vector.imag
        shown = turned[_KEY]
        shown[:, 3] = np.hypot(seen[:, 3], seen[:, 6])
        # a mirror turns axes the other way
        shown[:, 4] = sign * tilt.real
        shown[:, 5] = tilt.imag
        shown[:, 6] = sign * (views.heading**4).imag if self.params.shows_axes else 0.0
        shown[:, 18] = sign * rates.real
        shown[:, 19] = rates.imag
        shown[:, 20] *= sign
        joints = self.joints[views.number]
        signs = self.joint_signs[views.number]
        for part in _JOINTS:
            shown[:, part] = np.take_along_axis(seen[:, part], joints, axis=1) * signs
        return {**observation, **turned}

    def restored(self, action: Action, observation: Observation) -> Action:
        """Actions [R, 8] for the real motors, from those chosen in the canonical view."""
        assert not isinstance(action, dict), "a Box of motors"
        number = self._views(observation).number
        turned: FloatArray = np.take_along_axis(action, self.motors[number], axis=1)
        return (turned * self.motor_signs[number]).astype(action.dtype, copy=False)

    def way(self, observation: Observation) -> Array:
        """The vector to each ant's way-point, complex [R]."""
        return _complex(observation[self.vectors[0][0]], self.vectors[0][1])

    def _views(self, observation: Observation) -> _Views:
        twist = observation[_KEY][:, 3] + 1j * observation[_KEY][:, 6]  # w + iz, [R]
        twist = np.where(np.abs(twist) ** 2 > _UPSIDE_DOWN, twist, 1.0)
        twist /= np.abs(twist)
        heading = twist**2  # a quaternion turns by twice its angle
        way = self.way(observation) * heading.conj()
        along_x = np.abs(way.real) >= np.abs(way.imag)
        quarters = np.where(along_x, np.where(way.real >= 0, 0, 2), np.where(way.imag > 0, 1, 3))
        front = _QUARTER_TURNS[quarters]
        mirrored = (way * front.conj()).imag < 0
        return _Views(quarters, mirrored & self.params.mirrored, front, heading, twist)


def _joint_tables() -> tuple[IntArray, FloatArray]:
    """For each view, the joint that replaces each joint, and its sign, [8, 8] each.

    A mirror swaps the legs on the left and on the right, and turns hips the other way.
    """
    joints = []
    signs = []
    for mirror in (False, True):
        for quarters in range(len(LEGS)):
            for number, leg in enumerate(LEGS):
                place = len(LEGS) - 1 - number if mirror else number
                source = (place + quarters) % len(LEGS)
                joints += [2 * source, 2 * source + 1]
                signs += [-1 if mirror else 1, leg.bends * LEGS[source].bends]
    shape = (2 * len(LEGS), _ACTIONS)
    return np.array(joints).reshape(shape), np.array(signs, np.float64).reshape(shape)


def _motor_tables() -> tuple[IntArray, FloatArray]:
    """For each view, the action that drives each motor, and its sign, [8, 8] each."""
    joints, signs = _joint_tables()
    joint_of = np.array([2 * (leg - 1) + part for leg in MOTORS for part in (0, 1)])
    motor_of = np.argsort(joint_of)
    replaced = np.argsort(joints, axis=1)  # the inverse: the joint that each joint replaces
    by_joint = motor_of[replaced], np.take_along_axis(signs, replaced, axis=1)
    return by_joint[0][:, joint_of], by_joint[1][:, joint_of]


def _complex(values: Array, first: int) -> Array:
    """Two neighbouring columns [R, ...] as x + iy, [R]."""
    return np.asarray(values[:, first] + 1j * values[:, first + 1])
