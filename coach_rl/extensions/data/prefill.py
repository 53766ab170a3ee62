"""Replay memories that have the transitions of a data set from the start."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.extensions.data.minari_data import read_minari
from coach_rl.memories.parts import MemoryPart, MemoryPartParameters, PartContext, ReplaySettings


@parameter_class
class DataSetParameters(MemoryPartParameters):
    """A Minari data set whose transitions a replay memory has from the start."""

    fills: ClassVar[bool] = True

    source: str
    """Its id or path."""

    def check(self, memory: ReplaySettings) -> None:
        require(
            not memory.extras,
            f"a data set has no extras: {self.source!r} in ReplayMemoryParameters.parts and extras "
            f"{memory.extras} exclude each other",
        )
        require(
            not memory.draws.states,
            f"a data set has no hidden states: {self.source!r} in ReplayMemoryParameters.parts and "
            f"draws={type(memory.draws).__name__} exclude each other; learn from it by a "
            "BatchGraphManager",
        )

    def at(self, context: PartContext) -> "DataSet":
        return DataSet(self.source, context)


@dataclass(frozen=True)
class DataSet(MemoryPart):
    """A data set for a memory with given spaces."""

    source: str
    """Its id or path."""
    context: PartContext
    """Surroundings of the part."""

    @property
    def owner(self) -> str:
        return f"data set '{self.source}'"

    def episodes(self) -> Iterable[dict[str, Array]]:
        return read_minari(
            self.source,
            observation_space=self.context.observation_space,
            action_space=self.context.action_space,
        )
