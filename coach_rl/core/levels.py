"""Properties of a level that don't depend on its agent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Protocol, TypeVar

import numpy as np
from annotated_types import Interval
from gymnasium import spaces

from coach_rl.core.clock import Clock, Schedule
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, TIME_KEY, GoalContext, GoalSpace, name_of, takes
from coach_rl.core.level_parts import Counts, LevelPart, RowsOfLevel
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive, UnitInterval
from coach_rl.core.records import Array, End, FloatArray, IntArray, Observation
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps

HorizonFunction = Callable[[Observation, FloatArray, FloatArray], IntArray]
"""Function from observations at the start of sub-episodes [R, ...] each, their goals or options
[R, G], and uniform numbers [R] in [0, 1), to horizons [R]. It stands at the top level of a file."""
LevelSpace = GoalSpace | OptionSpace
"""The spaces of what a level can receive."""


class NothingReceived:
    """The space of what a level receives that works on the task of the environment alone."""

    ages = False
    size = 0
    sent_size = 0
    shown: ClassVar[Mapping[str, spaces.Space[Any]]] = MappingProxyType({})

    def check(self, observation_space: spaces.Dict) -> None:
        """Any observations will do."""

    check_given = check

    def target(self, action: Array, observation: Observation) -> FloatArray:  # noqa: ARG002
        """Nothing, float32 [R, 0]: to be selected is all that the level is sent."""
        (first, *_) = observation.values()
        return np.zeros((len(first), 0), np.float32)

    def show(self, goal: FloatArray, observation: Observation) -> Observation:  # noqa: ARG002
        """Nothing, by observation key."""
        return {}


NOTHING_RECEIVED = NothingReceived()
DIRECTIVE_KEYS = (GOAL_KEY, TIME_KEY, OPTION_KEY)
"""The observation keys of a level's goal or option, which changes with every sub-episode."""


_SCHEDULE = ("frozen_from", "frozen_until", "warmup", "turn")


@parameter_class
class SuccessRate:
    """The moment of training at which a level reaches enough of its goals for the first time."""

    rate: Annotated[float, Interval(gt=0, le=1)]
    """Least share of its last sub-episodes that reach their goal."""
    over: Positive[int] = 100
    """Number of these sub-episodes."""
    level: str | None = None
    """The level's name; None: the level that the moment is given to."""

    def __str__(self) -> str:
        whose = "" if self.level is None else f" of level '{self.level}'"
        return f"a success rate{whose} of {self.rate:g} over {self.over:,} sub-episodes"


Moment = EnvironmentSteps | EnvironmentEpisodes | SuccessRate
"""A moment of a run. Steps and episodes are counted from its beginning, heat-up included."""


@parameter_class
class SuccessSchedule:
    """A value in steps: the next one where a level often reaches its goals, else the one before."""

    values: NonEmpty[tuple[float, ...]]
    """The values, the first at the beginning."""
    advance: UnitInterval = 0.8
    """Least share of the last sub-episodes that reach their goal at which the next value holds."""
    retreat: UnitInterval = 0.3
    """Share below which the value before holds again; 0: never."""
    over: Positive[int] = 100
    """Number of these sub-episodes; they are counted from the last change of the level on."""
    level: str | None = None
    """The level's name; None: the level that changes."""

    def __post_init__(self) -> None:
        require(
            self.retreat < self.advance,
            f"SuccessSchedule.retreat must lie below advance, got {self.retreat} and "
            f"{self.advance}",
        )


class LevelChange(Protocol):
    """A frozen description of how settings of a level change while a run trains."""

    @property
    def scheduled(self) -> Mapping[str, Schedule | SuccessSchedule]:
        """The schedules by the setting's name."""
        ...

    def problems(
        self, level: "LevelDescription", levels: "Sequence[LevelDescription]"
    ) -> Iterator[str]:
        """The rules that it breaks at one of the levels of a graph, top first."""
        ...

    def build(self, level: "LevelT", context: GoalContext, clock: Clock) -> "LevelT":
        """The level, whose goals are built, with settings that follow the clock of training."""
        ...

    def in_evaluations(self, level: "LevelT") -> "LevelT":
        """The level that `build` returned, as evaluations judge it."""
        ...

    def values(self, level: str, clock: Clock) -> dict[str, float]:
        """The values that hold now in a stack, by name, for the log of a level of this name."""
        ...


@dataclass(frozen=True, kw_only=True)
class LevelPartContext:
    """Context of the building of a part of a level."""

    level: "LevelDescription"
    """Description of the level."""
    rows: RowsOfLevel
    """The position of each of its rows; read only."""
    counts: Counts
    """Sums for `LevelPart.metrics`, saved with the level's; a part adds its own names."""
    clock: Clock
    """Phase and counters of the stack; read only."""
    num_envs: int
    """N."""
    seed: int
    """Seed of random streams, one for each row and name: see `core.row_noise`."""


