"""Honest numbers over a handful of episodes or seeds (Agarwal et al. 2021, arXiv:2108.13264)."""

from collections.abc import Callable

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import Array, FloatArray


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
    with np.errstate(invalid="ignore"):  # infinite scores give NaN, as the docstring says
        return np.asarray((ordered * weight).sum(axis=-1) / weight.sum())


def bootstrap_interval(
    scores: Array,
    statistic: Callable[[Array], FloatArray],
    *,
    rng: np.random.Generator,
    confidence: float = 0.95,
    resamples: int = 2000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic.

    Args:
        scores: [n]; with one score the interval is that score.
        statistic: Works along the last axis, e.g. `interquartile_mean`.
        rng: Draws the resamples.
        confidence: Share of resamples inside.
        resamples: How many.

    Returns:
        Lower and upper end.

    Raises:
        ParameterError: There are no scores, or a parameter is out of its range.
    """
    scores = np.asarray(scores, np.float64)
    require(len(scores) > 0, "an interval over no scores is undefined; give at least one")
    require(0 < confidence < 1, f"confidence must be between 0 and 1, got {confidence}")
    require(resamples >= 1, f"resamples must be 1 or more, got {resamples}")
    drawn = scores[rng.integers(0, len(scores), (resamples, len(scores)))]  # [resamples, n]
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
