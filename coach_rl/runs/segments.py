"""Appended entries in a checkpoint: files of entries, written once and shared by hard links.

    checkpoints/step_20480/rows_000001.bin      a segment: entries row by row, oldest first

A checkpoint has a link to every segment it needs. So each checkpoint is a whole folder, and a
segment is gone with the last checkpoint that needs it; nothing has to be counted.
"""

import hashlib
import os
import re
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import CheckpointError
from coach_rl.core.records import Array, IntArray
from coach_rl.core.state import Appended, State

MERGED_BYTES = 64_000_000
"""Segments up to this size are merged with newer ones, so that there are few of them."""

_SEGMENT = re.compile(r"rows_(\d+)\.bin")


@dataclass(frozen=True, kw_only=True, eq=False)
class Segment:
    """A file of entries."""

    file: str
    """Its name, the same in the folder of every checkpoint that has it."""
    begins: IntArray
    """Number of the first entry of each row that is in it, [N]."""
    ends: IntArray
    """The number behind the last, [N]."""

    @property
    def entries(self) -> int:
        """Entries it has."""
        return int((self.ends - self.begins).sum())

    def needed(self, first: IntArray) -> int:
        """Entries it has from the first ones needed on, [N]."""
        return int(np.maximum(self.ends - np.maximum(self.begins, first), 0).sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class StoredEntries(Appended):
    """Appended entries in the folder of a checkpoint."""

    folder: Path
    """The checkpoint's."""
    segments: tuple[Segment, ...]
    """The segments there, oldest first."""

    @property
    def is_whole(self) -> bool:
        """True if every segment is there and has its size."""
        paths = [self.folder / segment.file for segment in self.segments]
        sizes = [segment.entries * self.dtype.itemsize for segment in self.segments]
        return all(path.is_file() for path in paths) and sizes == [
            path.stat().st_size for path in paths
        ]


@dataclass(frozen=True, kw_only=True)
class Stored:
    """The appended entries of a checkpoint."""

    entries: Mapping[str, StoredEntries] = field(default_factory=dict)
    """Entries by their place in the state."""
    sums: Mapping[str, str] = field(default_factory=dict)
    """Checksums of its files, by name."""

    @property
    def last_number(self) -> int:
        """The highest number of a segment; 0 where there is none."""
        numbers = (int(match[1]) for name in self.sums if (match := _SEGMENT.fullmatch(name)))
        return max(numbers, default=0)


NOTHING_STORED = Stored()


def segment_file(number: int) -> str:
    """The name of a segment's file."""
    return f"rows_{number:06d}.bin"


def is_segment(name: str) -> bool:
    """Return whether a file of that name is a segment."""
    return _SEGMENT.fullmatch(name) is not None


def shared(
    appended: Appended, stored: StoredEntries | None
) -> tuple[tuple[Segment, ...], IntArray]:
    """Return what a new checkpoint shares with an earlier one of the same run.

    Nothing is shared where that would keep more entries that are not needed than there are
    entries: a row that stands still must not keep the other rows' segments for ever.

    Args:
        appended: The entries to save.
        stored: Those of the earlier checkpoint; None: there is none.

    Returns:
        The segments that are shared, and the first entry of each row that is not in them, [N].
    """
    first, ends = appended.first, appended.ends
    if (
        stored is None
        or (stored.dtype, stored.generation) != (appended.dtype, appended.generation)
        or len(stored.ends) != len(ends)
        or (stored.ends > ends).any()
        or not stored.is_whole
    ):
        return (), first
    segments = [segment for segment in stored.segments if segment.needed(first)]
    since = np.maximum(stored.ends, first)
    while segments:
        newest = segments[-1]
        size = newest.entries * appended.dtype.itemsize
        if size > MERGED_BYTES or newest.needed(first) > (ends - since).sum():
            break
        since = np.maximum(np.minimum(since, newest.begins), first)
        segments.pop()
    dead = sum(segment.entries - segment.needed(first) for segment in segments)
    if dead > (ends - first).sum():
        return (), first
    return tuple(segments), since


def write_segment(path: Path, appended: Appended, since: IntArray) -> str:
    """Write entries from `since` on, [N], as a file on the disk.

    Args:
        path: The file.
        appended: The entries.
        since: The first of each row, [N].

    Returns:
        The file's sha256.
    """
    digest = hashlib.sha256()
    with path.open("wb") as file:
        for _, _, columns in appended.parts(since):
            values = {name: columns[name] for name in appended.dtype.names or ()}
            entries = np.empty(len(next(iter(values.values()))), appended.dtype)
            for name, column in values.items():
                entries[name] = column
            content = entries.view(np.uint8).data
            file.write(content)
            digest.update(content)
        file.flush()
        os.fsync(file.fileno())
    return digest.hexdigest()


def share_file(source: Path, target: Path) -> None:
    """Link a file, or copy it where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def form_of(appended: Appended) -> State:
    """Return what a state says of appended entries, wherever they are."""
    fields = {name: appended.dtype[name] for name in appended.dtype.names or ()}
    return {
        "columns": [[name, each.base.str, list(each.shape)] for name, each in fields.items()],
        "first": appended.first,
        "ends": appended.ends,
        "capacity": appended.capacity,
        "generation": appended.generation,
    }


def segments_json(segments: Iterable[Segment]) -> Json:
    """Segments as JSON: file, begins and ends of each."""
    return [[each.file, each.begins.tolist(), each.ends.tolist()] for each in segments]


def stored_entries(folder: Path, form: State, document: Json) -> StoredEntries:
    """Return the entries in a checkpoint's folder; they are read when they are asked for.

    Args:
        folder: The checkpoint's.
        form: What `form_of` returned.
        document: What `segments_json` returned.

    Raises:
        CheckpointError: They describe nothing that can be read.
    """
    try:
        columns = [(name, np.dtype(kind), tuple(shape)) for name, kind, shape in form["columns"]]
        dtype = np.dtype(columns)
        segments = tuple(
            Segment(file=file, begins=np.array(begins, np.int64), ends=np.array(ends, np.int64))
            for file, begins, ends in document
        )
        if dtype.hasobject or not all(is_segment(each.file) for each in segments):
            raise ValueError("entries are numbers in files of the checkpoint's own")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the entries of {folder} cannot be read: {error}") from error
    return StoredEntries(
        dtype=dtype,
        first=form["first"],
        ends=form["ends"],
        capacity=form["capacity"],
        generation=form["generation"],
        read=_Reader(folder, dtype, segments),
        folder=folder,
        segments=segments,
    )


class _Reader:
    """Reads entries from segments: `read(row, begin, end)`."""

    def __init__(
        self, folder: Path, dtype: np.dtype[np.void], segments: tuple[Segment, ...]
    ) -> None:
        self._folder, self._dtype, self._segments = folder, dtype, segments
        counts = [segment.ends - segment.begins for segment in segments]
        self._offsets = [np.cumsum(count) - count for count in counts]

    def __call__(self, row: int, begin: int, end: int) -> Mapping[str, Array]:
        parts = []
        for segment, offsets in zip(self._segments, self._offsets, strict=True):
            low = max(begin, int(segment.begins[row]))
            count = min(end, int(segment.ends[row])) - low
            if count > 0:
                place = int(offsets[row]) + low - int(segment.begins[row])
                parts.append(self._from_file(segment.file, place, count))
        entries = np.concatenate(parts) if parts else np.zeros(0, self._dtype)
        if len(entries) != end - begin:
            raise CheckpointError(
                f"{self._folder} lacks entries {begin:,} to {end:,} of row {row}; use another "
                "checkpoint"
            )
        return {name: entries[name] for name in self._dtype.names or ()}

    def _from_file(self, name: str, place: int, count: int) -> Array:
        path = self._folder / name
        try:
            return np.fromfile(path, self._dtype, count, offset=place * self._dtype.itemsize)
        except OSError as error:
            raise CheckpointError(f"cannot read {path}: {error}") from error
