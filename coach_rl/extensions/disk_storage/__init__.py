"""Replay memories on the disk.

`disk_tables` is the storage, `chunks` has the files of a row. A file is written once, in order, and
closed when it is full; checkpoints link those that are closed, so they write little, however large
the memory is. May import core and memories.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.disk_storage.disk_tables import DiskStorage
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["DiskStorage"]
