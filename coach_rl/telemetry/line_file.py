"""A text file that grows by whole lines, also where the disk is full."""

import contextlib
import os
from pathlib import Path

from coach_rl.core.file_writing import without_links


class LineFile:
    """Appends lines at once: a killed run keeps them, and none is half there.

    Args:
        path: The file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "ab", buffering=0, opener=without_links)  # noqa: SIM115

    def append(self, lines: str) -> None:
        """Append whole lines, all or none.

        Raises:
            OSError: The disk refuses, or the file has been removed or replaced.
        """
        held, named = os.fstat(self._file.fileno()), self._path.stat()
        if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino):
            raise FileNotFoundError(f"{self._path} has been replaced")
        data = lines.encode()
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            with contextlib.suppress(OSError):  # the disk is gone altogether
                os.ftruncate(self._file.fileno(), held.st_size)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()
