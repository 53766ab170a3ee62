"""Goals of a level: their space, the condition of reaching them, and their rewards."""

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import RunError, SpaceError, require, warn
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.runtime import Runtime

GOAL_KEY = "desired_goal"
"""The observation key under which a level's own goal stands."""
TIME_KEY = "time_left"
"""The observation key under which goals that end by themselves show what is left of their time."""


class Verdict(NamedTuple):
    """The judgement of goals on the states that decisions led to."""

    difference: FloatArray
    """[R, G] what is achieved minus the goal."""
    reward: FloatArray
    """[R] float64."""
    reached: BoolArray
    """[R]."""
    is_final: BoolArray
    """[R] the goal ends the sub-episode: where it is reached or, if it has a time, where that is
    up."""


class GoalStep(NamedTuple):
    """R decisions of a level with goals, as its reward function sees them."""

    before: Observation
    """Observations that they were made on, [R, ...] each, unfiltered."""
    after: Observation
    """Observations that they led to, the true last ones where an episode ended."""
    goal: FloatArray
    """[R, G] absolute goals, with the time left behind them where goals have one."""
    action: Action
    """[R, ...] as the level below, or the simulator, was sent them."""
    duration: IntArray
    """[R] simulator steps that they took."""
    reward: FloatArray
    """[R] the environment's, summed over these steps."""
    info: Mapping[str, Array]
    """[R, ...] each: what the environment reported in addition: of the last step, or the sum or the
    maximum of the decision's steps, by `GraphParameters.decision_infos`."""


class ViewOfAbove(Protocol):
    """The level above, for the rewards of the level below: what it expects, and would choose."""

    def values(self, observation: Observation, goal: FloatArray | None = None) -> FloatArray:
        """The values [R] that its critic, the lower one, expects of setting goals.

        Args:
            observation: Of a `GoalStep`, [R, ...] each.
            goal: Absolute goals of the level below, [R, G]; None: those that it would set.
        """
        ...

    def goals(self, observation: Observation) -> FloatArray:
        """The goals [R, G] that it would set without exploring."""
        ...


GoalReward = Callable[[GoalStep], FloatArray] | Callable[[GoalStep, ViewOfAbove], FloatArray]
"""Function from decisions, and a view of the level above if it takes two arguments, to rewards [R].
It has no memory, and stands at the top level of a file."""


@dataclass(frozen=True, kw_only=True)
class GoalContext:
    """Context known only when a level's goals are built."""

    level: str
    """The level's name."""
    observation: spaces.Dict
    """The simulator's observation space."""
    runtime: Runtime
    """The run's settings and services, with the seed of these goals."""


_RelabellingT = TypeVar("_RelabellingT")
_RelabellingT_co = TypeVar("_RelabellingT_co", covariant=True)


class RelabellingRequest(Protocol[_RelabellingT_co]):
    """A memory's question to its goals: what relabels the transitions that it keeps."""

    def plain(self) -> _RelabellingT_co | None:
        """The relabelling of goals that need nothing more; None: they stay."""
        ...


class KeptForGoals(NamedTuple):
    """The part of goals in an agent: its memory keeps something for them, and it may train them."""

    extras: tuple[str, ...] = ()
    """Extras of the agent's actions."""
    parts: tuple[Any, ...] = ()
    """Parts of the memory, `MemoryPartParameters`."""
    goals: Any = None
    """The level's goals if they learn, which the agent saves; None: they don't."""

    def and_above(self, other: "KeptForGoals") -> "KeptForGoals":
        """These, and what goals that the agent sets for the level below need."""
        return self._replace(extras=self.extras + other.extras, parts=self.parts + other.parts)