class LevelPartParameters:
    """A frozen description of a part of a level; a subclass is a `parameter_class`."""

    ended_by: ClassVar[Mapping[str, End]] = MappingProxyType({})
    """Reasons, beside those of every level, for which it ends sub-episodes, by their names: the log
    has `level/<name>_share`."""

    @property
    def acts_in_evaluations(self) -> bool:
        """True if evaluations, and policies that are exported, may differ without it."""
        return True

    def settings(self) -> Iterator[str]:
        """Lines for people on what it does, for `coach describe`."""
        yield from ()

    def problems(
        self,
        level: "LevelDescription",  # noqa: ARG002 - for subclasses
        below: "Sequence[LevelDescription]",  # noqa: ARG002
    ) -> Iterator[str | ConfigurationError]:
        """The rules that it breaks at a level.

        Args:
            level: Whose part it is.
            below: The levels directly below that.
        """
        yield from ()

    def rewards(self) -> Mapping[str, float]:
        """Rewards of its own that decisions may get in place of the level's, by the setting."""
        return {}

    def build(self, context: LevelPartContext) -> LevelPart:
        """The part; ConfigurationError where it does not fit its level."""
        raise NotImplementedError


@parameter_class
class LevelDescription:
    """The facts a level of a stack needs to know about itself."""

    name: str = "main"
    """The level's name in logs."""
    goal_space: LevelSpace | None = None
    """The action space of the level above. At the top, and only there, it may be None; a GoalSpace
    there means that the level's goals are the environment's desired goals, and that they define its
    reward.
    """
    horizon: Positive[int] | None = None
    """Decisions after which a sub-episode ends; None for no limit. At the top the agent's episode
    is cut there, and the simulator continues."""
    horizon_of: HorizonFunction | None = None
    """Function that sets the horizon of each sub-episode, from 1 to `horizon`, by its first state
    and its goal, or by chance. None: all have `horizon`."""
    real_end_is_terminal: bool = False
    """If True, a real termination cuts the bootstrap also where the level has goals of its own.
    Then dying early is the best policy under rewards of -1 and 0.
    """
    goal_is_terminal: bool = True
    """If True, reaching the level's goal cuts the bootstrap. If False, it ends the sub-episode and
    no more: values continue as if the goal had still to be held, so that states which the body
    cannot hold have lower values.
    """
    frozen: bool = False
    """If True, the agent only acts, and neither explores nor learns."""
    frozen_from: Moment | None = None
    """Moment at which the agent is frozen; None: the beginning of the run where it has a
    `frozen_until`, else never."""
    frozen_until: Moment | None = None
    """Moment at which the agent, frozen before, learns again, or begins to; None: never."""
    warmup: Moment | None = None
    """Moment until which the level learns on random goals: the levels above it act at random, as in
    heat-up, and do not learn. None: no warm-up."""
    turn: Positive[EnvironmentSteps] | None = None
    """Environment steps for which the agent learns while others with a turn are frozen, before it
    is their turn; the lowest level begins. None: it takes no turns."""
    changes: tuple[LevelChange, ...] = ()
    """Changes of its settings while the run trains, the first one first; empty: none."""
    parts: tuple[LevelPartParameters, ...] = ()
    """Parts with further work, such as `StopOnFailure()`, in the order in which they do it."""

    def __post_init__(self) -> None:
        if self.frozen:
            scheduled = [name for name in _SCHEDULE if getattr(self, name) is not None]
            require(
                not scheduled,
                f"level '{self.name}' is frozen for the whole run, so {', '.join(scheduled)} would "
                "have no effect; leave out frozen=True, or the rest",
            )
        require(
            self.horizon_of is None or self.horizon is not None,
            f"level '{self.name}' has horizon_of, which sets horizons up to its horizon, and has "
            "none; give it the longest as horizon",
        )
        require(
            self.horizon_of is None or takes(self.horizon_of, 3),
            f"level '{self.name}': horizon_of must be a function of observation, goal and uniform "
            f"numbers, got {name_of(self.horizon_of)}",
        )

    @property
    def may_freeze(self) -> bool:
        """True if the agent is frozen for a part of the run."""
        return (self.frozen_from, self.frozen_until, self.turn) != (None, None, None)

    def may_end_by(self, reason: End) -> bool:
        """True if a part of the level may end sub-episodes for a reason."""
        return any(reason in part.ended_by.values() for part in self.parts)

    @property
    def ends_frozen(self) -> bool:
        """True if the agent does not learn at the end of the run, however long it is."""
        return self.frozen or (self.frozen_from is not None and self.frozen_until is None)


def received_by(level: LevelDescription) -> LevelSpace | NothingReceived:
    """The space of what a level receives."""
    return NOTHING_RECEIVED if level.goal_space is None else level.goal_space


LevelT = TypeVar("LevelT", bound=LevelDescription)
