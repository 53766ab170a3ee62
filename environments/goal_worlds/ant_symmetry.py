"""The symmetry of the ant: its four legs are alike, as are its left and its right."""

from typing import NamedTuple

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.goal_worlds.ant_body import LEGS, MOTORS, POSITIONS, VELOCITIES

_KEY, _POSE = "observation", "pose"
_ANT = POSITIONS + VELOCITIES
_JOINTS = slice(7, POSITIONS), slice(POSITIONS + 6, _ANT)
"""Elements of the joints' angles, and of their velocities; legs in turn, hip and ankle of each."""
_QUARTER_TURNS = np.array([1, 1j, -1, -1j])
_ACTIONS = 2 * len(LEGS)
_UPSIDE_DOWN = 1e-12
"""Squared length of a twist that tells no heading."""


@parameter_class
class AntSymmetry:
    """Shows an ant its way-point ahead and to the left of it, wherever that is.

    What is ahead is decided by which legs are called the front ones, and what is left by a mirror.
    The ant then no longer sees where the world's axes point. Its goals are poses (`shows_pose`),
    shown as what is left to go.
    """

    mirrored: bool = True
    """If False, way-points are only ahead: all legs are alike, but left and right are not."""
    shows_axes: bool = False
    """If True, the z of the quaternion, otherwise 0, is the sine of four times the heading: it says
    which way to turn for a stance (`shows_stance`)."""

    def build(self, context: AgentContext) -> "AntTurns":
        """The symmetry of what an ant's agent sees, or one line on why it has none."""
        goal = context.place.goal
        if goal is None or goal.key != _POSE or goal.observed != "relative":
            got = "no goals" if goal is None else f"key='{goal.key}', observed='{goal.observed}'"
            raise ConfigurationError(
                f"AntSymmetry needs GoalSpace(key='{_POSE}', observed='relative'), goals of an ant "
                f"in a world with shows_pose=True, got {got}; set symmetry=None there"
            )
        return AntTurns(self, context.spaces)


class _Views(NamedTuple):
    """The ways in which R ants are looked at."""

    quarters: IntArray
    """[R] quarter turns from an ant's own front to what is called its front."""
    mirrored: BoolArray
    """[R] whether left and right are swapped."""
    front: Array
    """[R] complex: where what is called the front points, from the ant's own axes."""
    heading: Array
    """[R] complex: where the ant's own x axis points."""
    twist: Array
    """[R] complex: the unit quaternion of that turn, w + iz."""

    @property
    def number(self) -> IntArray:
        """[R] row of the tables of joints and motors."""
        return self.quarters + len(LEGS) * self.mirrored


class AntTurns:
    """Turns and mirrors what ants see, and their actions back.

    With q = (w, x, y, z) an orientation, the heading is that of its twist about the vertical,
    (w, 0, 0, z); the tilt is what remains, and its z is 0. Complex numbers are vectors x + iy.

    Args:
        params: What is shown.
        level_spaces: Of the ant's level.

    Raises:
        SpaceError: It is another body.
    """

    def __init__(self, params: AntSymmetry, level_spaces: EnvironmentSpaces) -> None:
        observed, actions = level_spaces.observation, level_spaces.action
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
        self._params, self.description = params, str(params)
        self._joints, self._joint_signs = _joint_tables()
        self._motors, self._motor_signs = _motor_tables()
        goals = observed[GOAL_KEY]
        assert isinstance(goals, spaces.Box)
        high = goals.high.copy()
        high[:2] = np.hypot(*goals.high[:2])
        others = {key: space for key, space in observed.items() if key != GOAL_KEY}
        self.observation_space = spaces.Dict({**others, GOAL_KEY: spaces.Box(-high, high)})

    def canonical(self, observation: Observation) -> Observation:
        """The observations that stand for these: each ant's way-point lies ahead, and to the left.

        Elements of the observation behind the ant's own, and of goals behind x and y, stay.
        """
        seen, goal = observation[_KEY], observation[GOAL_KEY]
        views = self._views(observation)
        mirrored, to_front = views.mirrored, views.front.conj()
        sign = np.where(mirrored, -1.0, 1.0)
        from_world = views.heading.conj() * to_front
        tilt = _complex(seen, 4) * views.twist.conj() * to_front
        velocity = _complex(seen, 15) * from_world
        rates = _complex(seen, 18) * to_front  # about the ant's own axes
        way = _complex(goal, 0) * from_world
        shown, left = seen.copy(), goal.copy()
        shown[:, 3] = np.hypot(seen[:, 3], seen[:, 6])
        shown[:, 4], shown[:, 5] = sign * tilt.real, tilt.imag  # a mirror turns axes the other way
        shown[:, 6] = sign * (views.heading**4).imag if self._params.shows_axes else 0.0
        shown[:, 15], shown[:, 16] = velocity.real, sign * velocity.imag
        shown[:, 18], shown[:, 19] = sign * rates.real, rates.imag
        shown[:, 20] *= sign
        left[:, 0], left[:, 1] = way.real, sign * way.imag
        joints, signs = self._joints[views.number], self._joint_signs[views.number]
        for part in _JOINTS:
            shown[:, part] = np.take_along_axis(seen[:, part], joints, axis=1) * signs
        return {**observation, _KEY: shown, GOAL_KEY: left}

    def restored(self, action: Action, observation: Observation) -> Action:
        """The actions [R, 8] for the motors of ants that see this."""
        assert not isinstance(action, dict), "a Box of motors"
        number = self._views(observation).number
        turned: FloatArray = np.take_along_axis(action, self._motors[number], axis=1)
        return (turned * self._motor_signs[number]).astype(action.dtype, copy=False)

    def _views(self, observation: Observation) -> _Views:
        twist = observation[_KEY][:, 3] + 1j * observation[_KEY][:, 6]
        twist = np.where(np.abs(twist) ** 2 > _UPSIDE_DOWN, twist, 1.0)
        twist /= np.abs(twist)
        heading = twist**2
        way = _complex(observation[GOAL_KEY], 0) * heading.conj()
        along_x = np.abs(way.real) >= np.abs(way.imag)
        quarters = np.where(along_x, np.where(way.real >= 0, 0, 2), np.where(way.imag > 0, 1, 3))
        front = _QUARTER_TURNS[quarters]
        mirrored = (way * front.conj()).imag < 0
        return _Views(quarters, mirrored & self._params.mirrored, front, heading, twist)


def _joint_tables() -> tuple[IntArray, FloatArray]:
    """For each view the joint that stands in for each joint, and its sign, [8, 8] each.

    A mirror swaps the legs on the left and on the right, and turns hips the other way.
    """
    joints, signs = [], []
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
    """For each view the action that drives each motor, and its sign, [8, 8] each."""
    joints, signs = _joint_tables()
    joint_of = np.array([2 * (leg - 1) + part for leg in MOTORS for part in (0, 1)])
    motor_of = np.argsort(joint_of)
    stands_in = np.argsort(joints, axis=1)  # the joint that each joint stands in for
    by_joint = motor_of[stands_in], np.take_along_axis(signs, stands_in, axis=1)
    return by_joint[0][:, joint_of], by_joint[1][:, joint_of]


def _complex(values: Array, first: int) -> Array:
    """Two neighbouring columns [R, ...] as x + iy, [R]."""
    return np.asarray(values[:, first] + 1j * values[:, first + 1])
