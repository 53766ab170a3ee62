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

import numpy as np

from coach_rl.configuration.file_writing import sync
from coach_rl.core.records import Array
from coach_rl.core.state import EntryFile


class Chunk:
    """A file of entries in memory, as a mapping; see `opened` and `adopted`.

    Args:
        begin: Number of its first entry.
        path: The file.
        entries: Its entries, structured [K].
        is_own: Whether the file is in the folder of this memory.
    """

    def __init__(self, begin: int, path: Path, entries: Array, *, is_own: bool) -> None:
        self.begin = begin
        self.path = path
        self.entries = entries
        self.columns: Mapping[str, Array] = {
            name: entries[name] for name in entries.dtype.names or ()
        }
        """Views of the entries' columns, [K, ...] each."""
        self.checksum: Future[str] | None = None
        """The file's sha256, once it is closed; None while it is open."""
        self._is_own = is_own

    @classmethod
    def opened(cls, begin: int, path: Path, length: int, dtype: np.dtype[np.void]) -> "Chunk":
        """A new file with room for so many entries.

        Raises:
            OSError: There is no room for it.
        """
        with path.open("xb+") as file:
            try:
                _reserve(file.fileno(), length * dtype.itemsize)
                mapped = mmap.mmap(file.fileno(), length * dtype.itemsize)
            except BaseException:
                path.unlink()
                raise
        return cls(begin, path, np.frombuffer(mapped, dtype), is_own=True)

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
        digest = hashlib.sha256(self.entries.view(np.uint8).data)
        sync(self.path)
        return digest.hexdigest()

    def own(self, path: Path) -> None:
        """Give a file of another folder a second name; a copy where the file system has no links.

        Raises:
            OSError: Neither can be made.
        """
        if self._is_own:
            return
        try:
            os.link(self.path, path)
        except OSError:  # also where it has been deleted, which leaves what is mapped
            with path.open("xb") as copy:
                copy.write(self.entries.view(np.uint8).data)
                copy.flush()
                os.fsync(copy.fileno())
        self.path = path
        self._is_own = True

    def remove(self) -> None:
        """Delete the file's name here; checkpoints that have linked it keep theirs."""
        if self._is_own:
            self.path.unlink(missing_ok=True)


def _reserve(descriptor: int, size: int) -> None:
    """Reserve room on the disk for a file; OSError where there is none."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
        return
    block = bytes(min(size, 1 << 20))  # pragma: no cover - for systems without the call
    for begin in range(0, size, len(block)):  # pragma: no cover
        os.write(descriptor, block[: size - begin])