@parameter_class
class GoalSpace:
    """A level's goals: the level is rewarded by them, the level above acts in them.

    Goals are compared in raw coordinates. The achieved goal is a selection of the elements of one
    observation key; `reached_within` is the distance at which it is reached.

    A subclass may override `achieved` (another goal of an observation), `judge` (another reward or
    end, from achieved goals alone, as hindsight needs it) and `build` (an object that may learn,
    see `LearnedGoals`).
    """

    standard: ClassVar[bool] = True
    """True in a class whose methods levels and memories know. It isn't inherited: a subclass has
    methods of its own, which are checked."""
    learns: ClassVar[bool] = False
    """True if goals may judge otherwise while a run trains than they did when it was stored."""
    action_changes: ClassVar[bool] = False
    """True if actions of the level above may stand for other goals than when they were stored, or
    goals achieved then are others now."""
    achieved_changes: ClassVar[bool] = False
    """True if goals that were achieved may be others now."""
    uses_before: ClassVar[bool] = False
    """True if rewards of `judge` depend on what was achieved before the decision, too; ends may
    not."""
    ages: ClassVar[bool] = False
    """True if goals change as simulator steps pass, see `age`: they end by themselves then, and
    nothing is bootstrapped behind that."""

    low: NonEmpty[tuple[float, ...]]
    """Lower bound of each goal element; goals from above are clipped to the bounds."""
    high: tuple[float, ...]
    """Upper bound of each goal element."""
    threshold: tuple[NonNegative[float], ...]
    """Largest difference in each element at which the goal counts as reached."""
    key: str = "observation"
    """The observation key that holds the achieved goal."""
    elements: tuple[int, ...] | None = None
    """The elements of the (flattened) key that make up the goal; None takes all of them."""
    angles: tuple[int, ...] = ()
    """Goal elements that are angles in radians: their differences are taken around the circle, and
    one out of bounds stands for the same angle within them."""
    relative: bool = False
    """If True, actions of the level above are displacements. Goals are stored as absolute positions
    either way, so that the remaining displacement changes with the state
    (Nachum et al. 2018, section 3.1)."""
    reach: tuple[Positive[float], ...] | None = None
    """Largest distance of a relative goal in each element, as seen from the level above; None: from
    any bound to the other.
    """
    observed: Literal["absolute", "relative"] = "absolute"
    """absolute: the level's agent sees the goal's position. relative: the remaining
    displacement."""
    reward: Literal["sparse", "dense"] | GoalReward = "sparse"
    """sparse: 0 where the goal is reached, else -1. dense: minus the Euclidean distance. A function
    of each decision (`GoalStep`): it alone is learned from and logged. Hindsight, which needs the
    reward of other goals, refuses it."""
    reached_within: Literal["elements", "ball"] = "elements"
    """elements: reached where every element is within its threshold. ball: where the differences,
    each divided by its threshold, have a Euclidean norm of 1 or less; equal thresholds are then the
    radius of a ball, as in the Fetch tasks."""

    def __init_subclass__(cls) -> None:
        """Let methods of a subclass's own, which any level or memory may call, be checked."""
        super().__init_subclass__()
        for name in _PARTS:
            owner = next(kind for kind in cls.__mro__ if name in vars(kind))
            method = vars(owner)[name]  # it may be a staticmethod
            if not is_standard(owner) and _IS_CHECKED not in vars(method):
                setattr(cls, name, _checked(name, method))

    def __post_init__(self) -> None:
        sizes = {len(self.low), len(self.high), len(self.threshold)}
        require(
            len(sizes) == 1,
            f"GoalSpace needs as many low, high and threshold elements, got {len(self.low)}, "
            f"{len(self.high)} and {len(self.threshold)}",
        )
        require(
            self.elements is None or len(self.elements) == len(self.low),
            f"GoalSpace.elements names {len(self.elements or ())} elements, "
            f"its bounds have {len(self.low)}",
        )
        require(
            all(low < high for low, high in zip(self.low, self.high, strict=True)),
            f"GoalSpace.low must lie below high in every element, got {self.low} and {self.high}",
        )
        require(
            all(0 <= element < len(self.low) for element in self.angles),
            f"GoalSpace.angles names elements of the goal, 0 to {len(self.low) - 1}, "
            f"got {self.angles}",
        )
        require(
            self.reach is None or (self.relative and len(self.reach) == len(self.low)),
            "GoalSpace.reach is the largest displacement of each element of relative goals; "
            f"got {self.reach} for {len(self.low)} elements, relative={self.relative}",
        )
        require(
            self.reached_within == "elements" or all(threshold > 0 for threshold in self.threshold),
            "GoalSpace.threshold must be more than 0 in every element of a ball, "
            f"got {self.threshold}",
        )
        require(
            not callable(self.reward) or takes(self.reward, 1) or takes(self.reward, 2),
            f"{type(self).__name__}.reward must be 'sparse', 'dense' or a function of a GoalStep, "
            "alone or with a view of the level above, got "
            f"{name_of(self.reward)}",
        )

    def build(self, context: GoalContext) -> "GoalSpace":  # noqa: ARG002 - some are built
        """The goals that the levels of a graph share, in training and in evaluations."""
        return self

    @property
    def space(self) -> spaces.Box:
        """The action space of the level above; differences if the goals are relative."""
        if self.relative:
            return spaces.Box(-self._farthest, self._farthest, dtype=np.float32)
        return self._box

    @property
    def shown(self) -> dict[str, spaces.Box]:
        """The spaces under which the level's agent sees its goal, by observation key."""
        if self.observed == "relative":
            box: spaces.Box = spaces.Box(-self._widest, self._widest, dtype=np.float32)
        else:
            box = self._box
        return {GOAL_KEY: box}

    @property
    def size(self) -> int:
        """Elements of a goal, G."""
        return len(self.low)

    @property
    def sent_size(self) -> int:
        """Elements of what the level above sends: the goal's, and what else it needs."""
        return self.size

    def age(self, goals: FloatArray, rows: Any, steps: IntArray) -> None:
        """Change goals in place, as simulator steps pass; called where goals have `ages`.

        Args:
            goals: [N, ...] as they are kept.
            rows: Index of the R rows in which steps passed.
            steps: [R].
        """

    def returns(self, horizon: int | None) -> tuple[float, float] | None:
        """The lowest and highest return of a sub-episode; None: not known.

        Args:
            horizon: Its decisions at most; None: any number.
        """
        if self.reward != "sparse" or horizon is None:
            return None
        return -float(horizon), 0.0

    def relabelling(self, request: RelabellingRequest[_RelabellingT]) -> _RelabellingT | None:
        """The relabelling of the transitions that a memory of the level's agent keeps.

        Args:
            request: The memory's.
        """
        return request.plain()

    def attach(self, agent: Any) -> KeptForGoals:  # noqa: ARG002 - some follow what it learns
        """The part of the goals in the level's agent; themselves, if they have a state to save."""
        return KeptForGoals(goals=self if hasattr(self, "state_dict") else None)

    def attach_above(self, agent: Any) -> KeptForGoals:  # noqa: ARG002 - some restate its actions
        """Those that the memory of the agent one level up keeps for the goals that it sets."""
        return KeptForGoals()

    def obstacle(self, agent: object) -> str | None:  # noqa: ARG002 - for subclasses
        """The reason why an agent cannot be that of the level; None if it can."""
        return None

    def obstacle_above(self, agent: object) -> str | None:  # noqa: ARG002 - for subclasses
        """The reason why an agent cannot be that of the level above; None if it can."""
        return None

    def descriptions(self) -> list[str]:
        """Phrases for people that describe the goals, together."""
        elements = self.elements or range(self.size)
        bounds = zip(elements, self.low, self.high, self.threshold, strict=True)
        parts = [
            f"{self.key}[{element}] in [{low:.4g}, {high:.4g}] within {threshold:.4g}"
            + (" (an angle)" if position in self.angles else "")
            for position, (element, low, high, threshold) in enumerate(bounds)
        ]
        if self.relative:
            reach = self.space.high
            parts.append(
                "relative to the state, by at most " + ", ".join(f"{each:.4g}" for each in reach)
            )
        if self.reached_within == "ball":
            parts.append("all together as a ball")
        if self.reward == "dense":
            parts.append("rewarded by distance")
        elif callable(self.reward):
            parts.append(f"rewarded by {self.reward_named.partition('=')[2]}")
        return parts

    @property
    def reward_named(self) -> str:
        """The setting of rewards, for messages: `GoalSpace.reward='dense'`."""
        name = getattr(self.reward, "__qualname__", None)
        return f"GoalSpace.reward={name or repr(self.reward)}"

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless the achieved goal can be read off such observations."""
        ignored = self.overridden("difference", "reached")
        if ignored and not self.overridden("difference_of", "judge"):
            raise SpaceError(
                f"{type(self).__name__} overrides {ignored[0]}(goal, observation), which rewards "
                "and ends do not follow; override difference_of(goal, achieved), or judge(goal, "
                "achieved)"
            )
        if self.key not in observation_space.spaces:
            raise SpaceError(
                f"the goal's key '{self.key}' is not observed; "
                f"observed: {sorted(observation_space.spaces)}"
            )
        size = int(np.prod(observation_space[self.key].shape or (1,)))
        if self.elements is None and size != len(self.low):
            raise SpaceError(
                f"the goal has {len(self.low)} elements, observation '{self.key}' has {size}; "
                "name them with GoalSpace.elements"
            )
        if self.elements and not 0 <= min(self.elements) <= max(self.elements) < size:
            raise SpaceError(
                f"GoalSpace.elements {self.elements} do not all lie in observation '{self.key}' "
                f"of {size} elements"
            )

    def check_given(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless such observations hold the goal that the environment wants."""
        wanted = observation_space.spaces.get(GOAL_KEY)
        if wanted is None:
            raise SpaceError(
                f"the goals come from the environment's '{GOAL_KEY}', which is not observed; "
                f"observed: {sorted(observation_space.spaces)}"
            )
        size = int(np.prod(wanted.shape or (1,)))
        if size != self.size:
            raise SpaceError(
                f"the environment's '{GOAL_KEY}' has {size} elements, the goal space {self.size}"
            )

    def given_by(self, observation: Observation) -> FloatArray:
        """The goals [R, G] that the environment gives, angles out of bounds within them."""
        wanted = observation[GOAL_KEY]
        return self.turned(wanted.reshape(len(wanted), self.size))

    def achieved(self, observation: Observation) -> FloatArray:
        """The goal that each row's observation stands for, [R, G]; not to be written to."""
        values = observation[self.key]
        if values.ndim != 2:
            values = values.reshape(len(values), math.prod(values.shape[1:]))  # rows may be 0
        return values if self.elements is None else values[:, self._columns]

    def target(self, action: Array, observation: Observation) -> FloatArray:
        """Absolute goals that actions of the level above set, within the bounds, float32 [R, G]."""
        goal = self.turned(self.achieved(observation) + action if self.relative else action)
        low, high = self.bounds
        return np.minimum(np.maximum(goal, low), high).astype(np.float32, copy=False)

    def asked_by(self, goal: FloatArray, observation: Observation) -> FloatArray:
        """Actions [R, G] with which the level above sets these goals at these observations.

        Clipped to its action space, float32.
        """
        action = -self.difference(goal, observation) if self.relative else self.turned(goal)
        low, high = self.bounds
        if self.relative:
            low, high = -self._farthest, self._farthest
        return np.minimum(np.maximum(action, low), high).astype(np.float32, copy=False)

    def asked_in_hindsight(
        self,
        observation: Observation,
        next_observation: Observation,
        duration: IntArray,  # noqa: ARG002 - counts where goals have a time
    ) -> FloatArray:
        """Actions [R, G] with which the level above would have set what was achieved as the goal.

        Args:
            observation: Observations of the level above, [R, ...] each.
            next_observation: Those after the decisions, [R, ...] each.
            duration: Simulator steps that this took, [R].
        """
        return self.asked_by(self.achieved(next_observation), observation)

    def turned(self, goal: FloatArray) -> FloatArray:
        """The same goals [..., G], angles out of bounds within them; see `angles.turned_into`."""
        return turned_into(goal, self.angles, self.bounds) if self.angles else goal

    def show(self, goal: FloatArray, observation: Observation) -> Observation:
        """Return the goals as the level's agent sees them, by observation key, float32 [R, G]."""
        if self.observed == "relative":
            return {GOAL_KEY: self.shown_from(goal, self.achieved(observation))}
        return {GOAL_KEY: goal}

    def shown_from(self, goal: FloatArray, achieved: FloatArray) -> FloatArray:
        """Goals [R, G] as the level's agent sees them where these are achieved, [R, G]."""
        if self.observed == "relative":
            return -self.difference_of(goal, achieved).astype(np.float32)
        return goal

    def seen(self, shown: FloatArray, observation: Observation) -> FloatArray:
        """The goals [R, G] that `show` shows like this in these observations."""
        if self.observed == "relative":
            return self.turned(self.achieved(observation) + shown)
        return shown

    def difference(self, goal: FloatArray, observation: Observation) -> FloatArray:
        """Return achieved minus goal, angles within half a turn, [R, G]."""
        return self.difference_of(goal, self.achieved(observation))

    def difference_of(self, goal: FloatArray, achieved: FloatArray) -> FloatArray:
        """Return achieved goals [R, G] minus wanted ones, angles within half a turn, [R, G]."""
        difference = achieved - goal
        return wrapped(difference, self.angles) if self.angles else difference

    def reached_at(self, difference: FloatArray) -> BoolArray:
        """Return which rows have a `difference` [R, G] that is small enough, [R] bool."""
        if self.reached_within == "ball":
            return np.asarray(((difference / self._thresholds) ** 2).sum(axis=1) <= 1.0)
        near = np.abs(difference) <= self._thresholds
        reached: BoolArray = near[:, 0]
        for element in range(1, self.size):  # faster than `all` over so few columns
            reached = reached & near[:, element]
        return reached

    def reached(self, goal: FloatArray, observation: Observation) -> BoolArray:
        """Return which rows have reached the goal, [R] bool."""
        return self.verdict(goal, observation).reached

    def is_over(self, goal: FloatArray, observation: Observation) -> BoolArray:
        """Return which rows have nothing left to do for the goal, [R] bool."""
        return self.verdict(goal, observation).is_final

    def verdict(
        self, goal: FloatArray, observation: Observation, before: Observation | None = None
    ) -> Verdict:
        """Judge the states of R rows by their goals.

        Args:
            goal: [R, G].
            observation: What decisions led to, [R, ...] each.
            before: What they were made on; needed for rewards if the goals have `uses_before`.
        """
        achieved = self.achieved(observation)
        if not self.uses_before:
            return self.judge(goal, achieved)
        return self.judge(goal, achieved, achieved if before is None else self.achieved(before))

    def judge(
        self,
        goal: FloatArray,
        achieved: FloatArray,
        before: FloatArray | None = None,  # noqa: ARG002 - for subclasses with `uses_before`
    ) -> Verdict:
        """Judge achieved goals [R, G] by the wanted ones [R, G]; hindsight judges by this alone.

        Rewards by a function are NaN here: it needs more than achieved goals.

        Args:
            goal: [R, G].
            achieved: After the decisions, [R, G].
            before: Achieved before them, [R, G]; given where the goals have `uses_before`.
        """
        difference = self.difference_of(goal, achieved)
        reached = self.reached_at(difference)
        if callable(self.reward):
            return Verdict(difference, np.full(len(reached), np.nan), reached, reached)
        reward = -length_of(difference) if self.reward == "dense" else reached - 1.0
        return Verdict(difference, reward, reached, reached)

    def overridden(self, *names: str) -> list[str]:
        """The methods, of these names, that a subclass overrides which isn't `standard`."""
        standard = next(filter(is_standard, type(self).__mro__))
        return [each for each in names if getattr(type(self), each) is not getattr(standard, each)]

    @cached_property
    def _columns(self) -> slice | list[int]:
        """The elements, as a slice where they are neighbours: that takes a view, not a copy."""
        elements = self.elements or ()
        first, last = elements[0], elements[-1]
        if elements == tuple(range(first, last + 1)):
            return slice(first, last + 1)
        return list(elements)

    @property
    def _box(self) -> spaces.Box:
        return spaces.Box(*self.bounds, dtype=np.float32)

    @cached_property
    def _thresholds(self) -> FloatArray:
        return np.array(self.threshold)

    @cached_property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound of each goal element, float32 [G] each."""
        with np.errstate(over="ignore"):  # beyond float32: without bounds
            return np.array(self.low, np.float32), np.array(self.high, np.float32)

    @cached_property
    def _farthest(self) -> FloatArray:
        return self._widest if self.reach is None else np.array(self.reach, np.float32)

    @cached_property
    def _widest(self) -> FloatArray:
        low, high = self.bounds
        with np.errstate(over="ignore"):
            return high - low


def check_judging(space: GoalSpace, observation_space: spaces.Dict) -> None:
    """Raise `SpaceError` unless goals with methods of their own judge each row; tried on two rows.

    Args:
        space: The goals.
        observation_space: Where `check` has found what they read.
    """
    if not space.overridden("achieved", "judge", "verdict", "difference_of", "reached_at"):
        return
    seen = {
        k: np.zeros((2, *(each.shape or ())), each.dtype) for k, each in observation_space.items()
    }
    goal = np.zeros((2, space.sent_size), np.float32)
    try:
        with np.errstate(all="ignore"):
            verdict = space.verdict(goal, seen, seen)
        _check_rows(space, "judge", verdict, len(goal))
    except KeyError as error:
        raise SpaceError(
            f"{type(space).__name__}.achieved reads the observation key {error}, which it does not "
            f"get; the environment shows {', '.join(sorted(seen))}, and goals that learn get what "
            "their property `keys` lists"
        ) from error
    except RunError as error:
        raise SpaceError(str(error)) from error


def is_standard(kind: type) -> bool:
    """True if a class of goals is `standard` itself, not by its base."""
    return bool(vars(kind).get("standard"))


_PARTS = {
    "achieved": {"": "fiu"},
    "judge": {"difference": "f", "reward": "f", "reached": "b", "is_final": "b"},
}
"""The kinds of what methods return, whole or by its parts."""


_IS_CHECKED = "is_checked"
"""The attribute of a method that checks what it returns."""


def _checked(name: str, method: Any) -> Callable[..., Any]:
    """A method `achieved` or `judge` of a subclass, which raises `RunError` for wrong rows."""

    @wraps(method)
    def checked(space: GoalSpace, *given: Any, **named: Any) -> Any:
        found = method.__get__(space, type(space))(*given, **named)
        first = (*given, *named.values())[0]
        rows = next(iter(first.values())) if isinstance(first, Mapping) else first
        _check_rows(space, name, found, len(rows))
        return found

    vars(checked)[_IS_CHECKED] = True
    return checked


def _check_rows(space: GoalSpace, method: str, found: object, rows: int) -> None:
    """Raise `RunError` unless a method's result has arrays of the right kind for so many rows."""
    for part, kind in _PARTS[method].items():
        values: Any = getattr(found, part, None) if part else found
        if not isinstance(values, np.ndarray):
            values = np.asarray(values, object)  # lists, too, on which later steps would fail
        shape = (rows, space.size) if part in ("", "difference") else (rows,)
        if values.shape != shape or values.dtype.kind not in kind:
            returned = f"{part} as {values.dtype}" if part else f"{values.dtype}"
            needed = f"a Verdict with {'bool' if kind == 'b' else 'float'}" if part else "an array"
            raise RunError(
                f"{type(space).__name__}.{method} returns {returned} of shape {values.shape} for "
                f"{rows} rows; needed is {needed} of shape {shape}"
            )


