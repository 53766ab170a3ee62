"""Statistics of the scores of several seeds (Agarwal et al. 2021, arXiv:2108.13264).

estimate(scores)                           the interquartile mean, with its interval
difference(scores, baseline)               by how much one group is better
probability_of_improvement([(scores, baseline)])
performance_profile(scores, thresholds)

The unit is the seed: an interval is about training again with the next one, not about the
episodes of one trained agent (`telemetry.statistics` has those). No number has an interval where
there is one seed.

An interval is the estimate, give or take a quantile of Student's t times its standard error, which
comes from a bootstrap over seeds. The percentile bootstrap, which is usual for this, cannot leave
the range of the scores: with 3 seeds of a normal distribution it covers 75 % where it says 95 %,
and with 5 seeds 83 %; BCa does no better. docs/comparing.md has the simulation.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import Array, FloatArray
from coach_rl.core.seeding import generator
from coach_rl.telemetry.statistics import interquartile_mean

Statistic = Callable[[Array], FloatArray]
"""A function along the last axis, such as `interquartile_mean` and `mean`."""

Bounds = tuple[float, float]
"""The least and the greatest value that a score can have."""

ANY: Bounds = (-math.inf, math.inf)
CONFIDENCE = 0.95
RESAMPLES = 2000
POWER = 0.8
"""Chance of seeing a difference of the size that is called detectable."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number over seeds, and how well it is known."""

    value: float
    low: float | None = None
    """Lower end of its interval; None where there is none, as over one seed."""
    high: float | None = None
    """Upper end."""

    def holds(self, value: float) -> bool:
        """True if the interval holds a value; without an interval, every value is possible."""
        return self.low is None or self.high is None or self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Difference(Estimate):
    """The difference of two groups: positive where the first one scores higher."""

    seeds: tuple[int, int]
    """Seeds of each group."""
    detectable: float | None = None
    """The true difference that so many seeds, which differ so much, would see 4 times in 5; None
    where it is not known, as with one seed."""

    @property
    def is_clear(self) -> bool:
        """True if there is a difference: zero is outside of the interval."""
        return not self.holds(0.0)


def mean(scores: Array) -> FloatArray:
    """Mean along the last axis."""
    return np.asarray(np.asarray(scores, np.float64).mean(axis=-1))


def standard_deviation(scores: Array) -> float | None:
    """Standard deviation over seeds, divided by n - 1; None for one seed."""
    return float(np.std(scores, ddof=1)) if len(scores) > 1 else None


STATISTICS: dict[str, Statistic] = {"iqm": interquartile_mean, "mean": mean}
"""The statistics that groups are compared by, under their names on the command line."""


def estimate(
    scores: Array,
    statistic: Statistic = interquartile_mean,
    *,
    bounds: Bounds = ANY,
    confidence: float = CONFIDENCE,
) -> Estimate:
    """A statistic over seeds, with its interval.

    Args:
        scores: [n], one per seed.
        statistic: Of what.
        bounds: Of the scores; the interval ends there.
        confidence: The share of intervals that hold the true value.
    """
    value, low, high = band(scores, statistic, bounds=bounds, confidence=confidence)
    if len(scores) < 2:
        return Estimate(value=float(value))
    return Estimate(value=float(value), low=float(low), high=float(high))


