"""Goals and horizons that follow a curriculum: schedules, or steps by a level's success rate.

A level with a `Curriculum` gets goals of the same class as its goal space, whose thresholds, bounds
and reach are those of the moment. They keep nothing themselves: a factor is a function of the
clock, which is saved, and sent to workers and evaluations, with its success schedules. What a
replay memory has stored is judged by the thresholds as they are when it is drawn; stored actions of
the level above are restated within today's reach and bounds.
"""

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np

from coach_rl.agents.learned_goals import KeptGoals, ScaledGoals
from coach_rl.agents.scripted_agent import ActingOnly
from coach_rl.core.agents import PacedAgent
from coach_rl.core.clock import Clock
from coach_rl.core.goals import GoalContext, GoalSpace
from coach_rl.core.levels import Curriculum, LevelDescription
from coach_rl.core.records import FloatArray, IntArray, Observation

if TYPE_CHECKING:
    from coach_rl.agents.off_policy_agent import OffPolicyAgent

LevelT = TypeVar("LevelT", bound=LevelDescription)


def with_curriculum(level: LevelT, context: GoalContext, clock: Clock) -> LevelT:
    """The level, with goals and horizons that follow its curriculum.

    Args:
        level: With a curriculum.
        context: What its goals are built with.
        clock: Of the stack that trains.
    """
    curriculum, space = level.curriculum, level.goal_space
    assert curriculum is not None, "levels without a curriculum stay as they are"
    changes: dict[str, Any] = {}
    if curriculum.horizon is not None:
        changes["horizon_of"] = ScheduledHorizon(level, clock)
    if isinstance(space, GoalSpace) and curriculum.scheduled.keys() - {"horizon"}:
        scales = curriculum.reach is not None or curriculum.bounds is not None
        bases = (*([ScaledGoals] if scales else []), ScheduledGoals, type(space))
        kind = type(f"Scheduled{type(space).__name__}", bases, {"action_changes": scales})
        changes["goal_space"] = kind.__new__(kind).follow(space, level, context, clock)
    return replace(level, **changes)


def in_evaluations(level: LevelT) -> LevelT:
    """The level as evaluations judge it."""
    space, curriculum = level.goal_space, level.curriculum
    is_final = curriculum is not None and curriculum.evaluations == "final"
    if not is_final or not isinstance(space, ScheduledGoals):
        return level
    return replace(level, goal_space=space.with_final_thresholds())


class ScheduledGoals(KeptGoals):
    """Goals by a curriculum; the class of the goal space is a base of the object's class, too."""

    def follow(
        self, space: GoalSpace, level: LevelDescription, context: GoalContext, clock: Clock
    ) -> Self:
        """These goals, which are those of a goal space under the curriculum of a level."""
        assert level.curriculum is not None
        vars(self).update({each.name: getattr(space, each.name) for each in fields(space)})
        self._space, self._clock, self._level = space, clock, level.name
        self._curriculum: Curriculum = level.curriculum
        self._observed = tuple(context.observation.spaces)
        self._is_final = False
        self._kept_by: OffPolicyAgent | None = None
        return self

    def with_final_thresholds(self) -> Self:
        """The same goals, judged by the thresholds of the goal space."""
        other = type(self).__new__(type(self))
        vars(other).update({**vars(self), "_is_final": True})
        return other

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    @property
    def learns(self) -> bool:  # type: ignore[override]  # of a class elsewhere
        """True if thresholds are scheduled, so that what is stored is judged by others."""
        return self._curriculum.threshold is not None

    @property
    def version(self) -> int:  # type: ignore[override]  # an attribute where goals learn
        """Environment steps so far: what was stored before is judged once more."""
        return self._clock.environment_steps

    @property
    def keys(self) -> tuple[str, ...]:
        """The observation keys that the achieved goal is computed from; all for an `achieved`."""
        return self._observed if self.overridden("achieved") else (self.key,)

    @property
    def threshold(self) -> tuple[float, ...]:  # type: ignore[override]  # a field elsewhere
        """Largest differences at which a goal counts as reached now."""
        factor = 1.0 if self._is_final else self._factor("threshold")
        return tuple(factor * each for each in self._space.threshold)

    def obstacle(self, agent: object) -> str | None:
        """The reason why an agent cannot be that of the level; None if it can."""
        is_fresh = isinstance(agent, PacedAgent) and agent.is_on_policy
        if is_fresh or isinstance(agent, ActingOnly):
            return None
        if self._kept_by is not agent:
            return (
                f"{type(agent).__name__} stores rewards, which a curriculum of thresholds makes "
                "stale, in no memory that judges them once more; use DDPG, TD3, SAC, DQN or PPO"
            )
        if callable(self.reward):
            return (
                f"a memory judges what it has stored by today's thresholds, which "
                f"{self.reward_named} does not allow; override GoalSpace.judge(goal, achieved), or "
                "leave out the curriculum's threshold"
            )
        return None

    def attach(self, agent: "OffPolicyAgent") -> tuple[str, ...]:
        self._kept_by = agent
        return super().attach(agent)

    @property
    def _thresholds(self) -> FloatArray:  # type: ignore[override]  # cached elsewhere
        return np.array(self.threshold)

    @property
    def _bounds(self) -> tuple[FloatArray, FloatArray]:  # type: ignore[override]  # cached elsewhere
        low, high = (np.array(each, np.float32) for each in (self.low, self.high))
        if self._curriculum.bounds is None:
            return low, high
        factor, center = np.float32(self._factor("bounds")), self._center
        return center + factor * (low - center), center + factor * (high - center)

    @property
    def _farthest(self) -> FloatArray:  # type: ignore[override]  # cached elsewhere
        if self.reach is None:
            low, high = self._bounds
            farthest = high - low
        else:
            farthest = np.array(self.reach, np.float32)
        return np.asarray(np.float32(self._factor("reach")) * farthest, np.float32)

    @cached_property
    def _center(self) -> FloatArray:
        middle = (np.array(self.low) + np.array(self.high)) / 2
        center = self._curriculum.center
        return np.asarray(middle if center is None else center, np.float32)

    def _factor(self, setting: str) -> float:
        return self._curriculum.factor(setting, self._level, self._clock)


@dataclass(frozen=True)
class ScheduledHorizon:
    """The horizons of a level's sub-episodes, by its curriculum and its own `horizon_of`."""

    level: LevelDescription
    clock: Clock

    def __call__(self, observation: Observation, goal: FloatArray, uniform: FloatArray) -> IntArray:
        """The horizons of sub-episodes that begin now, [R]."""
        level, curriculum = self.level, self.level.curriculum
        assert curriculum is not None
        assert level.horizon is not None
        factor = curriculum.factor("horizon", level.name, self.clock)
        longest = max(1, round(factor * level.horizon))
        if level.horizon_of is None:
            return np.full(len(goal), longest, np.int64)
        return np.minimum(level.horizon_of(observation, goal, uniform), longest)
