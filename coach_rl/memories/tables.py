"""Preallocated columns of equal length, addressed by position: on the host or on a device.

A storage of another kind, such as one on the disk, is a `StorageParameters` whose `build` returns
`Tables` with rings of its own.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array, IntArray
from coach_rl.core.scratch import Scratch
from coach_rl.core.state import Appended, EntryFile
from coach_rl.memories.batches import Columns


@dataclass(frozen=True)
class Field:
    """Shape and dtype of one entry of a column."""

    shape: tuple[int, ...]
    """Shape without the axis of entries."""
    dtype: npt.DTypeLike
    """Dtype in which it is kept."""

    @property
    def bytes(self) -> int:
        """Size of one entry in bytes."""
        return int(np.dtype(self.dtype).itemsize * np.prod(self.shape, dtype=np.int64))


def kept_dtype(dtype: npt.DTypeLike) -> np.dtype[np.generic]:
    """Return the dtype in which values are kept: float32 for float64, else the values' own."""
    dtype = np.dtype(dtype)
    return np.dtype(np.float32) if dtype == np.float64 else dtype


def entry_dtype(fields: Mapping[str, Field]) -> np.dtype[np.void]:
    """The dtype of one saved entry, with these columns."""
    return np.dtype([(path, field.dtype, field.shape) for path, field in fields.items()])


def require_kept(is_kept: bool) -> None:
    """Raise a `RunError` unless what a state refers to is still there."""
    if not is_kept:
        raise RunError(
            "the memory has overwritten transitions that its state refers to; write or load a "
            "state before more are added"
        )


class Table:
    """Columns by path, in ordinary memory, whose pages are touched only as they fill.

    Args:
        length: Entries.
        device: Device of the tensors that `take` returns.
    """

    def __init__(self, length: int, device: torch.device) -> None:
        self.fields: dict[str, Field] = {}
        """The columns there are."""
        self._length = length
        self._device = device
        self._is_remote = device.type != "cpu"
        self._columns: dict[str, Any] = {}

    def allocate(self, path: str, field: Field) -> None:
        """Add a column of zeros."""
        self.fields[path], self._columns[path] = field, self._zeros(self._length, field)

    def grow(self, length: int) -> None:
        """Make every column at least that long."""
        for path, column in self._columns.items():
            if length > len(column):
                longer = self._zeros(length, self.fields[path])
                longer[: len(column)] = column
                self._columns[path] = longer
        self._length = max(self._length, length)

    def write(self, positions: IntArray, values: Mapping[str, Array]) -> None:
        """Write values [R, ...] to positions [R], in each of the columns.

        Args:
            positions: [R].
            values: By path, of each column there is; others are left out.
        """
        for path, column in self._columns.items():
            column[positions] = values[path]

    def take(self, paths: Sequence[str], positions: IntArray) -> Columns:
        """New tensors [..., *shape] of the entries at positions [...]."""
        taken = {
            path: torch.from_numpy(self._columns[path].take(positions, axis=0)) for path in paths
        }
        if self._is_remote:
            return {path: values.to(self._device) for path, values in taken.items()}
        return taken

    def read(self, path: str, positions: IntArray) -> Array:
        """A copy on the host of the entries at positions [...]."""
        entries: Array = self._columns[path].take(positions, axis=0)
        return entries

    def clear(self) -> None:
        """Forget the entries."""

    def files(self, ends: IntArray) -> tuple[EntryFile, ...]:  # noqa: ARG002 - for subclasses
        """Files that hold entries already.

        Args:
            ends: Number, as `Appended` counts, of the next entry that each row writes, [N].
        """
        return ()

    def load(
        self, entries: Appended, positions: Callable[[int, int, int], IntArray]
    ) -> Iterator[tuple[IntArray, Mapping[str, Array]]]:
        """Write saved entries to an empty table, part by part.

        Args:
            entries: The entries.
            positions: Where those from `begin` to `end` of a row belong, [T]:
                `positions(row, begin, end)`.

        Yields:
            Positions [T] and all columns [T, ...] of each part.
        """
        for row, begin, columns in entries.parts():
            count = len(next(iter(columns.values())))
            where = positions(row, begin, begin + count)
            self.write(where, columns)
            yield where, columns

    def _zeros(self, length: int, field: Field) -> Any:
        return np.zeros((length, *field.shape), field.dtype)


