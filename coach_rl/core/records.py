"""The records that pass between the rooms: records of arrays, with one row per environment.

Downwards goes a `Directive`, upwards an `EnvResponse`; a level passes its agent the `Outcome` of
each decision. The agent and its memory keep a `Transition` of it, with the `ActionInfo` of the
choice.

`rows` is always an index array: the environments that the other arrays belong to, in
the same order. numpy up to the memory or the network's door, torch behind it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any, Self

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
FloatArray = npt.NDArray[np.floating[Any]]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Observation = dict[str, Array]
"""Arrays by observation key, each [rows, ...]."""
Action = Array | dict[str, Array]
"""[rows, ...], or one such array per part of a Dict action space."""


HIDDEN_STATE = "hidden_state"
"""Hidden state of recurrent networks, float32 [R, H], among filtered observations and extras."""
ACTION_MASK = "action_mask"
"""The usual observation key of an environment's action masks."""
ALLOWED = "allowed_actions"
"""Mask of allowed actions, bool [R, M], among filtered observations: M is the number of actions,
of several choices their sum."""


class End(IntFlag):
    """The reasons why a (sub-)episode ended; several may apply at once."""

    GOAL = 1
    """This level's own goal was reached."""
    HORIZON = 2
    """This level used up its decisions, or the time of its goal was up without it."""
    OUTER = 4
    """A goal of a level above was reached."""
    TERMINATED = 8
    """The real episode reached a terminal state."""
    TRUNCATED = 16
    """The real episode was cut off, e.g. by its time limit."""
    OPTION = 32
    """The option ended by a condition of its own, or the level's agent ended its option or goal."""
    FAILURE = 64
    """The level below missed its goal, and this level stops where that happens."""
    EXTENSION = 128
    """A reason that an extension brings, and names."""


def missed(end: npt.NDArray[np.uint8]) -> BoolArray:
    """Return where a level missed its goal by its own fault, [R] bool.

    It used up its horizon or stopped on a failure below it, and met no other end besides.

    Args:
        end: Bits of `End` that the level reported, [R].
    """
    by_own_fault: BoolArray = (end != 0) & (end & _NO_FAULT == 0)
    return by_own_fault


