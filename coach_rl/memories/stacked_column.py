"""Stacks of frames under an observation key, which a memory may keep in a way of their own."""

from collections.abc import Sequence
from typing import Protocol

from torch import Tensor

from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.state import State
from coach_rl.memories.tables import Field, Tables


class StackedColumn(Protocol):
    """Observations and next observations of one key, whose last axis is a stack of frames.

    Positions are those of a `RingStore`, steps count in a row.
    """

    @property
    def field(self) -> Field:
        """A whole stack [..., k], oldest frame first."""
        ...

    @property
    def oldest(self) -> IntArray:
        """A number that is saved with each position."""
        ...

    def add(
        self,
        rows: IntArray,
        steps: IntArray,
        positions: IntArray,
        *,
        starts: BoolArray,
        ended: BoolArray,
        stacks: Array,
        next_stacks: Array,
    ) -> None:
        """Store the frames of transitions, [R, ...] each."""
        ...

    def truncate(self, rows: IntArray, ends: IntArray, positions: IntArray) -> None:
        """Note that episodes of rows [R] end before these steps, behind these positions."""
        ...

    def take(
        self, rows: IntArray, steps: IntArray, positions: IntArray, *, is_next: bool
    ) -> Tensor:
        """The stacks [*B, ..., k] of observations, or of next observations, at positions [*B]."""
        ...

    def clear(self) -> None:
        """Remove everything."""
        ...

    def state_dict(self, counts: IntArray) -> State:
        """Everything that is kept; `counts` are transitions ever added per row, [N]."""
        ...

    def load_state_dict(self, state: State, counts: IntArray, ended: Sequence[IntArray]) -> None:
        """Load a saved state, with the positions in each row of kept ends of episodes."""
        ...


class StackedColumnKind(Protocol):
    """A class of such columns."""

    def __call__(
        self, *, key: str, field: Field, num_rows: int, row_capacity: int, tables: Tables
    ) -> StackedColumn:
        """An empty column of N rows with so many transitions each."""
        ...

    def bytes_per_row(self, field: Field, row_capacity: int) -> int:
        """The memory that so many transitions of a row take."""
        ...
