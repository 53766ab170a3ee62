"""The rows of a filtering agent: state, infos kept with transitions, checks of what they show."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import ClassVar, Generic, Protocol, TypeVar

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from coach_rl.core.agents import AgentContext, RowState
from coach_rl.core.errors import (
    CoachWarning,
    ConfigurationError,
    EnvironmentFault,
    NonFiniteError,
    SpaceError,
)
from coach_rl.core.goals import takes
from coach_rl.core.interfaces import InputFilter
from coach_rl.core.records import (
    Action,
    ActionInfo,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    Transition,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.signals import Signals
from coach_rl.core.spaces import Space, cast_tolerance, inside, loss_of_cast
from coach_rl.core.state import State, Stateful
from coach_rl.memories.batches import INFOS

Exploration = TypeVar("Exploration", bound=RowState)
LARGEST = np.finfo(np.float32).max
"""The largest number that agents, which compute in float32, can see."""
REWARD = ""
"""The reward's name among observation keys."""


@dataclass(kw_only=True)
class AgentRows(Saved, Generic[Exploration]):
    """The state an agent keeps per row of one stack; all arrays [N, ...]."""

    SAVED: ClassVar[SavedNames] = (
        "filters",
        "heatup_noise",
        "exploration",
        "heatup",
        "follows",
        SavedAttribute("pending", varies=True),
        SavedAttribute("choice", varies=True),
        SavedAttribute("before", varies=True, optional=True),
    )

    filters: dict[str, Array]
    """Memory of the filters that keep something per row."""
    heatup_noise: RowNoise
    """Uniform numbers for random actions."""
    exploration: Exploration
    """Noise and processes the agent explores with."""
    heatup: BoolArray
    """The open decision was made in HEATUP."""
    follows: BoolArray
    """The row acts on the next observation of its last stored transition, under the same goal."""
    pending: Observation = field(default_factory=dict)
    """The filtered observation that the row acts on, or has acted on."""
    choice: dict[str, Array] = field(default_factory=dict)
    """The open decision's ActionInfo by name: `action` or `action/<part>`, and its extras."""
    before: Observation | None = None
    """The unfiltered observation that the row acts on, for a bonus; None: it isn't needed."""
    followed: dict[str, Array] | None = None
    """Choices to follow, made by another copy of the agent; None: it chooses itself."""

    def decisions(self) -> State:
        return dict(self.choice)

    def follow(self, decisions: State) -> None:
        self.followed = decisions


BonusFunction = Callable[[Observation, Action, Outcome], FloatArray]
"""Function from unfiltered observations before decisions [R, ...] each, their actions [R, ...] as
sent, and their outcomes, to what is added to their rewards [R]. It stands at the top level of a
file."""


class BonusParameters(Protocol):
    """A frozen description of a bonus with state."""

    def build(self, context: AgentContext) -> BonusFunction:
        """The bonus, an object with `__call__`; what it lists in `SAVED` is saved with the agent.

        The agents of the levels below are those of `context.place`.
        """
        ...


def build_bonus(
    bonus: BonusFunction | BonusParameters | None, context: AgentContext, agent: str
) -> "Bonus | None":
    """The bonus at an agent's place; None: there is none.

    Args:
        bonus: A function, or parameters of a bonus with state.
        context: The agent's.
        agent: The agent's name.

    Raises:
        ConfigurationError: It can't be called as a bonus is, or has a state that is not saved.
    """
    if bonus is None:
        return None
    function, owner = bonus if callable(bonus) else bonus.build(context), context.place.owner(agent)
    name = getattr(function, "__qualname__", type(function).__qualname__)
    if not takes(function, 3):
        raise ConfigurationError(
            f"the bonus of {owner} must be a function of observations before, actions and outcomes,"
            f" got {name}"
        )
    if getattr(function, "__dict__", None) and not isinstance(function, FunctionType | Saved):
        raise ConfigurationError(
            f"the bonus of {owner} has a state ({', '.join(vars(function))}) that would not be "
            f"saved; make {name} a subclass of coach_rl.core.saved.Saved that lists it in SAVED"
        )
    return Bonus(function, context.signals, owner)


