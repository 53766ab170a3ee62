"""The columns of a Parquet file, read block by block by pyarrow.

A column of numbers is an array [T]. A column of lists is an array [T, n, ...] if its lists are all
of one length, as those of observations and actions are.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.records import Array
from coach_rl.extensions.data.arrays import (
    StoredArray,
    check_count,
    check_kind,
    counts_of_blocks,
)

MOST_AXES = 4
"""Lists in lists of a column that are read: a picture's height, width and colours, and one more."""


def parquet_arrays(path: Path, opened: ExitStack) -> dict[str, StoredArray]:
    """The columns of a Parquet file by their names.

    Raises:
        ConfigurationError: pyarrow is missing.
        ValueError: A column holds no numbers, has gaps or lists of several lengths.
    """
    try:
        parquet = import_module("pyarrow.parquet")
    except ImportError as error:
        raise ConfigurationError(
            f"data sets in Parquet need the package 'pyarrow', which cannot be imported ({error}); "
            f"{how_to_install('parquet')}"
        ) from error
    file = opened.enter_context(parquet.ParquetFile(path))
    schema = file.schema_arrow
    check_count(len(schema.names))
    if len(set(schema.names)) < len(schema.names):
        raise ValueError(f"it has a column twice: {', '.join(schema.names)}")
    columns = (_Column(file, field) for field in schema)
    return {column.name: column.stored() for column in columns if column.has_numbers}


class _Column:
    """A column of a Parquet file.

    Args:
        file: The file, a `pyarrow.parquet.ParquetFile`.
        field: Its name and type, a `pyarrow.Field`.
    """

    def __init__(self, file: Any, field: Any) -> None:
        self._file = file
        self._arrow = import_module("pyarrow")
        self.name: str = field.name
        self._type = field.type

    @property
    def has_numbers(self) -> bool:
        """Numbers, or lists of them, are in the column; texts and dates are left out."""
        inner = self._inner_type()
        types = self._arrow.types
        kinds = (types.is_integer, types.is_floating, types.is_boolean)
        return any(is_kind(inner) for is_kind in kinds)

    def _inner_type(self) -> Any:
        inner = self._type
        while self._is_list(inner):
            inner = inner.value_type
        return inner

    def _is_list(self, kind: Any) -> bool:
        types = self._arrow.types
        lists = (types.is_list, types.is_large_list, types.is_fixed_size_list)
        return any(is_kind(kind) for is_kind in lists)

    def stored(self) -> StoredArray:
        """The column as an array."""
        count = self._file.metadata.num_rows
        none = self._arrow.array([], self._inner_type())
        dtype = none.to_numpy(zero_copy_only=False).dtype
        check_kind(self.name, dtype)
        first = next(self._batches(1), None)
        shape = (count, *(() if first is None else first.shape[1:]))
        return StoredArray(shape, dtype, self._blocks(shape, dtype))

    def _blocks(
        self, shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> Callable[[], Iterator[Array]]:
        most = max(islice(counts_of_blocks(shape, dtype), 1), default=1)

        def blocks() -> Iterator[Array]:
            left = shape[0]
            for block in self._batches(most):
                left -= len(block)
                if block.shape[1:] != shape[1:] or left < 0:
                    raise ValueError(f"'{self.name}' has lists of several lengths, or other rows")
                yield block
            if left:
                raise ValueError(f"'{self.name}' ends too early")

        return blocks

    def _batches(self, most: int) -> Iterator[Array]:
        """Its values, [up to `most`, ...] each."""
        for batch in self._file.iter_batches(batch_size=most, columns=[self.name]):
            if len(batch):
                yield self._array(batch.column(0))

    def _array(self, values: Any) -> Array:
        """Values of pyarrow as an array, [rows, ...]."""
        shape = [len(values)]
        while self._is_list(values.type):
            if values.null_count or len(shape) > MOST_AXES:
                raise ValueError(f"'{self.name}' has gaps, or more than {MOST_AXES} lists in lists")
            inner = values.flatten()
            length, rest = divmod(len(inner), len(values)) if len(values) else (0, 0)
            lengths = values.value_lengths() if hasattr(values, "value_lengths") else None
            if rest or (lengths is not None and len(lengths.unique()) > 1):
                raise ValueError(f"'{self.name}' has lists of several lengths")
            shape.append(length)
            values = inner
        if values.null_count:
            raise ValueError(f"'{self.name}' has gaps where values should be")
        found: Array = np.asarray(values.to_numpy(zero_copy_only=False))
        return found.reshape(shape)