class PinnedTable(Table):
    """Columns in ordinary memory; batches pass through page-locked memory to the device.

    The copies run beside the program. A page-locked buffer is filled again only after the copy out
    of it has ended.
    """

    def __init__(self, length: int, device: torch.device) -> None:
        super().__init__(length, device)
        self._buffers: dict[tuple[str, tuple[int, ...]], tuple[Tensor, torch.cuda.Event]] = {}

    def take(self, paths: Sequence[str], positions: IntArray) -> Columns:
        """New tensors on the device, whose copies may still be under way on its stream."""
        taken: Columns = {}
        for path in paths:
            buffer, copied = self._buffer(path, positions.shape)
            copied.synchronize()
            np.take(self._columns[path], positions, axis=0, out=buffer.numpy(), mode="clip")
            taken[path] = buffer.to(self._device, non_blocking=True)
            copied.record(torch.cuda.current_stream(self._device))
        return taken

    def _buffer(self, path: str, shape: tuple[int, ...]) -> tuple[Tensor, torch.cuda.Event]:
        if (path, shape) not in self._buffers:
            field = self.fields[path]
            buffer = torch.empty(
                (*shape, *field.shape), dtype=torch_dtype(field.dtype), pin_memory=True
            )
            self._buffers[path, shape] = buffer, torch.cuda.Event()  # type: ignore[no-untyped-call]  # torch has no type for it
        return self._buffers[path, shape]


class DeviceTable(Table):
    """Columns on the learner's device."""

    def write(self, positions: IntArray, values: Mapping[str, Array]) -> None:
        index = torch.from_numpy(positions).to(self._device)
        for path, field in self.fields.items():
            kept = torch.from_numpy(np.array(values[path], dtype=field.dtype))
            self._columns[path].index_copy_(0, index, kept.to(self._device))

    def take(self, paths: Sequence[str], positions: IntArray) -> Columns:
        index = torch.from_numpy(positions.reshape(-1)).to(self._device, non_blocking=True)
        return {
            path: self._columns[path]
            .index_select(0, index)
            .view(*positions.shape, *self.fields[path].shape)
            for path in paths
        }

    def read(self, path: str, positions: IntArray) -> Array:
        return np.asarray(self.take((path,), positions)[path].cpu().numpy())

    def _zeros(self, length: int, field: Field) -> Tensor:
        dtype = torch_dtype(field.dtype)
        return torch.zeros((length, *field.shape), dtype=dtype, device=self._device)


MakeTable = Callable[[int], Table]
Beside = Callable[[], Mapping[str, Array]]
"""Further columns of the entries, which are on the host, by path; each as long as the table."""


class Tables:
    """Makes the tables of a memory.

    Args:
        table: Makes a table of so many entries.
    """

    def __init__(self, table: MakeTable) -> None:
        self.table = table

    def ring(
        self,
        num_rows: int,
        row_length: int,
        beside: Beside,  # noqa: ARG002 - for subclasses
    ) -> Table:
        """A table in which each of N rows writes its positions one after the other, in a circle.

        A row may write its newest entry again.

        Args:
            num_rows: N.
            row_length: Positions of a row, which follow those of the row before.
            beside: What is saved with the entries.
        """
        return self.table(num_rows * row_length)


@runtime_checkable
class StorageParameters(Protocol):
    """A frozen description of a storage of another kind than memory."""

    def build(self, device: torch.device, scratch: Scratch) -> Tables:
        """The tables of a memory.

        Args:
            device: The learner's, where batches go.
            scratch: A folder for files.
        """
        ...


def torch_dtype(dtype: npt.DTypeLike) -> torch.dtype:
    """The tensor dtype that `torch.from_numpy` gives arrays of a dtype."""
    return torch.from_numpy(np.zeros(0, dtype)).dtype