class Bonus(Saved):
    """A bonus to the rewards that an agent learns from; the level's own stay as they are.

    Args:
        function: Computes it.
        signals: Receives it as the signal `bonus`.
        owner: The agent, for messages.
    """

    SAVED: ClassVar[SavedNames] = (SavedAttribute("_state", inline=True),)

    def __init__(self, function: BonusFunction, signals: Signals, owner: str) -> None:
        self._function, self._signals, self._owner = function, signals, owner
        self._state = function if isinstance(function, Saved) else None

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """Rewards with the bonus, [R].

        Args:
            before: Unfiltered observations that the decisions were made on, [R, ...] each.
            action: [R, ...] as they were sent.
            outcome: What the decisions led to.
        """
        added = np.asarray(self._function(before, action, outcome), np.float64)
        if added.shape != outcome.reward.shape or not np.isfinite(added).all():
            raise ConfigurationError(
                f"the bonus of {self._owner} must be a finite number for each of "
                f"{len(outcome.reward)} decisions, got an array of shape {added.shape}; return one "
                "value a row"
            )
        self._signals.note("bonus", added)
        return outcome.reward + added


class TransitionFilter(Stateful, Protocol):
    """A filter of what an agent stores; `episode_filter.EpisodeFilter` is the base of one."""

    def __call__(self, transition: Transition, outcome: Outcome) -> Sequence[Transition]:
        """Transitions to store now, in this order, whole (sub-)episodes of a row at a time.

        Args:
            transition: Of R decisions.
            outcome: What they led to, unfiltered.
        """
        ...

    def drop(self, rows: IntArray) -> None:
        """Drop what is held back of these rows: their episodes stop here."""
        ...


class TransitionFilterParameters(Protocol):
    """A frozen description of a filter of transitions."""

    def build(self, context: AgentContext) -> TransitionFilter:
        """The filter at an agent's place."""
        ...


class InfoColumns:
    """Extraction of the stored infos from outcomes.

    Args:
        names: Their names.
        agent: The agent's name, for messages.
    """

    def __init__(self, names: tuple[str, ...], *, agent: str) -> None:
        self._names, self._agent = names, agent
        self._missing: set[str] = set()

    @property
    def extras(self) -> tuple[str, ...]:
        """Their names among the extras."""
        return tuple(f"{INFOS}{name}" for name in self._names)

    def of(self, outcome: Outcome, index: slice | BoolArray) -> dict[str, Array]:
        """The extras of some of the outcome's rows, float32 [R] each.

        Args:
            outcome: With the environment's infos.
            index: Its places that are kept.

        Raises:
            SpaceError: An info is not one number a row.

        Warns:
            CoachWarning: The environment does not report an info; warns once.
        """
        columns = {}
        for name, extra in zip(self._names, self.extras, strict=True):
            values = outcome.info.get(name)
            if values is None:
                self._warn_of(name, outcome)
                values = np.zeros(len(outcome.rows), np.float32)
            elif values.ndim != 1 or values.dtype.kind not in "biuf":
                raise SpaceError(
                    f"agent '{self._agent}' is to keep the info '{name}', which is {values.dtype} "
                    f"of shape {values.shape[1:]} and not one number a row; leave it out of `infos`"
                )
            elif np.count_nonzero((np.abs(values) > LARGEST) & np.isfinite(values)):
                raise NonFiniteError(
                    f"agent '{self._agent}' is to keep the info '{name}', which has numbers that "
                    "float32 makes infinite; scale it in the environment"
                )
            columns[extra] = values[index].astype(np.float32)
        return columns

    def _warn_of(self, name: str, outcome: Outcome) -> None:
        if name in self._missing:
            return
        self._missing.add(name)
        there = [other for other in outcome.info if not other.startswith("_")]
        warnings.warn(
            f"agent '{self._agent}' is to keep the info '{name}', which the environment does not "
            f"report now; 0 is kept until it does. It reports {', '.join(there) or 'none'}",
            CoachWarning,
            stacklevel=2,
        )


def warn_of_rounding(space: Dict, agent: str) -> None:
    """Warn of float64 observations whose bounds lie too far from 0 for float32."""
    for key, part in space.items():
        if isinstance(part, Box) and part.dtype == np.float64:
            with np.errstate(over="ignore", invalid="ignore"):  # of bounds beyond float32
                farthest = np.maximum(np.abs(part.low), np.abs(part.high)).astype(np.float32)
                apart = np.spacing(farthest)
            is_rough = apart / 2 > cast_tolerance(part)
            if is_rough.any():
                warnings.warn(
                    f"agent '{agent}' computes in float32, which rounds the observation '{key}' to "
                    f"multiples of {np.max(apart, where=is_rough, initial=0):g}, more than a "
                    "millionth of its range; subtract "
                    "an origin in the environment, or use ObservationNormalizationFilter",
                    CoachWarning,
                    stacklevel=3,
                )


