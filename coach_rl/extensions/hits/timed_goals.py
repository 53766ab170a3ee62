"""Goals with a time until which a level must be there (HiTS)."""

from dataclasses import fields
from typing import Annotated, Any, ClassVar, Self, TypeVar, cast

import numpy as np
from annotated_types import Interval
from gymnasium import spaces

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.goals import TIME_KEY, GoalSpace, RelabellingRequest, Verdict, length_of
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.extensions.hits.timed_hindsight import timed

_RelabellingT = TypeVar("_RelabellingT")


@parameter_class
class TimedGoalSpace(GoalSpace):
    """A level's goals, each with the number of simulator steps after which it is to hold.

    Timed sub-goals of HiTS (Gürtler, Büchler, Martius 2021, arXiv:2112.03100): the level above sets
    a place and a time, so that it can time what the levels below do to a world that moves by
    itself.

    The level above acts in one element more than a goal has: the time, rounded up to whole steps.
    The level's agent sees the time left under `time_left`, as a part of the longest. Its
    sub-episode ends when the time is up: `GOAL` where the goal holds then, `HORIZON` where not, and
    both are terminal. Being there earlier counts for nothing. Sparse rewards are 1 where the goal
    holds when the time is up and 0 otherwise; dense ones are minus the distance at that time, and 0
    before.

    Wherever a goal is an array [R, G + 1], its last element is the time left in steps.
    """

    standard: ClassVar[bool] = True
    ages: ClassVar[bool] = True

    longest: Annotated[int, Interval(ge=1, le=1_000_000)]
    """Largest time that the level above may set, in simulator steps; the smallest is 1."""

    @classmethod
    def of(cls, goals: GoalSpace, *, longest: int) -> Self:
        """The same goals with a time.

        Args:
            goals: Goals without.
            longest: Largest time in simulator steps.

        Raises:
            ParameterError: The goals are of another subclass, whose methods would be lost.
        """
        require(
            issubclass(cls, type(goals)),
            f"{cls.__name__}.of({type(goals).__name__}(...)) would lose the methods of "
            f"{type(goals).__name__}; make a class of both, class Timed({type(goals).__name__}, "
            f"{cls.__name__})",
        )
        return cls(
            **{each.name: getattr(goals, each.name) for each in fields(goals)}, longest=longest
        )

    @property
    def space(self) -> spaces.Box:
        """The action space of the level above: the goal and its time."""
        box = super().space
        return spaces.Box(
            np.append(box.low, np.float32(0)), np.append(box.high, np.float32(self.longest))
        )

    @property
    def shown(self) -> dict[str, spaces.Box]:
        """The spaces of the goal and of the time left, by observation key."""
        return {**super().shown, TIME_KEY: spaces.Box(0, 1, (1,), np.float32)}

    @property
    def sent_size(self) -> int:
        """Elements of a goal and its time, G + 1."""
        return self.size + 1

    def age(self, goals: FloatArray, rows: Any, steps: IntArray) -> None:
        goals[rows, -1] -= steps

    def returns(self, horizon: int | None) -> tuple[float, float] | None:  # noqa: ARG002 - as GoalSpace
        return (0.0, 1.0) if self.reward == "sparse" else None

    def relabelling(self, request: RelabellingRequest[_RelabellingT]) -> _RelabellingT | None:
        plain: Any = request.plain()
        relabelling: Any = None if plain is None else timed(plain)
        return cast("_RelabellingT | None", relabelling)

    def descriptions(self) -> list[str]:
        return [*super().descriptions(), f"each at a time of 1 to {self.longest} steps"]

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless goals can be read off, or where the time's key is taken."""
        super().check(observation_space)
        if TIME_KEY in observation_space.spaces:
            raise SpaceError(
                f"the environment shows a '{TIME_KEY}' of its own, under which the time left for a "
                "level's goal would stand; rename it"
            )

    def check_given(self, observation_space: spaces.Dict) -> None:  # noqa: ARG002 - as GoalSpace
        """Raise `SpaceError`: an environment gives its goals no times."""
        raise SpaceError(
            "the goals of the top level come from the environment, which gives them no time; use a "
            "GoalSpace there, and a TimedGoalSpace below it"
        )

    def target(self, action: Array, observation: Observation) -> FloatArray:
        """Goals that an action sets, clipped to the bounds, and their times, float32 [R, G + 1]."""
        goal = super().target(action[:, :-1], observation)
        time = np.minimum(np.maximum(np.ceil(action[:, -1:]), 1), self.longest)
        return np.concatenate([goal, time], axis=1, dtype=np.float32)

    def asked_in_hindsight(
        self, observation: Observation, next_observation: Observation, duration: IntArray
    ) -> FloatArray:
        """Actions [R, G + 1] that would have set what was achieved, and its time, as the goal.

        All times in (duration - 1, duration] stand for the same; this is the middle.
        """
        goal = super().asked_in_hindsight(observation, next_observation, duration)
        time = np.minimum(duration, self.longest)[:, None] - 0.5
        return np.concatenate([goal, time], axis=1, dtype=np.float32)

    def show(self, goal: FloatArray, observation: Observation) -> Observation:
        """The goals [R, G] and the time left [R, 1], as parts of the longest."""
        return {**super().show(goal[:, :-1], observation), TIME_KEY: goal[:, -1:] / self.longest}

    def steps_left(self, observation: Observation) -> FloatArray:
        """The time left in steps, float32 [R], from an observation of the level's agent."""
        shown = observation[TIME_KEY].reshape(-1)
        return cast("FloatArray", np.rint(shown * self.longest).astype(np.float32))

    def difference_of(self, goal: FloatArray, achieved: FloatArray) -> FloatArray:
        """Return achieved minus goal, [R, G], whether or not the goals' times stand behind them."""
        return super().difference_of(goal[:, : self.size], achieved)

    def is_over(self, goal: FloatArray, observation: Observation) -> BoolArray:  # noqa: ARG002 - as GoalSpace
        """Return for which rows the time is up, [R] bool."""
        return goal[:, -1] <= 0

    def judge(
        self,
        goal: FloatArray,
        achieved: FloatArray,
        before: FloatArray | None = None,  # noqa: ARG002 - as GoalSpace
    ) -> Verdict:
        """Judge achieved goals [R, G] by the wanted ones [R, G + 1], where the time is up."""
        is_up: BoolArray = goal[:, -1] <= 0
        difference = self.difference_of(goal, achieved)
        reached = is_up & self.reached_at(difference)
        if callable(self.reward):
            return Verdict(difference, np.full(len(reached), np.nan), reached, is_up)
        if self.reward == "dense":
            return Verdict(difference, -length_of(difference) * is_up, reached, is_up)
        return Verdict(difference, reached.astype(np.float64), reached, is_up)
