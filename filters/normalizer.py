"""The stage behind observation and reward normalization, by running mean and variance."""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.records import Array, IntArray
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.saved import SavedAttribute
from coach_rl.filters.stages import InputStage, RowMemory, box


class Normalizer(InputStage):
    """`(value - mean) / sqrt(variance + epsilon)`, clipped.

    Before anything was taken in, mean 0 and variance 1 are assumed.

    Args:
        space: Of one row's value.
        clip: Largest magnitude of what comes out; None for no limit.
        epsilon: Keeps elements that never change from dividing by 0.
        dtype: Of what comes out.
    """

    SAVED = (SavedAttribute("_statistics", inline=True),)

    def __init__(
        self,
        space: spaces.Box,
        *,
        clip: float | None,
        epsilon: float,
        dtype: npt.DTypeLike,
    ) -> None:
        limit = np.full(space.shape, np.inf if clip is None else clip)
        super().__init__(box(-limit, limit, dtype))
        self._clip = clip
        self._epsilon = epsilon
        self._dtype = np.dtype(dtype)
        self._statistics = RunningStatistics(space.shape)
        self._scale = self._statistics.inverse_std(epsilon)

    def update(self, values: Array, _memory: RowMemory, _rows: IntArray, /) -> None:
        self._statistics.update(values)
        self._scale = self._statistics.inverse_std(self._epsilon)

    def apply(self, values: Array, _memory: RowMemory, _rows: IntArray, /) -> Array:
        centered = np.subtract(values, self._statistics.mean)
        centered *= self._scale
        if self._clip is not None:
            np.minimum(centered, self._clip, out=centered)
            np.maximum(centered, -self._clip, out=centered)
        return centered.astype(self._dtype, copy=False)

    def note_loaded(self) -> None:
        """Compute the scale of the loaded statistics."""
        self._scale = self._statistics.inverse_std(self._epsilon)
