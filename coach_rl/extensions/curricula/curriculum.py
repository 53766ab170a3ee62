"""Goals and horizons that follow a curriculum: schedules, or steps by a level's success rate.

A level with a `Curriculum` among its `changes` gets goals of the same class as its goal space,
whose thresholds, bounds and reach are those of the moment. They keep nothing themselves: a factor
is a function of the clock, which is saved, and sent to workers and evaluations, with its success
schedules. What a replay memory has stored is judged by the thresholds as they are when it is drawn;
stored actions of the level above are restated within today's reach and bounds.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np

from coach_rl.core.agents import PacedAgent
from coach_rl.core.clock import Clock, Phase, Schedule
from coach_rl.core.errors import ConfigurationError, ParameterError, RunError
from coach_rl.core.goals import GoalContext, GoalSpace, KeptForGoals, is_built
from coach_rl.core.levels import LevelChange, LevelDescription, LevelT
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import FloatArray, IntArray, Observation
from coach_rl.extensions.learned_goals.learned_goals import KeptGoals, ScaledGoals
from coach_rl.extensions.level_phases.success_schedule import SuccessSchedule, SuccessStages
from coach_rl.extensions.scripts.scripted_agent import ActingOnly
from coach_rl.graph_managers.level_timing import LevelTiming

if TYPE_CHECKING:
    from coach_rl.agents.off_policy_agent import OffPolicyAgent

CURRICULUM = ("threshold", "reach", "bounds", "horizon")
"""The settings that a curriculum may schedule."""


@parameter_class
class Curriculum(LevelChange):
    """Schedules of a level's goals and horizon: each is a factor, with which a setting counts."""

    threshold: Schedule | SuccessSchedule | None = None
    """Factor of the thresholds of the level's goals, above 0. None: always 1."""
    reach: Schedule | SuccessSchedule | None = None
    """Factor, from 0 to 1, of how far relative goals may be away. Actions of the level above are
    between -1 and 1 then, and stand for parts of that. None: always 1."""
    bounds: Schedule | SuccessSchedule | None = None
    """Factor, from 0 to 1, of the distances of the goals' bounds from `center`; actions as for
    `reach`. None: always 1."""
    horizon: Schedule | SuccessSchedule | None = None
    """Factor, from 0 to 1, of the level's horizon, which is one decision at least. None: always
    1."""
    center: tuple[float, ...] | None = None
    """The goal around which bounds change. None: the middle between low and high."""
    evaluations: Literal["final", "current"] = "final"
    """Thresholds by which evaluations judge. final: those of the goal space, so that success means
    the same throughout. current: those of training. Reach, bounds and horizon are a part of how the
    levels act, and are always the current ones."""

    timing: ClassVar[type[LevelTiming]] = SuccessStages

    def __post_init__(self) -> None:
        for setting, schedule in self.scheduled.items():
            if isinstance(schedule, SuccessSchedule):
                for value in schedule.values:
                    _require_factor(setting, value, ParameterError)

    @property
    def scheduled(self) -> dict[str, Schedule | SuccessSchedule]:
        """The schedules by the setting's name."""
        every = {name: getattr(self, name) for name in CURRICULUM}
        return {name: schedule for name, schedule in every.items() if schedule is not None}

    def factor(self, setting: str, level: str, clock: Clock) -> float:
        """The factor of a setting of a level now.

        Raises:
            RunError: It is out of range.
        """
        schedule = self.scheduled.get(setting)
        if schedule is None:
            return 1.0
        if isinstance(schedule, SuccessSchedule):
            stage = clock.stages.get(f"{level}/{setting}", 0)
            value = schedule.values[min(stage, len(schedule.values) - 1)]
        else:
            value = schedule(clock)
        _require_factor(setting, value, RunError)
        return value

    def values(self, level: str, clock: Clock) -> dict[str, float]:
        found = {name: self.factor(name, level, clock) for name in self.scheduled}
        if "threshold" in found and clock.phase is Phase.TEST and self.evaluations == "final":
            found["threshold"] = 1.0
        return {f"{name}_factor": value for name, value in found.items()}

    def problems(
        self, level: LevelDescription, levels: Sequence[LevelDescription]
    ) -> Iterator[str]:
        space = level.goal_space
        scheduled = self.scheduled
        what = f"level '{level.name}' has a curriculum of {', '.join(scheduled) or 'nothing'}"
        if sum(isinstance(each, Curriculum) for each in level.changes) > 1:
            yield f"level '{level.name}' has several curricula; schedule all in one"
        if not scheduled:
            yield f"{what}; schedule its {', '.join(CURRICULUM)}, or leave it out"
        if self.horizon is not None and level.horizon is None:
            yield f"{what}, and no horizon; give it the longest as horizon"
        if not scheduled.keys() - {"horizon"}:
            return
        if not isinstance(space, GoalSpace) or space.ages or is_built(space):
            kind = "no goals" if space is None else f"{type(space).__name__} as goal_space"
            yield f"{what}, and {kind}; give it a GoalSpace without times, that learns nothing"
            return
        actions = sorted(scheduled.keys() & {"reach", "bounds"})
        if actions and level is levels[0]:
            yield (
                f"{what}, and the environment chooses its goals; leave out {' and '.join(actions)}"
            )
        if self.reach is not None and not space.relative:
            yield f"{what}, and absolute goals; schedule bounds, or set GoalSpace(relative=True)"
        if self.center is not None and len(self.center) != space.size:
            yield f"{what} around {self.center}; give as many elements as the goals have"

    def for_chains(self, *, is_top: bool) -> Iterator[str]:
        for field in sorted({"bounds", "reach"} & self.scheduled.keys() if not is_top else ()):
            yield (
                f"changes its {field} by schedule, and so the actions of the level above, which is "
                "for levels"
            )

    def build(self, level: LevelT, context: GoalContext, clock: Clock) -> LevelT:
        space = level.goal_space
        changes = dict[str, Any]()
        if self.horizon is not None:
            changes["horizon_of"] = ScheduledHorizon(self, level, clock)
        if isinstance(space, GoalSpace) and self.scheduled.keys() - {"horizon"}:
            scales = self.reach is not None or self.bounds is not None
            own: tuple[type, ...] = (
                (ScheduledBounds, ScheduledGoals) if scales else (ScheduledGoals,)
            )
            bases = (*own, type(space))
            # Messages name the user's class.
            kind: Any = type(type(space).__name__, bases, {"action_changes": scales})
            changes["goal_space"] = kind.__new__(kind).follow(space, self, context, clock)
        return replace(level, **changes)

    def in_evaluations(self, level: LevelT) -> LevelT:
        space = level.goal_space
        if self.evaluations == "current" or not isinstance(space, ScheduledGoals):
            return level
        return replace(level, goal_space=space.with_final_thresholds())


