"""The big columns of a replay memory in files, which checkpoints share."""

import itertools
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial
from pathlib import Path

import numpy as np
import torch

from coach_rl.core.errors import RunError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, IntArray
from coach_rl.core.scratch import Scratch
from coach_rl.core.shown_text import readable
from coach_rl.core.state import Appended, EntryFile
from coach_rl.extensions.disk_storage.chunks import Chunk
from coach_rl.memories.batches import Columns
from coach_rl.memories.tables import Beside, Field, Table, Tables, entry_dtype

FILES_PER_ROW = 16
"""Least number of files over which a row's entries are spread, so that few wait for the last one to
be removed."""


@parameter_class
class DiskStorage:
    """Storage of a replay memory on the disk, in the folder of its run.

    Its files are read and written as memory that the system keeps as long as there is room. Those
    that are full are never written again: checkpoints link them, and write only what is in files
    that are not full.
    """

    open_megabytes: Positive[int] = 64
    """Room of all files that are not full: the most that a checkpoint writes, in 10^6 bytes."""

    def build(self, device: torch.device, scratch: Scratch) -> Tables:
        return DiskTables(device, scratch, open_bytes=self.open_megabytes * 1_000_000)


class DiskTables(Tables):
    """Makes rings on the disk; other tables are in ordinary memory.

    Args:
        device: The learner's.
        scratch: Makes their folders.
        open_bytes: Most bytes in files of a ring that are not full.
    """

    def __init__(self, device: torch.device, scratch: Scratch, *, open_bytes: int) -> None:
        super().__init__(partial(Table, device=device))
        self._device = device
        self._scratch = scratch
        self._open_bytes = open_bytes

    def ring(self, num_rows: int, row_length: int, beside: Beside) -> Table:
        return DiskRing(
            num_rows,
            row_length,
            device=self._device,
            scratch=self._scratch,
            open_bytes=self._open_bytes,
            beside=beside,
        )


