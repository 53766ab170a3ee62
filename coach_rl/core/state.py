"""The types of a saved state, and the protocol of the objects that have one."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from coach_rl.core.errors import CheckpointError
from coach_rl.core.records import Array, IntArray

State = dict[str, Any]
"""Dicts with str keys whose leaves are arrays, tensors, numbers, strings, bools, None, lists or
`Appended`."""

PART_BYTES = 1 << 22
"""Size of the parts in which appended entries are read."""


class EntryFile(NamedTuple):
    """A file on the disk that holds consecutive entries of one row, and never changes."""

    path: Path
    row: int
    begin: int
    """Number of its first entry."""
    end: int
    """The number behind its last."""
    sha256: str
    """Its checksum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Appended:
    """Entries of a state that are only ever added, of which a checkpoint writes the new ones.

    For memories: the entries of N rows, numbered from 0 in each row, which never change once they
    are there; the oldest may be dropped. `state_dict` returns one of these instead of arrays.
    `load_state_dict` finds one in its place, and reads it part by part; it finds None where
    memories were left out of the checkpoint, and lets the memory stay as it was built.

    {"entries": Appended(dtype=..., first=..., ends=..., capacity=..., read=self._read)}

    for row, begin, columns in state["entries"].parts():
        self._write(row, begin, columns)
    """

    dtype: np.dtype[np.void]
    """The columns of an entry: names, dtypes and shapes, as of a structured array."""
    first: IntArray
    """Number of the oldest entry that is still needed, by row, [N]."""
    ends: IntArray
    """Number of entries ever added, by row, [N]."""
    capacity: int
    """Entries of a full memory, over all rows, to predict its size on disk; 0 where that depends on
    the data and is small beside the rest."""
    read: Callable[[int, int, int], Mapping[str, Array]]
    """Columns [T, ...] of the entries `begin` to `end` of a row: `read(row, begin, end)`. Raises
    `RunError` where they have been dropped since."""
    files: tuple[EntryFile, ...] = ()
    """Files that hold entries already, in the order of each row: arrays of `dtype`. Checkpoints
    link them in place of writing what is in them."""
    generation: int = 0
    """Raised whenever an entry does change, or the numbers start from 0 again."""

    def parts(
        self, since: IntArray | None = None
    ) -> Iterator[tuple[int, int, Mapping[str, Array]]]:
        """Entries row by row in parts of a few megabytes: row, number of the first, columns.

        Args:
            since: The first entry wanted, by row, [N]; None: all that are needed.
        """
        size = max(1, PART_BYTES // max(1, self.dtype.itemsize))
        begins = self.first if since is None else since
        for row, (first, end) in enumerate(zip(begins.tolist(), self.ends.tolist(), strict=True)):
            for begin in range(first, end, size):
                yield row, begin, self.read(row, begin, min(begin + size, end))


class Stateful(Protocol):
    """Anything that must be saved to continue exactly where it stopped."""

    def state_dict(self) -> State:
        """Everything mutable, as a `State` tree that shares no memory with the object.

        Only `Appended` entries are read from the object on demand, and cannot be read any more
        once the object has dropped them.
        """
        ...

    def load_state_dict(self, state: State) -> None:
        """Load a state made by `state_dict` of an equally built object."""
        ...


def check_same_kind(what: str, saved: State, mine: State) -> None:
    """Raise `CheckpointError` unless two states have the same structure."""
    found, wanted = sorted(_paths(saved)), sorted(_paths(mine))
    if found != wanted:
        raise CheckpointError(
            f"its {what} hold {', '.join(found) or 'nothing'}, those here "
            f"{', '.join(wanted) or 'nothing'}"
        )


def _paths(state: object, path: str = "") -> Iterator[str]:
    """The path of everything in a state that is no dict."""
    if not isinstance(state, dict):
        yield path
        return
    for key, part in state.items():
        yield from _paths(part, f"{path}/{key}" if path else key)
