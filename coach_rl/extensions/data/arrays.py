"""The arrays of a data set's file, read block by block: npz, HDF5, CSV; see `parquet` as well.

A reader opens a file and lists its arrays with their shapes and dtypes; nothing is read before it
is wanted, nothing is unpickled, and no link to another file is followed.
"""

import csv
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.records import Array
from coach_rl.extensions.data.column_cache import BLOCK_BYTES

MOST_ARRAYS = 1_000
"""Arrays that a file has at most."""
MOST_LINE = 1 << 20
"""Characters of a CSV file's line at most."""
_KINDS = "biuf"
"""Kinds of numpy's dtypes that hold numbers."""


@dataclass(frozen=True)
class StoredArray:
    """An array in a file."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    blocks: Callable[[], Iterator[Array]]
    """Its values in blocks of a few megabytes along the first axis."""

    @property
    def nbytes(self) -> int:
        """Its size in memory."""
        return int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize


def npz_arrays(path: Path, opened: ExitStack) -> dict[str, StoredArray]:
    """The arrays of a zip of numpy's files."""
    archive = opened.enter_context(zipfile.ZipFile(path))
    members = archive.infolist()
    check_count(len(members))
    found = {}
    for member in members:
        if not member.filename.endswith(".npy"):
            raise ValueError(f"it has '{member.filename}', which is no array of numpy's")
        name = member.filename.removesuffix(".npy")
        if name in found:
            raise ValueError(f"it has '{name}' twice")
        found[name] = _npz_array(archive, member, name)
    return found


def _npz_array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> StoredArray:
    with archive.open(member) as file:
        shape, is_fortran, dtype = _npy_header(file, name)
    check_kind(name, dtype)
    stored = StoredArray(shape, dtype, lambda: blocks())
    if min(shape, default=0) < 0 or stored.nbytes > member.file_size:
        raise ValueError(
            f"the header of '{name}' has shape {shape} of {dtype}, {stored.nbytes:,} bytes, of "
            f"which {member.file_size:,} can be there at most"
        )
    if is_fortran and len(shape) > 1:
        raise ValueError(f"'{name}' is in Fortran's order; write it with numpy.ascontiguousarray")

    def blocks() -> Iterator[Array]:
        with archive.open(member) as file:
            _npy_header(file, name)
            for count in counts_of_blocks(shape, dtype):
                size = count * _entry_bytes(shape, dtype)
                content = file.read(size)
                if len(content) != size:
                    raise ValueError(f"'{name}' ends too early")
                yield np.frombuffer(content, dtype).reshape(-1 if not shape else count, *shape[1:])
            if file.read(1):  # which compares the zip's checksum, too
                raise ValueError(f"'{name}' has more than the shape {shape} of its header")

    return stored


def _npy_header(file: Any, name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }.get(np.lib.format.read_magic(file))
    if read is None:
        raise ValueError(f"'{name}' is of another version of numpy's format than 1.0 or 2.0")
    shape, is_fortran, dtype = read(file)
    return tuple(int(each) for each in shape), bool(is_fortran), dtype


def hdf5_arrays(path: Path, opened: ExitStack) -> dict[str, StoredArray]:
    """The data sets of an HDF5 file by their paths, those of other files left out."""
    try:
        h5py = import_module("h5py")
    except ImportError as error:
        raise ConfigurationError(
            f"data sets in HDF5 need the package 'h5py', which cannot be imported ({error}); "
            f"{how_to_install('minari')}"
        ) from error
    file = opened.enter_context(h5py.File(path, "r"))
    found: dict[str, StoredArray] = {}
    groups = [("", file)]
    visited = 0
    while groups:
        prefix, group = groups.pop()
        for key in group:
            visited += 1
            check_count(visited)
            link = group.get(key, getlink=True)
            if not isinstance(link, h5py.HardLink):  # to another place, or another file
                continue
            each = group[key]
            name = f"{prefix}{key}"
            if isinstance(each, h5py.Group):
                if name.count("/") < _DEEPEST:
                    groups.append((f"{name}/", each))
            elif isinstance(each, h5py.Dataset) and each.dtype.kind in _KINDS and each.shape:
                found[name] = _hdf5_array(each, name)
    return found