class DiskRing(Table):
    """N rows of entries in files of K entries each.

    Entries have numbers: each row counts on from that of its first position. The number of an entry
    modulo the row's length is its position. Only the newest L numbers of a row are there.

    Args:
        num_rows: N.
        row_length: Positions of a row, L.
        device: The learner's.
        scratch: Makes the folder of its files.
        open_bytes: Most bytes in files that are not full.
        beside: Columns on the host that are saved in the files as well.
    """

    def __init__(
        self,
        num_rows: int,
        row_length: int,
        *,
        device: torch.device,
        scratch: Scratch,
        open_bytes: int,
        beside: Beside,
    ) -> None:
        super().__init__(num_rows * row_length, device)
        self._row_length = row_length
        self._scratch = scratch
        self._open_bytes = open_bytes
        self._beside = beside
        self._chunks: list[list[Chunk]] = [[] for _ in range(num_rows)]
        """Each row's files, oldest first; all but the last are closed."""
        self._next: IntArray = np.zeros(num_rows, np.int64)
        """Number of the next entry of each row, [N]."""
        self._begins: IntArray = np.zeros(num_rows, np.int64)
        """Number of the first entry in the first file of each row, [N]."""
        self._names = itertools.count()
        self._closing = ThreadPoolExecutor(1, thread_name_prefix="replay memory")
        self._all_own = True
        """False where entries may be in files of another folder, or in none yet."""
        self._folder: Path | None = None
        """The folder of its files; None before there are any."""
        self._parent = scratch.parent
        """The folder that it is in."""

    @cached_property
    def _dtype(self) -> np.dtype[np.void]:
        """An entry's columns; known with the first entry."""
        beside = {
            path: Field(column.shape[1:], column.dtype) for path, column in self._beside().items()
        }
        return entry_dtype(beside | self.fields)

    @cached_property
    def _file_entries(self) -> int:
        """Entries of a file, K."""
        row_bytes = len(self._chunks) * self._dtype.itemsize
        least = -(-self._row_length // FILES_PER_ROW)
        return max(1, min(least, self._open_bytes // row_bytes))

    def _own_folder(self) -> Path:
        """The folder of its files, which is made for the first of them.

        Raises:
            RunError: The disk has not enough room for all of them.
        """
        if self._folder is not None:
            return self._folder
        folder = self._scratch.new_folder()
        chunks = len(self._chunks) * (self._row_length // self._file_entries + 2)
        disk = folder.stat().st_dev
        chunks -= sum(each.is_on(disk) for row in self._chunks for each in row)
        size = chunks * self._file_entries * self._dtype.itemsize
        free = shutil.disk_usage(folder).free
        if size > free:
            raise RunError(
                f"a replay memory on the disk takes {readable(size)}, and {readable(free)} are "
                f"free in {folder.parent}; free space, or lower the memory's `capacity`"
            )
        self._folder = folder
        return folder

    def allocate(self, path: str, field: Field) -> None:
        self.fields[path] = field

    def write(self, positions: IntArray, values: Mapping[str, Array]) -> None:
        if self._parent != self._scratch.parent:
            self._leave_folder()
        rows, slots = np.divmod(positions, self._row_length)
        breaks = np.flatnonzero(np.diff(rows)) + 1
        for begin, end in itertools.pairwise([0, *breaks.tolist(), len(rows)]):
            if begin < end:
                part = {path: values[path][begin:end] for path in self.fields}
                self._write_row(int(rows[begin]), int(slots[begin]), end - begin, part)

    def take(self, paths: Sequence[str], positions: IntArray) -> Columns:
        taken = {path: torch.from_numpy(self.read(path, positions)) for path in paths}
        if self._is_remote:
            return {path: values.to(self._device) for path, values in taken.items()}
        return taken

    def read(self, path: str, positions: IntArray) -> Array:
        rows, slots = np.divmod(positions.reshape(-1), self._row_length)
        newest = self._next[rows] - 1
        numbers = newest - (newest - slots) % self._row_length
        files, places = np.divmod(numbers - self._begins[rows], self._file_entries)
        field = self.fields[path]
        found = np.empty((len(rows), *field.shape), field.dtype)
        chunks = self._chunks
        where = zip(rows.tolist(), files.tolist(), places.tolist(), strict=True)
        for index, (row, file, place) in enumerate(where):
            found[index] = chunks[row][file].columns[path][place]
        return found.reshape(*positions.shape, *field.shape)

    def clear(self) -> None:
        for chunks in self._chunks:
            for chunk in chunks:
                chunk.remove()
            chunks.clear()
        self._next[:] = 0
        self._begins[:] = 0

    def files(self, ends: IntArray) -> tuple[EntryFile, ...]:
        """See `Table.files`; waits until they are on the disk.

        Raises:
            OSError: The disk refuses; the next call tries again.
        """
        self._own_all()
        found = []
        for row, chunks in enumerate(self._chunks):
            shift = int(ends[row] - self._next[row])
            for chunk in chunks:
                if chunk.checksum is None or chunk.path is None:
                    continue
                if chunk.checksum.exception():  # the disk may have room again
                    chunk.checksum = self._closing.submit(chunk.finish)
                begin = chunk.begin + shift
                end = chunk.end + shift
                found.append(EntryFile(chunk.path, row, begin, end, chunk.checksum.result()))
        return tuple(found)

    def load(
        self, entries: Appended, positions: Callable[[int, int, int], IntArray]
    ) -> Iterator[tuple[IntArray, Mapping[str, Array]]]:
        """See `Table.load`; files that fit are used as they are, in place of a copy."""
        self.clear()
        since = entries.first.copy()
        for row in range(len(self._chunks)):
            first = int(entries.first[row])
            slot = int(positions(row, first, first + 1)[0]) % self._row_length
            number = first - (first - slot) % self._row_length
            shift = number - first
            self._next[row] = self._begins[row] = number
            for chunk in self._adoptable(entries, row):
                begin = max(first, chunk.begin)
                place = begin - chunk.begin
                yield (
                    positions(row, begin, chunk.end),
                    {path: column[place:] for path, column in chunk.columns.items()},
                )
                since[row] = chunk.end
                chunk.begin += shift
                if not self._chunks[row]:
                    self._begins[row] = chunk.begin
                self._chunks[row].append(chunk)
                self._next[row] = chunk.end
        self._all_own = False  # a forked run has no folder before its state is loaded
        for row, begin, columns in entries.parts(since):
            count = len(next(iter(columns.values())))
            where = positions(row, begin, begin + count)
            yield where, columns  # first, as a file that gets full takes the columns on the host
            self.write(where, columns)

    def _adoptable(self, entries: Appended, row: int) -> list[Chunk]:
        """Files of a row that follow each other and have the form of its own."""
        if entries.dtype != self._dtype:
            return []
        found: list[Chunk] = []
        for file in entries.files:
            if file.row != row or file.end <= entries.first[row]:
                continue
            follows = file.begin == found[-1].end if found else file.begin <= entries.first[row]
            if not follows or file.end - file.begin != self._file_entries:
                break
            try:
                found.append(Chunk.adopted(file, self._dtype))
            except OSError:  # its entries are read in another way, which reports what is missing
                break
        return found

    def _own_all(self) -> None:
        """Make the files of other folders, which may be deleted there, its own.

        Raises:
            OSError: The disk refuses.
        """
        if not self._all_own:
            folder = self._own_folder()
            for chunk in itertools.chain.from_iterable(self._chunks):
                if not chunk.is_in(folder):
                    chunk.own(self._new_path())
            self._all_own = True

    def _leave_folder(self) -> None:
        """Move files when the next is full, and at the latest for the next checkpoint.

        A memory with transitions from the start writes them before its run has a folder.
        """
        self._parent = self._scratch.parent
        self._folder = None
        self._all_own = not any(self._chunks)

    def _write_row(self, row: int, slot: int, count: int, values: Mapping[str, Array]) -> None:
        """Write consecutive entries of a row.

        Args:
            row: The row.
            slot: The position of the first, within the row.
            count: How many there are, T.
            values: [T, ...] of each column.
        """
        chunks = self._chunks[row]
        if not chunks and self._next[row] == 0:
            self._next[row] = self._begins[row] = slot
        number = int(self._next[row])
        if slot != number % self._row_length:
            number -= 1  # the newest is written again
            assert slot == number % self._row_length
        done = 0
        while done < count:
            if not chunks or number >= chunks[-1].end:
                self._open_next(row, number)
            chunk = chunks[-1]
            place = number - chunk.begin
            part = min(count - done, self._file_entries - place)
            for path, column in values.items():
                chunk.columns[path][place : place + part] = column[done : done + part]
            done += part
            number += part
        self._next[row] = number
        while chunks[0].end <= number - self._row_length:
            chunks.pop(0).remove()
            self._begins[row] = chunks[0].begin

    def _open_next(self, row: int, number: int) -> None:
        """Close a row's file, which is full, and open the next one.

        Raises:
            RunError: There is no room for it.
        """
        chunks = self._chunks[row]
        length = self._file_entries
        try:
            if chunks and chunks[-1].checksum is None:
                self._own_all()
                self._close(row, chunks[-1])
            if self._all_own:
                made = Chunk.opened(number, self._new_path(), length, self._dtype)
            else:
                made = Chunk.waiting(number, length, self._dtype)
        except OSError as error:
            raise RunError(
                f"the replay memory cannot write to the disk: {error}; free space there and resume "
                "the run"
            ) from error
        if not chunks:
            self._begins[row] = number
        chunks.append(made)

    def _close(self, row: int, chunk: Chunk) -> None:
        """Complete a full file with the columns on the host, and bring it to the disk."""
        slots = np.arange(chunk.begin, chunk.end) % self._row_length
        for path, column in self._beside().items():
            chunk.columns[path][:] = column[row * self._row_length + slots]
        chunk.checksum = self._closing.submit(chunk.finish)

    def _new_path(self) -> Path:
        return self._own_folder() / f"{next(self._names):06d}.bin"