def band(
    scores: Array,
    statistic: Statistic = interquartile_mean,
    *,
    bounds: Bounds = ANY,
    confidence: float = CONFIDENCE,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A statistic over seeds at each point of a curve, and the ends of its intervals.

    Args:
        scores: [..., n], seeds last.
        statistic: Of what.
        bounds: Of the scores; the intervals end there.
        confidence: The share of intervals that hold the true value, point by point.

    Returns:
        The statistic, lower and upper ends, [...] each; the ends are NaN for one seed.
    """
    scores = _checked(scores, confidence)
    value, seeds = statistic(scores), scores.shape[-1]
    if seeds < 2:
        return value, np.full_like(value, math.nan), np.full_like(value, math.nan)
    reach = student_t((1 + confidence) / 2, seeds - 1) * standard_error(scores, statistic)
    return value, np.maximum(value - reach, bounds[0]), np.minimum(value + reach, bounds[1])


def standard_error(scores: Array, statistic: Statistic) -> FloatArray:
    """Standard error of a statistic by a bootstrap over seeds.

    Args:
        scores: [..., n], seeds last, n of 2 or more.
        statistic: Of what.

    Returns:
        [...]; that of the mean is the usual one, but for the noise of 2,000 resamples.
    """
    scores = np.asarray(scores, np.float64)
    seeds = scores.shape[-1]
    rng = generator(0, "bootstrap over seeds", seeds)
    drawn = rng.integers(0, seeds, (RESAMPLES, seeds))
    resampled = statistic(scores[..., drawn])  # [..., RESAMPLES]
    return np.asarray(resampled.std(axis=-1) * math.sqrt(seeds / (seeds - 1)))


def difference(
    scores: Array,
    baseline: Array,
    statistic: Statistic = interquartile_mean,
    *,
    bounds: Bounds = ANY,
    confidence: float = CONFIDENCE,
) -> Difference:
    """The difference between the scores of two groups, with an interval.

    The groups are independent, also where their seeds have the same numbers: runs of two variants
    have nothing in common after the first update. Degrees of freedom are Welch's, so the groups
    may differ in size and in spread. There is no interval with one seed, nor with two where no seed
    differs from the others of its group.

    Args:
        scores: [n], one per seed.
        baseline: [m], of the group it is compared with.
        statistic: What is compared.
        bounds: Of the scores; the interval ends where none could differ more.
        confidence: The share of intervals that hold the true difference.
    """
    scores, baseline = _checked(scores, confidence), _checked(baseline, confidence)
    value = float(statistic(scores) - statistic(baseline))
    seeds = (len(scores), len(baseline))
    if min(seeds) < 2:
        return Difference(value=value, seeds=seeds)
    variances = [float(standard_error(each, statistic)) ** 2 for each in (scores, baseline)]
    total = sum(variances)
    if total == 0 and min(seeds) < 3:  # which happens by chance, where seeds succeed or fail
        return Difference(value=value, seeds=seeds)
    error = math.sqrt(total)
    parts = zip(variances, seeds, strict=True)
    freedom = total**2 / sum(part**2 / (n - 1) for part, n in parts) if total else sum(seeds) - 2
    reach, most = student_t((1 + confidence) / 2, freedom) * error, bounds[1] - bounds[0]
    return Difference(
        value=value,
        low=max(value - reach, -most),
        high=min(value + reach, most),
        seeds=seeds,
        detectable=reach + student_t(POWER, freedom) * error,
    )


def probability_of_improvement(
    pairs: Sequence[tuple[Array, Array]], *, confidence: float = CONFIDENCE
) -> Estimate:
    """The chance that a run of one group scores higher than a run of another; ties count half.

    Over several environments it is the mean of their chances. The interval is Newcombe's score
    interval (2006, Statistics in Medicine 25:559, method 5), which stays within [0, 1] and does
    not shrink to a point where one group is above the other in every pair of runs; with a quantile
    of Student's t, since 3 runs above 3 others happen by chance once in 10 times.

    Args:
        pairs: Scores and those of the baseline, [n] and [m], for each environment.
        confidence: The share of intervals that hold the true chance.
    """
    require(len(pairs) > 0, "the probability of improvement over no environments is undefined")
    checked = [tuple(_checked(each, confidence) for each in pair) for pair in pairs]
    chances = [_chance(scores, baseline) for scores, baseline in checked]
    value = float(np.mean(chances))
    sizes = [(len(scores), len(baseline)) for scores, baseline in checked]
    if min(min(pair) for pair in sizes) < 2:
        return Estimate(value=value)
    freedom = sum(n + m - 2 for n, m in sizes)
    bound = student_t((1 + confidence) / 2, freedom) ** 2
    grid = np.linspace(0.0, 1.0, 20001)
    variance = sum(_variance_of_chance(grid, *pair) for pair in sizes) / len(pairs) ** 2
    inside = grid[(value - grid) ** 2 <= bound * variance]
    return Estimate(value=value, low=float(inside.min()), high=float(inside.max()))


def performance_profile(
    scores: Array, thresholds: Array, *, confidence: float = CONFIDENCE
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The share of runs that score above each threshold, with Wilson's interval.

    Args:
        scores: [n], one per seed.
        thresholds: [T].
        confidence: The share of intervals that hold the true share.

    Returns:
        The share, lower and upper ends, [T] each; the ends are NaN for one seed.
    """
    scores, thresholds = _checked(scores, confidence), np.asarray(thresholds, np.float64)
    share = (scores[None, :] > thresholds[:, None]).mean(axis=-1)  # [T]
    n = len(scores)
    if n < 2:
        return share, np.full_like(share, math.nan), np.full_like(share, math.nan)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return share, centre - reach, centre + reach


def student_t(chance: float, freedom: float) -> float:
    """Quantile of Student's t distribution.

    With t = sqrt(freedom) tan(angle), the density over the angle is cos(angle) ** (freedom - 1).

    Args:
        chance: From 0.5 to below 1.
        freedom: Degrees of freedom, 1 or more; they need not be whole.
    """
    angle = np.linspace(0.0, math.pi / 2, 20_001)
    density = np.cos(angle) ** (freedom - 1)
    mass = np.concatenate([[0.0], np.cumsum(density[1:] + density[:-1])])
    where = np.interp((2 * chance - 1) * mass[-1], mass, angle)
    return math.sqrt(freedom) * math.tan(where)


def _chance(scores: FloatArray, baseline: FloatArray) -> float:
    higher = scores[:, None] > baseline[None, :]
    equal = scores[:, None] == baseline[None, :]
    return float(higher.mean() + equal.mean() / 2)


def _variance_of_chance(chance: FloatArray, n: int, m: int) -> FloatArray:
    """Newcombe's variance of the estimate where this is the true chance."""
    half = (n + m) / 2 - 1
    parts = 1 + half * (1 - chance) / (2 - chance) + half * chance / (1 + chance)
    return np.asarray(chance * (1 - chance) * parts / (n * m))


def _checked(given: Array, confidence: float) -> FloatArray:
    scores: FloatArray = np.asarray(given, np.float64)
    require(scores.size > 0, "statistics over no seeds are undefined; give at least one score")
    require(0 < confidence < 1, f"confidence must be between 0 and 1, got {confidence}")
    return scores