_NO_FAULT = np.uint8(0xFF & ~(End.HORIZON | End.FAILURE))


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A failure of the simulator of one row."""

    cause: str
    """One of the causes of `environments/faults.py`, e.g. `raised`."""
    row: int
    message: str
    """The failure, in one line."""


@dataclass(frozen=True, kw_only=True)
class Directive:
    """The command to an environment, row by row.

    For a simulator `action` is its action. For a level it is the goal for its rows, in the
    level's goal space.
    """

    action: Action
    """[rows, ...]."""
    tested: BoolArray | None = None
    """[rows]; true where the decision is tested: no exploration anywhere below. None: nowhere."""
    outer_goals: tuple[Array, ...] = ()
    """Goals of the levels above the receiver, top first, each [rows, G]."""

    def rows_of(self, index: Array) -> "Directive":
        """The directive of some of its rows: their places in it, or a mask [R]."""
        action = self.action
        return Directive(
            action=take(action, index) if isinstance(action, dict) else action[index],
            tested=None if self.tested is None else self.tested[index],
            outer_goals=tuple(goal[index] for goal in self.outer_goals),
        )


@dataclass(frozen=True, kw_only=True)
class EnvResponse:
    """The answer of an environment for the rows that have finished their directive.

    After `reset` both observations are equal and `duration` is 0. Simulators answer with
    `EnvResponse.reset(...)` and `EnvResponse.step(...)`.
    """

    rows: IntArray
    """[R]; may be empty."""
    observation: Observation
    """[R, ...] each: the state the directive led to, the true last one when the episode ended."""
    first_observation: Observation
    """[R, ...] each: what the row acts on next; differs only where the real episode ended."""
    reward: FloatArray
    """[R] raw reward, summed over `duration` simulator steps."""
    terminated: BoolArray
    """[R] the real episode reached a terminal state."""
    truncated: BoolArray
    """[R] the real episode was cut off."""
    end: npt.NDArray[np.uint8]
    """[R] bits of `End`; 0 where the (sub-)episode continues."""
    duration: IntArray
    """[R] simulator steps this answer covers; 0 where the simulator failed before there was one:
    the directive had no result, and `observation` is the one it was given for."""
    info: dict[str, Array] = field(default_factory=dict)
    """[R, ...] each: whatever the environment reports in addition; a level's answer has those of
    the last step, and sums and maxima of `GraphParameters.decision_infos`."""
    faults: tuple[Fault, ...] = ()
    """Failures of simulators, which have been restarted; only a row named here has duration 0."""

    def __len__(self) -> int:
        return len(self.rows)

    @classmethod
    def reset(
        cls,
        observation: Observation,
        *,
        num_envs: int,
        info: dict[str, Array] | None = None,
        faults: tuple[Fault, ...] = (),
    ) -> "EnvResponse":
        """The answer of all rows to a reset."""
        return cls(
            rows=np.arange(num_envs),
            observation=observation,
            first_observation=dict(observation),
            reward=np.zeros(num_envs, np.float64),
            terminated=np.zeros(num_envs, np.bool_),
            truncated=np.zeros(num_envs, np.bool_),
            end=np.zeros(num_envs, np.uint8),
            duration=np.zeros(num_envs, np.int64),
            info=info or {},
            faults=faults,
        )

    @classmethod
    def step(
        cls,
        rows: IntArray,
        *,
        observation: Observation,
        first_observation: Observation,
        reward: FloatArray,
        terminated: BoolArray,
        truncated: BoolArray,
        info: dict[str, Array],
        faults: tuple[Fault, ...] = (),
        lost: BoolArray | None = None,
    ) -> "EnvResponse":
        """A simulator's answer to one step of these rows; works out `end` and `duration`.

        Rows that are `lost`, [R], had a simulator that failed before the step was done; None:
        nowhere. The other arguments are the fields.
        """
        end = np.zeros(len(rows), np.uint8)
        if np.count_nonzero(terminated) or np.count_nonzero(truncated):  # rarely
            end[terminated] |= np.uint8(End.TERMINATED)
            end[truncated] |= np.uint8(End.TRUNCATED)
        duration: IntArray = np.empty(len(rows), np.int64)
        duration.fill(1)  # `np.ones` takes several times as long
        if lost is not None:
            duration[lost] = 0
        return cls(
            rows=rows,
            observation=observation,
            first_observation=first_observation,
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            end=end,
            duration=duration,
            info=info,
            faults=faults,
        )

    def rows_of(self, index: IntArray | BoolArray | slice) -> "EnvResponse":
        """The answer of some rows only; `index` holds their places in this answer."""
        return EnvResponse(
            rows=self.rows[index],
            observation=take(self.observation, index),
            first_observation=take(self.first_observation, index),
            reward=self.reward[index],
            terminated=self.terminated[index],
            truncated=self.truncated[index],
            end=self.end[index],
            duration=self.duration[index],
            info=take(self.info, index),
        )

    @property
    def lost(self) -> BoolArray:
        """[R] the row's directive had no result, because the simulator failed."""
        lost: BoolArray = self.duration == 0
        return lost if self.faults else np.zeros(len(self.rows), np.bool_)

    def empty_like(self) -> "EnvResponse":
        """An answer of no rows, with the same keys, shapes and dtypes."""
        return self.rows_of(slice(0, 0))


NO_ANSWER = EnvResponse.reset({}, num_envs=0)
"""The answer of a level in which no sub-episode has ended."""


