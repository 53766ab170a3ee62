"""Packing of state: a tree of plain JSON, and the tensors and entries of memories beside it.

    checkpoints/step_20480/rows_000001.bin      a segment: entries row by row, oldest first

Appended entries are files that are written once and shared by hard links. A checkpoint has a link
to every segment it needs. So each checkpoint is a whole folder, and a segment is gone with the last
checkpoint that needs it; nothing has to be counted.
"""

import hashlib
import itertools
import os
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import torch

from coach_rl.configuration.strict_json import FLOAT_TAG, Json, float_to_json
from coach_rl.core.errors import CheckpointError
from coach_rl.core.records import Array, IntArray
from coach_rl.core.state import Appended, EntryFile, State

_KEPT_ASIDE = ("$array", "$scalar", "$tensor")
_TUPLE = "$tuple"
_APPENDED = "$appended"
MERGED_BYTES = 64_000_000
"""Segments up to this size are merged with newer ones, so that there are few of them."""
MOST_ENTRIES = 10**12
"""Bound of the entries of a memory, which no disk holds."""
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


class Packer:
    """Takes arrays, tensors and appended entries out of a tree and leaves their names in it.

    Args:
        folder: The checkpoint's.
        earlier: Those of an earlier checkpoint.
        memories: Whether appended entries are kept.
    """

    def __init__(self, folder: Path, earlier: Stored, *, memories: bool) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.entries: dict[str, StoredEntries] = {}
        self.left_out = False
        self._storages: set[int] = set()
        self._folder = folder
        self._earlier = earlier
        self._memories = memories
        self._shared: list[tuple[Path, str, str]] = []
        """Files to link, with their names in the checkpoint and their checksums."""
        self._new: list[tuple[str, Appended, IntArray]] = []
        self._numbers = itertools.count(1 + earlier.last_number)

    def pack(self, value: object, path: str) -> Json:
        """The tree as JSON; what is at `path` in it.

        Raises:
            CheckpointError: It holds something that a checkpoint cannot.
        """
        match value:
            case Appended():
                return {_APPENDED: self._pack_appended(value, path)}
            case torch.Tensor():
                return {"$tensor": self._keep(value.detach().cpu(), path)}
            case np.generic():
                return {"$scalar": self._keep(_as_tensor(np.asarray(value), path), path)}
            case np.ndarray():
                return {"$array": self._keep(_as_tensor(value, path), path)}
            case None | bool() | int() | str() if not isinstance(value, Enum):
                return value
            case float():
                return float_to_json(value)
            case list():
                return [self.pack(part, f"{path}/{index}") for index, part in enumerate(value)]
            case tuple():
                return {_TUPLE: self.pack(list(value), path)}
            case dict():
                return {
                    key: self.pack(part, f"{path}/{key}") for key, part in self._items(value, path)
                }
        raise CheckpointError(
            f"{path} is a {type(value).__name__}, which a checkpoint cannot hold; "
            "state_dict may return dicts, lists, arrays, tensors, numbers, strings, booleans "
            "and None"
        )

    def write_entries(self, folder: Path) -> dict[str, str]:
        """Write what is new of the entries and link the rest; checksums by file."""
        sums = {}
        for source, name, sums[name] in self._shared:
            _share_file(source, folder / name)
        for file, appended, since in self._new:
            sums[file] = write_segment(folder / file, appended, since)
        return sums

    def _pack_appended(self, appended: Appended, path: str) -> Json:
        """Decide which segments have the entries."""
        if not self._memories:
            self.left_out = True
            return None
        stored = self._earlier.entries.get(path)
        if appended.files:
            segments, since = self._link_files(appended)
        else:
            segments, since = shared(appended, stored)
            if stored is not None:
                names = [segment.file for segment in segments]
                sums = self._earlier.sums
                self._shared += [(stored.folder / name, name, sums[name]) for name in names]
        if (since < appended.ends).any():
            file = f"rows_{next(self._numbers):06d}.bin"
            self._new.append((file, appended, since))
            segments = (*segments, Segment(file=file, begins=since, ends=appended.ends))
        form = form_of(appended)
        self.entries[path] = stored_entries(self._folder, form, segments_json(segments))
        return self.pack(form, path)

    def _link_files(self, appended: Appended) -> tuple[tuple[Segment, ...], IntArray]:
        """A segment for each of the files, and the first entry of each row behind them, [N]."""
        segments = []
        since = appended.first.copy()
        for each in appended.files:
            row = each.row
            if each.begin <= since[row] < each.end:
                begins = np.zeros_like(since)
                ends = np.zeros_like(since)
                begins[row] = each.begin
                ends[row] = since[row] = each.end
                name = f"rows_{next(self._numbers):06d}.bin"
                segments.append(Segment(file=name, begins=begins, ends=ends))
                self._shared.append((each.path, name, each.sha256))
        return tuple(segments), since

    def _items(self, value: dict[object, object], path: str) -> Iterator[tuple[str, object]]:
        for key, part in value.items():
            if not isinstance(key, str) or key.startswith("$"):
                raise CheckpointError(
                    f"{path} has the key {key!r}; keys are strings without a leading $"
                )
            yield key, part

    def _keep(self, tensor: torch.Tensor, path: str) -> str:
        tensor = tensor.contiguous()
        storage = tensor.untyped_storage().data_ptr()
        if storage in self._storages:
            tensor = tensor.clone()
        self._storages.add(storage)
        self.tensors[path] = tensor
        return path