def is_built(space: GoalSpace) -> bool:
    """Return whether a goal space is the description of one that its level builds."""
    return type(space).build is not GoalSpace.build


class GoalRounding:
    """A check that warns once where float32 rounds goals too much for their thresholds.

    That is where its numbers are farther apart than a tenth of one, or than a whole one for whole
    numbers, which may be exact.

    Args:
        space: The goals; what lies nearest to 0 within their bounds is compared at once, as wide
            bounds mean little. None: there are none.
        within_bounds: Whether goals are clipped to the bounds: small ones need no further checks.
    """

    def __init__(self, space: GoalSpace | None, *, within_bounds: bool = False) -> None:
        self._space = space
        if space is not None:
            threshold = np.array(space.threshold)
            self._threshold = np.where(threshold > 0, threshold, np.inf)
            # Below 2**e float32 numbers are at most 2**(e - 24) apart.
            self._fine = np.exp2(np.floor(np.log2(self._threshold / 10)) + 24)
            self.check(np.clip([np.zeros(space.size)], space.low, space.high))
            if within_bounds and (np.abs([space.low, space.high]) < self._fine).all():
                self._space = None

    def check(self, goals: FloatArray) -> None:
        """Compare goals [R, G]."""
        if self._space is None:
            return
        space = self._space
        goals = goals[:, : len(self._fine)]
        if not np.count_nonzero(is_rough := np.abs(goals) >= self._fine):
            return
        apart = np.spacing(np.abs(goals).astype(np.float32))
        is_rough &= (goals != np.rint(goals)) | (apart > self._threshold)
        for row, element in np.argwhere(is_rough)[:1]:
            self._space = None
            warn(
                f"float32 numbers are {apart[row, element]:g} apart near the goal "
                f"{goals[row, element]:g} of '{space.key}', and the threshold of element {element} "
                f"is {space.threshold[element]:g}, so other goals count as reached; subtract an "
                "origin in the environment or a wrapper, so that goals are near 0 (the run "
                "continues)",
            )