def check_finite(
    rows: IntArray, observation: Observation, reward: FloatArray | None, filters: InputFilter
) -> None:
    """Raise `NonFiniteError` naming a value that is not finite in float32, and its row.

    Args:
        rows: [R].
        observation: [R, ...] each.
        reward: [R]; None at a start.
        filters: What values pass next; it may scale numbers that are too large.
    """
    for key, values in (observation if reward is None else {**observation, REWARD: reward}).items():
        if values.dtype.kind != "f":
            continue
        fits = np.abs(values) <= LARGEST  # false for NaN
        if np.count_nonzero(fits) == fits.size:  # several times faster than `all`
            continue
        is_large = bool(np.isfinite(values).all())
        if is_large and (filters.changes_reward if key == REWARD else key in filters.changed_keys):
            continue
        what = "a reward" if key == REWARD else f"an observation '{key}'"
        problem = "that float32 makes infinite" if is_large else "that is not finite"
        place = np.argwhere(~(fits if is_large else np.isfinite(values)))[0]
        raise NonFiniteError(
            f"the environment returned {what} {problem} in row {rows[place[0]]}; "
            "check the environment, or the size of the actions"
        )


def check_whole(key: str, space: Space, rows: IntArray, values: Array, *, agent: str) -> None:
    """Raise `EnvironmentFault` naming a value that the integers of its space don't include.

    Those of a Box are what its dtype has: numbers beyond its bounds are kept. Networks encode
    Discrete and MultiDiscrete values as one-hot vectors, which have no place for others.
    """
    place, shown = loss_of_cast(values, np.dtype(space.dtype)) or (None, "")
    if place is None and isinstance(space, Discrete | MultiDiscrete):
        allowed = inside(space, values)
        if not allowed.all():
            place = int(np.flatnonzero(~allowed.reshape(len(rows), -1).all(axis=1))[0])
            shown = str(values[place])
    if place is not None:
        raise EnvironmentFault(
            f"row {rows[place]} showed agent '{agent}' an observation '{key}' outside of its "
            f"space {space}: {shown}; correct the space in the environment, or what it shows"
        )


def write_rows(
    store: dict[str, Array], rows: IntArray, values: dict[str, Array], num_rows: int
) -> None:
    """Write values [R, ...] by name to the rows of arrays [N, ...], which are made when missing."""
    for name, value in values.items():
        array = store.get(name)
        if array is None:
            array = store[name] = np.zeros((num_rows, *value.shape[1:]), value.dtype)
        array[rows] = value


def flat_choice(info: ActionInfo) -> dict[str, Array]:
    """A decision as `AgentRows` keep it: the action, or its parts, and what is kept with it."""
    if isinstance(info.action, dict):
        parts = {f"action/{key}": values for key, values in info.action.items()}
        return {**parts, **info.extras}
    return {"action": info.action, **info.extras}


def action_of(choice: dict[str, Array]) -> Action:
    """Take the action out of a flat choice; what remains are the extras."""
    if "action" in choice:
        return choice.pop("action")
    names = [name for name in choice if name.startswith("action/")]
    return {name.removeprefix("action/"): choice.pop(name) for name in names}


def combined(
    greedy: BoolArray,
    best: Callable[[], tuple[Array, ...]],
    explored: Callable[[BoolArray | None], tuple[Array, ...]],
) -> tuple[Array, ...]:
    """Greedy choices for some rows, choices with exploration for the others.

    Args:
        greedy: Which rows do not explore, [R].
        best: Makes the greedy choices of all rows: an action, and what is kept with it, [R, ...]
            each.
        explored: Makes the same with exploration, for the rows of a mask [R] or, given None, for
            all of them.
    """
    if not greedy.any():
        return explored(None)
    chosen = best()
    exploring = ~greedy
    if exploring.any():
        for values, others in zip(chosen, explored(exploring), strict=True):
            values[exploring] = others
    return chosen
