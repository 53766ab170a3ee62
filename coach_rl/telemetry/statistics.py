"""Honest numbers over a handful of episodes or seeds (Agarwal et al. 2021, arXiv:2108.13264)."""

from collections.abc import Callable

import numpy as np

from coach_rl.core.records import Array, FloatArray


def interquartile_mean(scores: Array) -> FloatArray:
    """Mean of the middle half of the scores, along the last axis.

    A quarter of the weight is dropped at each end; where a quarter is not a whole number of scores,
    the score on the border keeps the fraction that is left of it. So for 1 2 3 4 it is (2 + 3) / 2,
    and for 1 2 3 4 5, of which 1.25 go at each end, (0.75 * 2 + 3 + 0.75 * 4) / 2.5.

    Args:
        scores: [..., n] with n of 1 or more.

    Returns:
        [...], 0-dimensional for one row of scores.
    """
    ordered = np.sort(np.asarray(scores, np.float64), axis=-1)
    count = ordered.shape[-1]
    position = np.arange(count)
    low, high = count / 4, 3 * count / 4
    weight = np.clip(np.minimum(position + 1, high) - np.maximum(position, low), 0.0, None)
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
    """
    scores = np.asarray(scores, np.float64)
    drawn = scores[rng.integers(0, len(scores), (resamples, len(scores)))]  # [resamples, n]
    tail = (1 - confidence) / 2
    low, high = np.quantile(statistic(drawn), [tail, 1 - tail])
    return float(low), float(high)
