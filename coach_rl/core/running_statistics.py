"""Mean and variance of a stream of rows, in one pass."""

import math

import numpy as np
import numpy.typing as npt

from coach_rl.core.errors import NonFiniteError
from coach_rl.core.records import Array
from coach_rl.core.saved import Saved, SavedAttribute

Float64Array = npt.NDArray[np.float64]

ROUNDING = 1e-12
"""Relative spread up to which float64 numbers count as equal: the mean of equal ones is rounded."""


class RunningStatistics(Saved):
    """Count, mean and variance of each element over all rows ever taken in.

    Batches are merged by Chan, Golub and LeVeque (1979), in float64, so nothing is lost when the
    mean is large against the standard deviation, and taking rows in together or one by one agrees
    to rounding.

    Args:
        shape: Of one row.
    """

    SAVED = ("count", "mean", SavedAttribute("_squares", key="squared_deviations"))

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count = 0
        """Rows taken in."""
        self.mean: Float64Array = np.zeros(shape)
        """Mean of the rows taken in, 0 before the first, `shape`."""
        self._squares: Float64Array = np.zeros(shape)  # sum of squared distances from the mean

    @property
    def variance(self) -> Float64Array:
        """Variance of the rows taken in (divided by their number), 1 before the first, `shape`."""
        if not self.count:
            return np.ones_like(self.mean)
        return np.asarray(self._squares / self.count)

    def inverse_std(self, epsilon: float) -> Float64Array:
        """1 / sqrt(variance + epsilon), `shape`.

        No standard deviation counts as less than `ROUNDING` times the mean, so that the rounding
        of large constants isn't taken for a spread.
        """
        scale = self.variance
        scale += epsilon
        np.sqrt(scale, out=scale)
        np.maximum(scale, ROUNDING * np.abs(self.mean), out=scale)
        return np.divide(1.0, scale, out=scale)

    def update(self, rows: Array) -> None:
        """Update the statistics with rows [R, *shape]; R may be 0.

        Raises:
            NonFiniteError: A number is NaN or infinite; the statistics stay as they were.
        """
        size = len(rows)
        if not size:
            return
        batch_mean: Float64Array = np.add.reduce(rows, axis=0, dtype=np.float64)
        batch_mean /= size
        if not math.isfinite(np.add.reduce(batch_mean, axis=None)):
            raise NonFiniteError(_complaint(rows))
        spread = np.subtract(rows, batch_mean)  # [R, *shape]
        np.square(spread, out=spread)
        total = self.count + size
        shift = np.subtract(batch_mean, self.mean)
        self._squares += np.add.reduce(spread, axis=0)
        self._squares += shift * shift * (self.count * size / total)
        shift *= size / total
        self.mean += shift
        self.count = total


def _complaint(rows: Array) -> str:
    bad = np.argwhere(~np.isfinite(rows))
    if not len(bad):
        return f"the sum of {len(rows)} rows is too large for running statistics; clip them first"
    row, *element = (int(index) for index in bad[0])
    return (
        f"running statistics need finite numbers, got {rows[tuple(bad[0])]} at element "
        f"{tuple(element)} of row {row}; check the environment, or clip first"
    )