_DEEPEST = 8
"""Groups in groups of an HDF5 file that are read."""


def _hdf5_array(each: Any, name: str) -> StoredArray:
    if each.is_virtual or each.external:
        raise ValueError(f"'{name}' lies in another file, which is not read")
    shape = tuple(int(size) for size in each.shape)

    def blocks() -> Iterator[Array]:
        begin = 0
        for count in counts_of_blocks(shape, each.dtype):
            yield np.asarray(each[begin : begin + count])
            begin += count

    return StoredArray(shape, each.dtype, blocks)


def csv_arrays(path: Path, opened: ExitStack) -> dict[str, StoredArray]:  # noqa: ARG001
    """The columns of a CSV file by the names in its first line, [T] each: int64, or float64."""
    names: list[str] = []
    are_whole = np.zeros(0, np.bool_)
    count = 0
    for number, row in _csv_rows(path):
        if not names:
            names = row
            are_whole = np.ones(len(names), np.bool_)
            check_count(len(names))
            if len(set(names)) < len(names):
                raise ValueError(f"its first line has the same name twice: {', '.join(names)}")
            continue
        if len(row) != len(names):
            raise ValueError(f"line {number:,} has {len(row)} values, the first {len(names)} names")
        are_whole &= [_is_whole(text) for text in row]
        count += 1
    if not count:
        raise ValueError("it has no line of values")
    found = {}
    for place, name in enumerate(names):
        dtype = np.dtype(np.int64 if are_whole[place] else np.float64)
        found[name] = StoredArray((count,), dtype, _csv_column(path, place, name, dtype))
    return found


def _csv_column(
    path: Path, place: int, name: str, dtype: np.dtype[Any]
) -> Callable[[], Iterator[Array]]:
    def blocks() -> Iterator[Array]:
        values: list[float] = []
        rows = _csv_rows(path)
        next(rows)
        for number, row in rows:
            values.append(_number(row[place], name, number))
            if len(values) == _CSV_BLOCK:
                yield np.array(values, dtype)
                values = []
        yield np.array(values, dtype)

    return blocks


_CSV_BLOCK = 100_000
_WORDS = {"true": 1, "false": 0}


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """The numbers of lines, from 1, and their values; empty lines are left out."""
    with path.open(encoding="utf-8-sig", newline="") as file:

        def lines() -> Iterator[str]:
            while line := file.readline(MOST_LINE):
                if len(line) == MOST_LINE:
                    raise ValueError(f"it has a line of {MOST_LINE:,} characters and more")
                yield line

        reader = csv.reader(lines(), strict=True)
        for row in reader:
            if row:
                yield reader.line_num, [each.strip() for each in row]


def _is_whole(text: str) -> bool:
    return text.lower() in _WORDS or (text.lstrip("+-").isdecimal() and len(text) < _MOST_DIGITS)


_MOST_DIGITS = 19


def _number(text: str, name: str, line: int) -> float:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text) if _is_whole(text) else float(text)
    except ValueError:
        raise ValueError(f"line {line:,} has '{text[:30]}' under '{name}', no number") from None


def check_count(count: int) -> None:
    """Raise `ValueError` where a file has too many arrays."""
    if count > MOST_ARRAYS:
        raise ValueError(f"it has more than {MOST_ARRAYS:,} arrays")


def check_kind(name: str, dtype: np.dtype[Any]) -> None:
    """Raise `ValueError` unless an array holds numbers."""
    if dtype.hasobject:
        raise ValueError(f"'{name}' holds pickled objects, which are never read")
    if dtype.kind not in _KINDS:
        raise ValueError(f"'{name}' holds {dtype}, not numbers")


def _entry_bytes(shape: tuple[int, ...], dtype: np.dtype[Any]) -> int:
    return int(np.prod(shape[1:], dtype=np.int64)) * dtype.itemsize


def counts_of_blocks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Iterator[int]:
    """The numbers of entries in each block."""
    left = shape[0] if shape else 1
    step = max(1, BLOCK_BYTES // max(1, _entry_bytes(shape, dtype)))
    while left:
        yield min(step, left)
        left -= min(step, left)
