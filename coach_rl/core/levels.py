"""Properties of a level that don't depend on its agent."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, TIME_KEY, GoalContext, GoalSpace, name_of, takes
from coach_rl.core.level_parts import Counts, LevelPart, RowsOfLevel
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, End, FloatArray, IntArray, Observation

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


class LevelChange:
    """A change of a level while a run trains, described; a subclass is a `parameter_class`."""

    timing: ClassVar[type[Any] | None] = None
    """Makes what follows training for all such changes of a graph: a class of
    `graph_managers.level_timing.LevelTiming`. None: the clock is enough."""

    @property
    def scheduled(self) -> Mapping[str, Any]:
        """The schedules by the setting's name."""
        return {}

    @property
    def may_freeze(self) -> bool:
        """True if the agent is frozen for a part of the run."""
        return False

    @property
    def learns_until(self) -> Any:
        """The moment from which the agent does not learn any more; None: it learns at the end."""
        return None

    @property
    def leads_until(self) -> Any:
        """The moment until which the levels above do not learn; None: they always do."""
        return None

    def settings(self) -> Iterator[str]:
        """Lines for people on what it does, for `coach describe`."""
        yield f"changes by schedule: {', '.join(self.scheduled)}"

    def problems(
        self,
        level: "LevelDescription",  # noqa: ARG002 - for subclasses
        levels: "Sequence[LevelDescription]",  # noqa: ARG002
    ) -> Iterator[str]:
        """The rules that it breaks at one of the levels of a graph, top first."""
        yield from ()

    def for_chains(self, *, is_top: bool) -> Iterator[str]:  # noqa: ARG002 - for subclasses
        """Settings that only levels in a chain can have, such as "changes its reach"."""
        yield from ()

    def build(self, level: "LevelT", context: GoalContext, clock: Clock) -> "LevelT":  # noqa: ARG002
        """The level, whose goals are built, with settings that follow the clock of training."""
        return level

    def in_evaluations(self, level: "LevelT") -> "LevelT":
        """The level that `build` returned, as evaluations judge it."""
        return level

    def values(self, level: str, clock: Clock) -> dict[str, float]:  # noqa: ARG002
        """The values that hold now in a stack, by name, for the log of a level of this name."""
        return {}


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
    changes: tuple[LevelChange, ...] = ()
    """Changes of its settings while the run trains, the first one first; empty: none."""
    parts: tuple[LevelPartParameters, ...] = ()
    """Parts with further work, such as `StopOnFailure()`, in the order in which they do it."""

    def __post_init__(self) -> None:
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
        return any(change.may_freeze for change in self.changes)

    def may_end_by(self, reason: End) -> bool:
        """True if a part of the level may end sub-episodes for a reason."""
        return any(reason in part.ended_by.values() for part in self.parts)

    @property
    def ends_frozen(self) -> bool:
        """True if the agent does not learn at the end of the run, however long it is."""
        return self.frozen or any(change.learns_until is not None for change in self.changes)


def received_by(level: LevelDescription) -> LevelSpace | NothingReceived:
    """The space of what a level receives."""
    return NOTHING_RECEIVED if level.goal_space is None else level.goal_space


LevelT = TypeVar("LevelT", bound=LevelDescription)
