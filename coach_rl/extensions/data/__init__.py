"""Data sets: transitions of a memory out to Minari, and in.

May import what memories may. `minari_data` reads and writes, `prefill` fills a memory.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.data.minari_data import read_minari, write_minari
    from coach_rl.extensions.data.prefill import DataSetParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DataSetParameters",
    "read_minari",
    "write_minari",
]
