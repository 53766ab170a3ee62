"""A folder for large files of a running process."""

import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAME = "scratch"
"""Name of the folder in that of a run."""


class Scratch:
    """Makes folders for large files of a running process.

    Those of a run are in its folder (`parent`), so that checkpoints can link the files. Others are
    temporary (None).
    """

    def __init__(self) -> None:
        self.parent: Path | None = None

    def new_folder(self) -> Path:
        """A new, empty folder, removed when this object is.

        Raises:
            OSError: It cannot be made.
        """
        if self.parent is not None:
            self.parent.mkdir(exist_ok=True)
        made = Path(tempfile.mkdtemp(dir=self.parent, prefix="coach-"))
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return made

    @contextmanager
    def within(self, folder: Path) -> Iterator[None]:
        """Make folders in that of a run, which is held; remove what a killed process has left."""
        self.parent = folder / NAME
        shutil.rmtree(self.parent, ignore_errors=True)
        try:
            yield
        finally:
            shutil.rmtree(self.parent, ignore_errors=True)
            self.parent = None
