"""Files with the entries of one row, one after the other; each is written once.

The newest is open: it is a shared mapping of a file whose room on the disk is reserved, as a full
disk would otherwise end the process at some later write. A file that is full is closed: its
content is brought to the disk and its checksum computed, by a thread beside the program; nothing
writes to it after that.
"""

import hashlib
import mmap
import os
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np

from coach_rl.configuration.file_writing import sync
from coach_rl.core.records import Array
from coach_rl.core.state import EntryFile


class Chunk:
    """A file of entries in memory, as a mapping; see `opened`, `waiting` and `adopted`.

    Args:
        begin: Number of its first entry.
        path: The file; None where it is still to be made.
        entries: Its entries, structured [K].
        is_own: Whether the file is in the folder of this memory.
    """

    def __init__(self, begin: int, path: Path | None, entries: Array, *, is_own: bool) -> None:
        self.begin = begin
        self.path = path
        self._show(entries)
        self.checksum: Future[str] | None = None
        """The file's sha256, once it is closed; None while it is open."""
        self._is_own = is_own

    @classmethod
    def opened(cls, begin: int, path: Path, length: int, dtype: np.dtype[np.void]) -> "Chunk":
        """A new file with room for so many entries.

        Raises:
            OSError: There is no room for it.
        """
        return cls(begin, path, _new_file(path, length, dtype), is_own=True)

    @classmethod
    def waiting(cls, begin: int, length: int, dtype: np.dtype[np.void]) -> "Chunk":
        """Room for so many entries in ordinary memory, until `own` makes the file."""
        return cls(begin, None, np.zeros(length, dtype), is_own=False)

    @classmethod
    def adopted(cls, file: EntryFile, dtype: np.dtype[np.void]) -> "Chunk":
        """A closed file, such as one of a checkpoint, which is never written to.

        Raises:
            OSError: It cannot be read, or has another size.
        """
        with file.path.open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            if size != (file.end - file.begin) * dtype.itemsize:
                raise OSError(f"{file.path} has {size:,} bytes")
            mapped = mmap.mmap(source.fileno(), size, access=mmap.ACCESS_READ)
        chunk = cls(file.begin, file.path, np.frombuffer(mapped, dtype), is_own=False)
        chunk.checksum = Future()
        chunk.checksum.set_result(file.sha256)
        return chunk

    @property
    def end(self) -> int:
        """The number behind its last entry."""
        return self.begin + len(self.entries)

    def finish(self) -> str:
        """Bring a full file to the disk; return its sha256."""
        assert self.path is not None
        digest = hashlib.sha256(self.entries.view(np.uint8).data)
        sync(self.path)
        return digest.hexdigest()

    def is_on(self, disk: int) -> bool:
        """True if its file is on the disk with this number."""
        try:
            return self.path is not None and self.path.stat().st_dev == disk
        except FileNotFoundError:
            return False

    def is_in(self, folder: Path) -> bool:
        """True if its file is in a folder."""
        return self.path is not None and self.path.parent == folder

    def own(self, path: Path) -> None:
        """Move its entries to a file of this name, from one of its own elsewhere.

        Raises:
            OSError: The disk refuses.
        """
        earlier = self.path
        if earlier is None or self.checksum is None:
            entries = _new_file(path, len(self.entries), self.entries.dtype)
            entries[:] = self.entries
            self._show(entries)
        else:
            self.checksum.exception()  # waits for the thread, which needs the earlier name
            self._link(earlier, path)
        self.remove()
        self.path = path
        self._is_own = True

    def _show(self, entries: Array) -> None:
        self.entries = entries
        self.columns: Mapping[str, Array] = {
            name: entries[name] for name in entries.dtype.names or ()
        }
        """Views of the entries' columns, [K, ...] each."""

    def _link(self, source: Path, path: Path) -> None:
        """Link a closed file; copy it where the file system has no links."""
        try:
            os.link(source, path)
        except OSError:  # also where it has been deleted, which leaves what is mapped
            with path.open("xb") as copy:
                copy.write(self.entries.view(np.uint8).data)
                copy.flush()
                os.fsync(copy.fileno())

    def remove(self) -> None:
        """Delete the file's name here; checkpoints that have linked it keep theirs."""
        if self._is_own and self.path is not None:
            self.path.unlink(missing_ok=True)


def _new_file(path: Path, length: int, dtype: np.dtype[Any]) -> Array:
    """A shared mapping of a new file, whose room is reserved, as entries [K]."""
    size = length * dtype.itemsize
    with path.open("xb+") as file:
        try:
            _reserve(file.fileno(), size)
            return np.frombuffer(mmap.mmap(file.fileno(), size), dtype)
        except BaseException:
            path.unlink()
            raise


def _reserve(descriptor: int, size: int) -> None:
    """Reserve room on the disk for a file; OSError where there is none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    block = bytes(min(size, 1 << 20))  # pragma: no cover - for systems without the call
    for begin in range(0, size, len(block)):  # pragma: no cover
        os.write(descriptor, block[: size - begin])