class ScheduledGoals(KeptGoals):
    """Goals by a curriculum; the class of the goal space is a base of the object's class, too."""

    def follow(
        self, space: GoalSpace, curriculum: Curriculum, context: GoalContext, clock: Clock
    ) -> Self:
        """These goals, which are those of a goal space under a curriculum."""
        vars(self).update({each.name: getattr(space, each.name) for each in fields(space)})
        self._space = space
        self._clock = clock
        self._level = context.level
        self._curriculum = curriculum
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

    def overridden(self, *names: str) -> list[str]:
        """The methods that the goal space's class overrides; not what the curriculum does."""
        return self._space.overridden(*names)

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
    def threshold(self) -> tuple[float, ...]:
        """Largest differences at which a goal counts as reached now."""
        factor = 1.0 if self._is_final else self._factor("threshold")
        return tuple(factor * each for each in self._space.threshold)

    def obstacle(self, agent: object) -> str | None:
        if not self.learns or _keeps_nothing(agent):
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

    def attach(self, agent: "OffPolicyAgent") -> KeptForGoals:
        self._kept_by = agent
        return super().attach(agent)

    @property
    def _thresholds(self) -> FloatArray:
        return np.array(self.threshold)

    @property
    def bounds(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper bound of each goal element now, float32 [G] each."""
        low, high = (np.array(each, np.float32) for each in (self.low, self.high))
        if self._curriculum.bounds is None:
            return low, high
        factor = np.float32(self._factor("bounds"))
        center = self._center
        return center + factor * (low - center), center + factor * (high - center)

    @property
    def _farthest(self) -> FloatArray:
        if self.reach is None:
            low, high = self.bounds
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

    curriculum: Curriculum
    level: LevelDescription
    clock: Clock

    def __call__(self, observation: Observation, goal: FloatArray, uniform: FloatArray) -> IntArray:
        """The horizons of sub-episodes that begin now, [R]."""
        level = self.level
        if level.horizon_of is None:
            return np.full(len(goal), self.longest, np.int64)
        return np.minimum(level.horizon_of(observation, goal, uniform), self.longest)

    @property
    def longest(self) -> int:
        """The longest horizon now."""
        assert self.level.horizon is not None
        factor = self.curriculum.factor("horizon", self.level.name, self.clock)
        return max(1, round(factor * self.level.horizon))


class ScheduledBounds(ScaledGoals):
    """The same where reach or bounds are scheduled."""

    _kept_above: "OffPolicyAgent | None" = None

    def attach_above(self, agent: "OffPolicyAgent") -> KeptForGoals:
        self._kept_above = agent
        return super().attach_above(agent)

    def obstacle_above(self, agent: object) -> str | None:
        if agent is self._kept_above or _keeps_nothing(agent):
            return None
        return (
            f"{type(agent).__name__} stores actions, which a curriculum of reach or bounds below "
            "makes stale, in no memory that restates them; use DDPG, TD3, SAC or PPO"
        )


def _keeps_nothing(agent: object) -> bool:
    """Return whether an agent learns from nothing that it did earlier."""
    is_fresh = isinstance(agent, PacedAgent) and agent.is_on_policy
    return is_fresh or isinstance(agent, ActingOnly)


def _require_factor(setting: str, value: float, kind: type[ConfigurationError | RunError]) -> None:
    """Raise an error of a kind unless a curriculum's factor of a setting is in range."""
    limit = math.inf if setting == "threshold" else 1
    if not 0 < value <= limit:
        raise kind(
            f"a curriculum's factor of {setting} must be above 0"
            f"{'' if limit == math.inf else ', and 1 at most'}, got {value:g}; change its schedule"
        )
