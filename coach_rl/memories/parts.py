"""Parts of a replay memory: what is kept and sampled beside the transitions themselves.

    @parameter_class
    class AgeParameters(MemoryPartParameters):          # in ReplayMemoryParameters.parts
        def at(self, context):
            return Age(context)

    class Age(MemoryPart):
        ledger = {"/age": Field((), np.float32)}        # a column of every transition

        def kept(self, stored):
            return {"/age": age_of(stored.after)}

        def units(self, context, own):                  # sampler units, behind the ones named
            return [("gather", ShownAge(context.store))]

A part leaves out the methods that it does not need.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

from gymnasium import spaces

from coach_rl.core.agents import LevelPlace
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.memories.samplers import Gather, SamplerUnit, UnitContext
from coach_rl.memories.tables import Field


class ReplaySettings(Protocol):
    """The settings of a replay memory, as its parts and goals check them."""

    @property
    def n_step(self) -> int:
        """Rewards summed before bootstrapping."""
        ...

    @property
    def relabelling(self) -> "RelabellingParameters | None":
        """The relabelling of goals; None: they stay as they were."""
        ...

    @property
    def extras(self) -> tuple[str, ...]:
        """Extras of the agent's actions that are kept."""
        ...

    @property
    def draws(self) -> "DrawParameters":
        """The kind of samples that are drawn."""
        ...

    @property
    def parts(self) -> "tuple[MemoryPartParameters, ...]":
        """The memory's parts."""
        ...


@dataclass(frozen=True, kw_only=True)
class PartContext:
    """Surroundings of a part, known when its memory is built."""

    observation_space: spaces.Dict
    """The agent's observation space."""
    action_space: Space
    """The agent's action space."""
    place: LevelPlace
    """The agent's place in a stack."""
    output_filter: OutputFilter | None
    """Filter that the agent's actions pass on their way out; None: no filter."""
    relabelling: Any
    """The memory's `Relabelling` at this place; None: goals are not relabelled."""
    owner: str
    """The agent, for warnings about its transitions; empty: there are none."""


class Stored(NamedTuple):
    """R transitions on their way into a memory."""

    before: Observation
    """Observations that decisions were made on, [R, ...] each."""
    after: Observation
    """Observations that they led to."""
    columns: Mapping[str, Array]
    """Their other columns, [R, ...] each, by path."""
    below: Array | None
    """[R] bits of `End` of the level below; None: not known."""
    tested: BoolArray | None
    """[R] whether the decisions were tested; None: none was."""


class MemoryPart:
    """A part of a replay memory; a subclass overrides what it needs."""

    @property
    def owner(self) -> str:
        """The source of its `episodes`, for messages."""
        return type(self).__name__

    @property
    def ledger(self) -> Mapping[str, Field]:
        """Small columns that are kept of every transition, by path."""
        return {}

    def kept(self, stored: Stored) -> Mapping[str, Array]:  # noqa: ARG002 - for subclasses
        """The ledger's columns for transitions, [R, ...] each."""
        return {}

    def units(
        self,
        context: UnitContext,  # noqa: ARG002 - for subclasses
        own: Sequence[SamplerUnit],  # noqa: ARG002 - for subclasses
    ) -> list[tuple[str, SamplerUnit]]:
        """The sampler units, each with the name of the one that it follows.

        Args:
            context: Their surroundings.
            own: The units that the memory's parameters name.

        Raises:
            ConfigurationError: They contradict those.
        """
        return []

    def episodes(self) -> Iterable[dict[str, Array]]:
        """Episodes that the memory has from the start: their columns, [T, ...] each."""
        return ()


class MemoryPartParameters:
    """A description of a part of a replay memory; a subclass is a frozen dataclass."""

    fills: ClassVar[bool] = False
    """True if the part brings transitions that the agent has not made."""

    def check(self, memory: ReplaySettings) -> None:
        """Raise `ParameterError` where the memory's other settings contradict the part."""

    def check_filters(self, agent: Any, place: LevelPlace) -> None:
        """Raise `ConfigurationError` where filters or stages of the memory's agent contradict it.

        Args:
            agent: A `FilteredAgent`, as far as its filters and stages.
            place: Its place in a stack.
        """

    def at(self, context: PartContext) -> MemoryPart:
        """The part of a memory; ConfigurationError where it does not fit its place."""
        raise NotImplementedError


class Relabelling(Protocol):
    """Relabelling of the goals of a memory's transitions, at a place in a stack."""

    def part(self, context: PartContext) -> MemoryPart:
        """The part of the memory, before all others.

        Raises:
            SpaceError: The observations have no goals, or show them otherwise.
        """
        ...


class RelabellingParameters(Protocol):
    """A frozen description of how a memory relabels the goals of its transitions."""

    @property
    def goal(self) -> GoalSpace | None:
        """The goals; None: those of the agent's level."""
        ...

    def at(self, place: LevelPlace) -> Relabelling:
        """The relabelling at a place; ConfigurationError where it does not fit there."""
        ...

    def check_filters(self, agent: Any, place: LevelPlace) -> None:
        """Raise `ConfigurationError` where the memory's agent contradicts it, as parts do."""
        ...


@dataclass(frozen=True, kw_only=True)
class RelabellingRequest:
    """A memory's question to the goals of its level: what relabels its transitions."""

    params: RelabellingParameters | None
    """Those of the memory; None: goals stay as they were."""
    memory: ReplaySettings
    """The memory's settings."""
    place: LevelPlace
    """The place of its agent."""

    def plain(self) -> Relabelling | None:
        """The relabelling of goals that need nothing more; None: goals stay as they were."""
        return None if self.params is None else self.params.at(self.place)

    def made(self) -> Relabelling | None:
        """The relabelling of the goals; None: they stay as they were."""
        given = None if self.params is None else self.params.goal
        goal = given or self.place.goal
        return self.plain() if goal is None else goal.relabelling(self)


class DrawParameters(Protocol):
    """A frozen description of what a memory draws: transitions, or more of them together."""

    @property
    def is_single(self) -> bool:
        """True if transitions are drawn one by one."""
        ...

    @property
    def states(self) -> tuple[str, ...]:
        """Observation keys that are kept once, of the decision alone, and in no batch."""
        ...

    def check(self, memory: ReplaySettings) -> None:
        """Raise `ParameterError` where the memory's other settings contradict it."""
        ...

    def check_space(self, observation_space: spaces.Dict, row_capacity: int) -> None:
        """Raise `ConfigurationError` unless such observations, so many a row, can be drawn so."""
        ...

    def check_batch(self, batch: int, owner: str) -> None:
        """Raise `ConfigurationError` unless batches can have so many transitions."""
        ...

    def units(self, returns: Sequence[SamplerUnit], gather: Gather) -> list[SamplerUnit]:
        """The units behind the drawn positions.

        Args:
            returns: Those that make returns.
            gather: The one that reads the columns, of transitions alone.
        """
        ...

    def count(self, batch: int) -> int:
        """Number of samples that are drawn for a batch of so many transitions."""
        ...

    def priorities(
        self, positions: IntArray, errors: FloatArray, count: int
    ) -> tuple[IntArray, FloatArray]:
        """The errors by which transitions are drawn, and their positions, [P] each.

        Args:
            positions: Of the transitions of a batch, [B].
            errors: Of the transitions, [B].
            count: How many were drawn for it.
        """
        ...