class Unpacker:
    """Puts arrays, tensors and appended entries back into a tree.

    Args:
        folder: The checkpoint's.
        tensors: Tensors by name.
        segments: Segments of appended entries by their place; the entries of others are left out.
        sums: Checksums of its files, by name.
    """

    def __init__(
        self,
        folder: Path,
        tensors: Mapping[str, torch.Tensor],
        segments: Mapping[str, Json],
        sums: Mapping[str, str],
    ) -> None:
        self.entries: dict[str, StoredEntries] = {}
        self._folder = folder
        self._tensors = tensors
        self._segments = segments
        self._sums = sums

    def unpack(self, document: Json, path: str = "state") -> Any:
        """The tree that `pack` was given; memories that were left out are None.

        Raises:
            CheckpointError: A tensor is missing.
        """
        match document:
            case list():
                return [self.unpack(part, f"{path}/{i}") for i, part in enumerate(document)]
            case dict():
                tag, content = next(iter(document.items()), ("", ""))
                if tag in _KEPT_ASIDE:
                    return _restore(tag, self._tensor(content))
                if tag == _TUPLE:
                    return tuple(self.unpack(content, path))
                if tag == FLOAT_TAG:
                    return float(content)
                if tag == _APPENDED:
                    return self._appended(content, path)
                return {key: self.unpack(part, f"{path}/{key}") for key, part in document.items()}
        return document

    def _appended(self, content: Json, path: str) -> StoredEntries | None:
        if path not in self._segments:
            return None
        form = self.unpack(content)
        self.entries[path] = stored_entries(
            self._folder, form, self._segments[path], sums=self._sums
        )
        return self.entries[path]

    def _tensor(self, name: str) -> torch.Tensor:
        if name not in self._tensors:
            raise CheckpointError(f"{self._folder} names the tensor '{name}', which is missing")
        return self._tensors[name]


def is_segment(name: str) -> bool:
    """Return whether a file of that name is a segment."""
    return _SEGMENT.fullmatch(name) is not None


def shared(
    appended: Appended, stored: StoredEntries | None
) -> tuple[tuple[Segment, ...], IntArray]:
    """The segments that a new checkpoint shares with an earlier one of the same run.

    Nothing is shared where that would keep more entries that are not needed than there are
    entries: a row that stands still must not keep the other rows' segments for ever.

    Args:
        appended: The entries to save.
        stored: Those of the earlier checkpoint; None: there is none.

    Returns:
        The segments that are shared, and the first entry of each row that is not in them, [N].
    """
    first = appended.first
    ends = appended.ends
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


def _share_file(source: Path, target: Path) -> None:
    """Link a file, or copy it where the file system has no hard links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
        with target.open("rb") as file:
            os.fsync(file.fileno())


def form_of(appended: Appended) -> State:
    """The form of appended entries in a state: columns, rows and capacity."""
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


def stored_entries(
    folder: Path, form: State, document: Json, *, sums: Mapping[str, str] | None = None
) -> StoredEntries:
    """The entries in a checkpoint's folder, read on demand.

    Args:
        folder: The checkpoint's.
        form: What `form_of` returned.
        document: What `segments_json` returned.
        sums: Checksums of its files, by name; None: they are not known.

    Raises:
        CheckpointError: They describe nothing that can be read.
    """
    try:
        columns = [(name, np.dtype(kind), tuple(shape)) for name, kind, shape in form["columns"]]
        dtype = np.dtype(columns)
        is_own = not dtype.hasobject
        segments: list[Segment] = []
        for file, begins, ends in document:
            is_own &= is_segment(file)
            bounds = {"begins": np.array(begins, np.int64), "ends": np.array(ends, np.int64)}
            segments.append(Segment(file=file, **bounds))
        if not is_own:
            raise ValueError("entries are numbers in files of the checkpoint's own")
        for name in ("capacity", "generation"):
            if type(form[name]) is not int or not 0 <= form[name] <= MOST_ENTRIES:
                raise ValueError(f"{name} must be from 0 to {MOST_ENTRIES:,}, got {form[name]!r}")
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(f"the entries of {folder} cannot be read: {error}") from error
    return StoredEntries(
        dtype=dtype,
        first=form["first"],
        ends=form["ends"],
        capacity=form["capacity"],
        generation=form["generation"],
        read=_Reader(folder, dtype, tuple(segments)),
        files=_files_of_one_row(folder, segments, sums or {}),
        folder=folder,
        segments=tuple(segments),
    )


def _files_of_one_row(
    folder: Path, segments: Iterable[Segment], sums: Mapping[str, str]
) -> tuple[EntryFile, ...]:
    """The segments, of those whose checksums are known, with entries of a single row."""
    files = []
    for segment in segments:
        rows = np.flatnonzero(segment.ends > segment.begins).tolist()
        if len(rows) == 1 and segment.file in sums:
            begin = int(segment.begins[rows[0]])
            end = int(segment.ends[rows[0]])
            path = folder / segment.file
            files.append(EntryFile(path, rows[0], begin, end, sums[segment.file]))
    return tuple(files)


class _Reader:
    """Reads entries from segments: `read(row, begin, end)`."""

    def __init__(
        self, folder: Path, dtype: np.dtype[np.void], segments: tuple[Segment, ...]
    ) -> None:
        self._folder = folder
        self._dtype = dtype
        self._segments = segments
        self._offsets: list[IntArray] = []
        for segment in segments:
            count = segment.ends - segment.begins
            self._offsets.append(np.cumsum(count) - count)

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


NOTHING_STORED = Stored()


def _as_tensor(array: Array, path: str) -> torch.Tensor:
    native = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    if not native.flags.writeable:
        native = native.copy()
    try:
        return torch.from_numpy(native)
    except TypeError as error:
        raise CheckpointError(
            f"{path} is an array of dtype {array.dtype}, which a checkpoint cannot hold"
        ) from error


def _restore(tag: str, tensor: torch.Tensor) -> object:
    if tag == "$tensor":
        return tensor
    array = tensor.numpy()
    return array[()] if tag == "$scalar" else array
