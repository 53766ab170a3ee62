"""Columns of data sets in mapped files, so that large ones need not fit into memory.

A data set is converted once, into a folder named by its checksum: each column is an array's file,
`index.json` lists them and is written last. Small data sets stay in memory. The folder is
`$COACH_DATA_CACHE`, or `coach_rl/data` in `$XDG_CACHE_HOME` (`~/.cache`).
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array, IntArray
from coach_rl.core.shown_text import readable
from coach_rl.memories.replay_memory import free_host_bytes

IN_MEMORY = 64 << 20
"""Bytes of a data set up to which its columns stay in memory."""
BLOCK_BYTES = 4 << 20
"""Bytes that are converted at a time."""
SPARE = 1 << 30
"""Bytes of the disk that a conversion leaves free."""
INDEX = "index.json"
VERSION = 2


class ColumnPlace(Protocol):
    """A place for columns that are written block by block."""

    def written(self, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> Any:
        """An array with the values of blocks, one after the other along its first axis."""
        ...

    def taken(self, values: Array, places: IntArray) -> Array:
        """The values [T, ...] at places [R], [R, ...]."""
        ...


class InMemory:
    """Columns in ordinary memory."""

    def written(self, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> Any:
        """See `ColumnPlace`."""
        return filled(np.empty(shape, dtype), blocks)

    def taken(self, values: Array, places: IntArray) -> Array:
        """See `ColumnPlace`."""
        return values[places]


class OnDisk:
    """Columns in mapped files.

    Args:
        folder: Where they are written.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._count = 0

    def written(self, shape: tuple[int, ...], dtype: np.dtype[Any], blocks: Iterable[Array]) -> Any:
        """See `ColumnPlace`."""
        if not int(np.prod(shape)):
            return np.empty(shape, dtype)
        path = self.folder / f"{self._count:03d}.npy"
        self._count += 1
        made = np.lib.format.open_memmap(path, mode="w+", dtype=dtype, shape=shape)
        filled(made, blocks)
        made.flush()
        return made

    def taken(self, values: Array, places: IntArray) -> Array:
        """See `ColumnPlace`."""
        blocks = (values[part] for part in _parts(places, values.nbytes // max(1, len(values))))
        return np.asanyarray(self.written((len(places), *values.shape[1:]), values.dtype, blocks))


def filled(column: Any, blocks: Iterable[Array]) -> Any:
    """The column, with the values of blocks; ValueError where they are not as many."""
    begin = 0
    for block in blocks:
        end = begin + len(block)
        if end > len(column):
            break
        column[begin:end] = block
        begin = end
    if begin != len(column):
        raise ValueError(f"a column of {len(column):,} entries has others than that")
    return column


def _parts(places: IntArray, entry_bytes: int) -> Iterator[IntArray]:
    step = max(1, BLOCK_BYTES // max(1, entry_bytes))
    for begin in range(0, len(places), step):
        yield places[begin : begin + step]


def blocks_of(column: Array) -> Iterator[Array]:
    """A column's entries, in blocks of a few megabytes."""
    step = max(1, BLOCK_BYTES // max(1, column.nbytes // max(1, len(column))))
    for begin in range(0, len(column), step):
        yield column[begin : begin + step]


def cache_folder() -> Path:
    """The folder of all converted data sets."""
    named = os.environ.get("COACH_DATA_CACHE")
    if named:
        return Path(named).expanduser()
    root = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(root).expanduser() / "coach_rl" / "data"


def checksum(path: Path) -> str:
    """The sha256 of a file, or of all files in a folder with their names."""
    digest = hashlib.sha256()
    is_folder = path.is_dir()
    files = sorted(each for each in path.rglob("*") if each.is_file()) if is_folder else [path]
    for each in files:
        if is_folder:
            digest.update(f"{each.relative_to(path)}\0{each.stat().st_size}\0".encode())
        with each.open("rb") as file:
            while block := file.read(BLOCK_BYTES):
                digest.update(block)
    return digest.hexdigest()


class ColumnCache:
    """The converted columns of one data set.

    Args:
        key: What they depend on: the checksums of its files.
    """

    def __init__(self, key: str) -> None:
        self.folder = cache_folder() / f"{key[:32]}-{VERSION}"

    def load(self) -> tuple[dict[str, Array], Any] | None:
        """The columns by path, mapped, and what was saved with them; None: not converted yet."""
        try:
            index = json.loads((self.folder / INDEX).read_text())
            columns = {
                path: np.load(self.folder / name, mmap_mode="r", allow_pickle=False)
                for path, name in index["columns"].items()
            }
        except (OSError, ValueError, KeyError):  # it is made again
            return None
        return columns, index["about"]

    def begin(self, path: Path, needed: int) -> OnDisk:
        """A new folder to convert into; `finish` gives it its name.

        Raises:
            ConfigurationError: There is no room.
        """
        parent = self.folder.parent
        parent.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(parent).free
        if needed + SPARE > free:
            raise ConfigurationError(
                f"the data set '{path}' takes {readable(needed)} as mapped columns in {parent}, "
                f"where {readable(free)} are free; free space, or set COACH_DATA_CACHE to another "
                "folder"
            )
        return OnDisk(Path(tempfile.mkdtemp(dir=parent, prefix="part-")))

    def finish(self, made: OnDisk, columns: Mapping[str, Array], about: Any) -> dict[str, Array]:
        """Keep the columns; they are returned by path, mapped."""
        names = {}
        for number, (path, column) in enumerate(columns.items()):
            names[path] = f"column-{number:03d}.npy"
            own = getattr(column, "filename", None)
            if own is not None and Path(own).parent == made.folder and _is_whole(column):
                Path(own).rename(made.folder / names[path])
            else:
                np.save(made.folder / names[path], column, allow_pickle=False)
        for each in made.folder.glob("[0-9]*.npy"):  # what was converted further
            each.unlink()
        (made.folder / INDEX).write_text(json.dumps({"columns": names, "about": about}))
        shutil.rmtree(self.folder, ignore_errors=True)  # one that is damaged
        made.folder.rename(self.folder)
        found = self.load()
        assert found is not None
        return found[0]


def _is_whole(column: Array) -> bool:
    """True if a mapped column is all of its file."""
    own = getattr(column, "filename", None)
    assert own is not None
    whole = np.load(own, mmap_mode="r", allow_pickle=False)
    return bool(whole.shape == column.shape and whole.dtype == column.dtype)


def check_memory(path: Path, needed: int) -> None:
    """Raise `ConfigurationError` for columns that do not fit into memory, read and once more."""
    free = free_host_bytes()
    if 2 * needed > free:
        raise ConfigurationError(
            f"the data set '{path}' holds {readable(needed)} and needs twice as much to be read, "
            f"where {readable(free)} are free; split it"
        )