@dataclass(frozen=True, kw_only=True)
class ActionRequest:
    """The rows of one level that wait for a decision of its agent."""

    rows: IntArray
    """[R]."""
    observation: Observation
    """[R, ...] each, with this level's goal in it."""
    starts: BoolArray
    """[R] the first decision of a (sub-)episode."""
    episode_start: BoolArray
    """[R] the first decision of an episode, to the agent: of a real one, or after others have acted
    in its place (then `starts` is true as well)."""
    greedy: BoolArray
    """[R] the decision is to be made without exploration."""

    def seen_as(self, observation: Observation, greedy: BoolArray) -> Self:
        """The request with other observations, [R, ...] each, and other greedy rows, [R].

        `dataclasses.replace` takes twice as long, at every decision.
        """
        changed = object.__new__(type(self))
        vars(changed).update(vars(self), observation=observation, greedy=greedy)
        return changed

    def rows_of(self, index: Array) -> Self:
        """The request of some of its rows: their places in it, or a mask [R]."""
        part = object.__new__(type(self))
        for name, each in vars(self).items():
            vars(part)[name] = take(each, index) if name == "observation" else each[index]
        return part


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a finished decision at one level; that level's agent learns from it."""

    rows: IntArray
    """[R]."""
    observation: Observation
    """[R, ...] each: the true state after the decision, with this level's goal in it."""
    reward: FloatArray
    """[R] this level's goal reward, or the raw reward at a level without a goal of its own."""
    terminated: BoolArray
    """[R] the (sub-)episode ended and its value is final."""
    truncated: BoolArray
    """[R] the (sub-)episode was cut off; bootstrap from `observation`."""
    duration: IntArray
    """[R] simulator steps the decision took."""
    end: npt.NDArray[np.uint8]
    """[R] bits of `End` at this level."""
    below: npt.NDArray[np.uint8]
    """[R] bits of `End` that the level below reported for this decision."""
    tested: BoolArray
    """[R] the decision was tested: no level below explored while carrying it out."""
    next_goal: Observation = field(default_factory=dict)
    """[R, ...] each: where the environment has moved a goal and the sub-episode continues, what
    this level receives from its next decision on; `observation` still shows the goal of this one.
    Empty where nothing has moved."""
    info: Mapping[str, Array] = field(default_factory=dict)
    """[R, ...] each: what the environment reported in addition. Of a decision of several steps it
    is the last step's, the sum or the maximum, by `GraphParameters.decision_infos`."""

    def rows_of(self, index: Array) -> "Outcome":
        """The outcome of some of its rows: their places in it, or a mask [R]."""
        return Outcome(
            rows=self.rows[index],
            observation=take(self.observation, index),
            reward=self.reward[index],
            terminated=self.terminated[index],
            truncated=self.truncated[index],
            duration=self.duration[index],
            end=self.end[index],
            below=self.below[index],
            tested=self.tested[index],
            next_goal=take(self.next_goal, index),
            info=take(dict(self.info), index),
        )


def take(observation: Observation, index: Array | slice) -> Observation:
    """The rows `index` of every array of an observation: numbers, a mask, or a slice."""
    if isinstance(index, slice):
        return {key: values[index] for key, values in observation.items()}
    if index.dtype == np.bool_:
        (index,) = index.nonzero()
    taken = {}
    for key, values in observation.items():  # a comprehension is a call more
        taken[key] = values.take(index, axis=0)
    return taken


@dataclass(frozen=True, kw_only=True)
class ActionInfo:
    """An agent's choice, and data to be stored with it."""

    action: Action
    """[R, ...] in the agent's own action space, before its OutputFilter."""
    extras: dict[str, Array] = field(default_factory=dict)
    """[R, ...] each, e.g. `log_prob`; `hidden_state` is the state the choice leads to."""


@dataclass(frozen=True, kw_only=True)
class Transition:
    """One decision and its outcome, as a memory keeps it; each array [R, ...]."""

    rows: IntArray
    observation: Observation
    action: Action
    reward: FloatArray
    next_observation: Observation
    terminated: BoolArray
    truncated: BoolArray
    duration: IntArray
    end: npt.NDArray[np.uint8] | None = None
    """Bits of `End` at the agent's own level; None: not known, as in data from elsewhere."""
    below: npt.NDArray[np.uint8] | None = None
    """Bits of `End` that the level below reported; None: not known."""
    tested: BoolArray | None = None
    """The decision was tested; None: none was."""
    follows: BoolArray | None = None
    """True where it begins at the end of the row's previous transition: in the same episode, under
    the same goal, with no decision left out between them. None: not known, taken as true within an
    episode."""
    extras: dict[str, Array] = field(default_factory=dict)
    """The extras of the ActionInfo; `hidden_state` is the state it was chosen in."""

    @property
    def follows_or_all(self) -> BoolArray:
        """`follows`, true everywhere where it is not known."""
        return np.ones(len(self.rows), np.bool_) if self.follows is None else self.follows
