"""The forms of files that data sets are read from, by the end of a file's name."""

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

from coach_rl.extensions.data.arrays import StoredArray, csv_arrays, hdf5_arrays, npz_arrays
from coach_rl.extensions.data.parquet import parquet_arrays

Reader = Callable[[Path, ExitStack], Mapping[str, StoredArray]]
"""A function that opens a file and returns its arrays by name."""
READERS: Mapping[str, Reader] = {
    ".npz": npz_arrays,
    ".h5": hdf5_arrays,
    ".hdf5": hdf5_arrays,
    ".csv": csv_arrays,
    ".parquet": parquet_arrays,
}
"""Readers by the end of a file's name."""