def takes(function: Callable[..., object], count: int) -> bool:
    """Return whether a function can be called with so many arguments."""
    try:
        inspect.signature(function).bind(*[None] * count)
    except (TypeError, ValueError):
        return False
    return True


def name_of(function: object) -> str:
    """The name of a function of the user's, for messages."""
    return str(getattr(function, "__qualname__", function))


def length_of(difference: FloatArray) -> FloatArray:
    """Euclidean norm of each row, float64 [R]."""
    difference = difference.astype(np.float64, copy=False)
    return np.asarray(np.sqrt(np.einsum("rg,rg->r", difference, difference)))


def wrapped(values: FloatArray, elements: tuple[int, ...]) -> FloatArray:
    """The values [..., G], these elements brought within half a turn of 0 in place."""
    if elements:
        turned = values[..., elements]
        values[..., elements] = turned - 2 * np.pi * np.round(turned / (2 * np.pi))
    return values


def turned_into(
    values: FloatArray, elements: tuple[int, ...], bounds: tuple[FloatArray, FloatArray]
) -> FloatArray:
    """Values [..., G] with these elements within half a turn of the middle of their bounds.

    Elements that are within the bounds [G], and the others, stay as they are to the bit.
    """
    if not elements:
        return values
    chosen = list(elements)
    low, high = (bound[chosen] for bound in bounds)
    angles = values[..., chosen]
    turns = np.round((angles - (low + high) / 2) / (2 * np.pi))
    is_within = (low <= angles) & (angles <= high)
    values = values.copy()
    values[..., chosen] = np.where(is_within, angles, angles - 2 * np.pi * turns)
    return values
