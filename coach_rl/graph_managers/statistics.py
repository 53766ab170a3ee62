"""Statistics of scores over few episodes or seeds, and of signals since the last report.

Scores: interquartile mean and bootstrap intervals (Agarwal et al. 2021, arXiv:2108.13264).
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from coach_rl.core.errors import require
from coach_rl.core.records import Array, FloatArray
from coach_rl.core.shown_text import printable
from coach_rl.core.state import State

RESAMPLES = 2000
"""Resamples of a bootstrap."""
MOST_PIXELS = 4096
"""Pixels of a side of a picture; larger ones take minutes to write."""
CHUNK = 4096
"""Values that are buffered until they are added to the statistics."""


def interquartile_mean(scores: Array) -> FloatArray:
    """Mean of the middle half of the scores, along the last axis.

    A quarter of the weight is dropped at each end; where a quarter is not a whole number of scores,
    the score on the border keeps the fraction that is left of it. So for 1 2 3 4 it is (2 + 3) / 2,
    and for 1 2 3 4 5, of which 1.25 go at each end, (0.75 * 2 + 3 + 0.75 * 4) / 2.5.

    Args:
        scores: [..., n] with n of 1 or more.

    Returns:
        [...], 0-dimensional for one row of scores; NaN where a score is not finite.

    Raises:
        ParameterError: There are no scores.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=-1)
    count = ordered.shape[-1]
    require(count > 0, "the interquartile mean of no scores is undefined; give at least one")
    position = np.arange(count)
    low, high = count / 4, 3 * count / 4
    weight = np.clip(np.minimum(position + 1, high) - np.maximum(position, low), 0.0, None)
    with np.errstate(invalid="ignore"):  # infinite scores give NaN, see above
        return np.asarray((ordered * weight).sum(axis=-1) / weight.sum())


def bootstrap_interval(
    scores: Array,
    statistic: Callable[[Array], FloatArray],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic.

    Args:
        scores: [n]; with one score the interval is that score.
        statistic: Works along the last axis, e.g. `interquartile_mean`.
        rng: Draws the resamples.
        confidence: Share of resamples inside.

    Returns:
        Lower and upper end.

    Raises:
        ParameterError: There are no scores, or a parameter is out of its range.
    """
    scores = np.asarray(scores, np.float64)
    require(len(scores) > 0, "an interval over no scores is undefined; give at least one")
    require(0 < confidence < 1, f"confidence must be between 0 and 1, got {confidence}")
    drawn = scores[rng.integers(0, len(scores), (RESAMPLES, len(scores)))]  # [RESAMPLES, n]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(drawn), [tail, 1 - tail])
    return float(low), float(high)


def histogram(values: Array, bins: int = 30) -> FloatArray:
    """A histogram of all numbers that are finite, [bins, 3]: left edge, right edge, count.

    Args:
        values: Numbers, of any shape.
        bins: Number of bins of equal width; none at all where there is no number.
    """
    finite = np.asarray(values, np.float64).ravel()
    finite = finite[np.isfinite(finite)]
    if not len(finite):
        return np.zeros((0, 3))
    counts, edges = np.histogram(finite, bins=bins)
    return np.stack([edges[:-1], edges[1:], counts.astype(np.float64)], axis=1)


def require_image(name: str, values: Array) -> Array:
    """The picture; ParameterError unless it is uint8 [H, W] or [H, W, 3], of a sensible size."""
    image = np.asarray(values)
    require(
        image.dtype == np.uint8
        and image.size > 0
        and image.shape[2:] in ((), (3,))
        and image.ndim > 1,
        f"the image '{name}' of a note must be uint8 [H, W] or [H, W, 3], got {image.dtype} "
        f"{list(image.shape)}",
    )
    require(
        max(image.shape) <= MOST_PIXELS,
        f"the image '{name}' of a note may have {MOST_PIXELS:,} pixels a side, got "
        f"{list(image.shape)}; note a smaller one, such as image[::4, ::4]",
    )
    return image


class SignalWindow:
    """Mean, standard deviation, minimum, maximum and count of one signal.

    Values are kept until there are `CHUNK`, and reduced at once: that is much faster than one by
    one, and depends on the values alone, so that a restored window continues bit for bit.
    """

    def __init__(self) -> None:
        self._pending: list[FloatArray] = []
        self._size = 0
        self._count = 0
        self._mean = 0.0
        self._squares = 0.0
        self._low, self._high = np.inf, -np.inf

    def add(self, values: FloatArray) -> None:
        """Add values, [n]; they are not copied."""
        self._pending.append(values)
        self._size += len(values)
        if self._size >= CHUNK:
            self._reduce()

    def statistics(self) -> dict[str, float]:
        """The statistics by name; empty without values. NaN if a value was NaN."""
        self._reduce()
        if not self._count:
            return {}
        return {
            "mean": self._mean,
            "std": float(np.sqrt(self._squares / self._count)),
            "min": self._low,
            "max": self._high,
            "count": float(self._count),
        }

    def state_dict(self) -> State:
        return {
            "pending": np.concatenate([np.empty(0), *self._pending]),
            "reduced": np.array(
                [self._count, self._mean, self._squares, self._low, self._high], np.float64
            ),
        }

    def load_state_dict(self, state: State) -> None:
        pending = np.array(state["pending"], np.float64)
        self._pending = [pending]
        self._size = len(pending)
        count, self._mean, self._squares, self._low, self._high = state["reduced"].tolist()
        self._count = int(count)

    def _reduce(self) -> None:
        """Merge the values kept into the statistics (Chan et al. 1983)."""
        if not self._size:
            return
        values = np.concatenate(self._pending)
        self._pending = []
        self._size = 0
        with np.errstate(invalid="ignore"):  # infinite values give NaN, which is what they are
            mean = float(values.mean())
            count = self._count + len(values)
            gap = mean - self._mean
            between = gap * gap * self._count * len(values) / count
            self._squares += float(np.square(values - mean).sum()) + between
            self._mean += gap * len(values) / count
        self._count = count
        self._low = float(np.minimum(self._low, values.min()))
        self._high = float(np.maximum(self._high, values.max()))


class SignalWindows:
    """The window of every signal, by name."""

    def __init__(self) -> None:
        self._windows: dict[str, SignalWindow] = {}

    def note(self, name: str, values: ArrayLike) -> None:
        """Add values of a signal, of any shape.

        Raises:
            ParameterError: They are not numbers.
        """
        try:
            array = np.asarray(values)
        except ValueError:  # lists of different lengths
            array = np.asarray(None)
        require(
            array.dtype.kind in "biuf",
            f"signal '{name}' takes numbers, got {values!r:.80}; note a number, or an array or "
            "tensor of numbers",
        )
        numbers = array.astype(np.float64).ravel()
        window = self._windows.get(name)
        if window is None:
            window = self._windows[name] = SignalWindow()
        window.add(numbers)

    def drain(self, room: str) -> dict[str, float]:
        """Return `<room>/<signal>/<statistic>` of all signals since the last call, and forget them.

        Args:
            room: First part of the names, e.g. `signals`.
        """
        drained = self._windows
        self._windows = {}
        return {
            f"{room}/{printable(name)}/{statistic}": value
            for name, window in sorted(drained.items())
            for statistic, value in window.statistics().items()
        }

    def clear(self) -> None:
        """Remove all values."""
        self._windows = {}

    def state_dict(self) -> State:
        return {name: window.state_dict() for name, window in self._windows.items()}

    def load_state_dict(self, state: State) -> None:
        self._windows = {}
        for name, saved in state.items():
            self._windows[name] = SignalWindow()
            self._windows[name].load_state_dict(saved)
