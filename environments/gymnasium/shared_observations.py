"""Observations of a worker's rows in memory that both processes share.

Pictures would otherwise pass through a pipe, packed and unpacked. The worker writes what a step
shows, then replies; this process copies it before the next request.
"""

import mmap
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from coach_rl.core.records import Action, IntArray, Observation
from coach_rl.environments.gymnasium.layout import Layout
from coach_rl.environments.gymnasium.rows import LocalRows, RowsAnswer

LEAST_BYTES = 16_384
"""Bytes of the observations of a worker's rows from which on they are shared."""
_FAST = Path("/dev/shm")
"""A file system in memory, where there is one."""
_ALIGNED = 64


class SharedObservations:
    """The observations of some rows, in a mapped file.

    Args:
        layout: Their form.
        count: The most rows.
        path: The file, which may have no name any more once it is mapped.
    """

    def __init__(self, layout: Layout, count: int, path: Path) -> None:
        size = bytes_of(layout, count)
        with path.open("r+b") as file:
            memory = mmap.mmap(file.fileno(), size)
        self._arrays: Observation = {}
        begin = 0
        for key, form in layout.buffers(count).items():
            flat = np.frombuffer(memory, form.dtype, form.size, offset=begin)
            self._arrays[key] = flat.reshape(form.shape)
            begin += _aligned(form.nbytes)

    def write(self, observation: Observation) -> None:
        """Write the observations of R rows, [R, ...] each."""
        for key, values in observation.items():
            self._arrays[key][: len(values)] = values

    def first(self, count: int) -> Observation:
        """Those of the first R rows, [R, ...] each: views, which change with the next step."""
        return {key: values[:count] for key, values in self._arrays.items()}


class SharingRows(LocalRows):
    """Rows in a worker whose observations of steps are shared once `share` was called."""

    _shared: SharedObservations | None = None

    def share(self, path: Path) -> None:
        """Write observations into this file from now on."""
        self._shared = SharedObservations(self.layout, len(self._rows), path)

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """See `LocalRows.step`; shared observations are left out of the answer."""
        answer = super().step(rows, action)
        if self._shared is None:
            return answer
        self._shared.write(answer.observation)
        is_same = answer.first_observation is answer.observation
        return answer._replace(
            observation={}, first_observation={} if is_same else answer.first_observation
        )


def with_shared(answer: RowsAnswer, shared: SharedObservations) -> RowsAnswer:
    """An answer of `SharingRows` with its observations, as views."""
    observation = shared.first(len(answer.reward))
    return answer._replace(
        observation=observation, first_observation=answer.first_observation or observation
    )


def new_shared_file(layout: Layout, count: int) -> Path:
    """A new file with room for the observations of so many rows; to be deleted once it is mapped.

    Raises:
        OSError: It cannot be made.
    """
    size = bytes_of(layout, count)
    has_room = os.access(_FAST, os.W_OK) and shutil.disk_usage(_FAST).free >= 2 * size
    with tempfile.NamedTemporaryFile(
        prefix="coach_", dir=_FAST if has_room else None, delete=False
    ) as file:
        file.write(bytes(size))
    return Path(file.name)


def bytes_of(layout: Layout, count: int) -> int:
    """Bytes of the observations of so many rows."""
    return sum(_aligned(form.nbytes) for form in layout.buffers(count).values())


def _aligned(size: int) -> int:
    return -(-size // _ALIGNED) * _ALIGNED
