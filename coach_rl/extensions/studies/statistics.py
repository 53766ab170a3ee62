"""Statistics of the scores of several seeds (Agarwal et al. 2021, arXiv:2108.13264).

estimate(scores)                           the interquartile mean, with its interval
difference(scores, baseline)               by how much one group is better
probability_of_improvement([(scores, baseline)])
performance_profile(scores, thresholds)

The unit is the seed: an interval is about training again with the next one, not about the
episodes of one trained agent (`telemetry.statistics` has those).

An interval is the estimate, give or take a quantile of Student's t times its standard error: the
usual one for the mean, that of a bootstrap over seeds otherwise. The percentile bootstrap, which is
usual for this, cannot leave the range of the scores: with 3 seeds of a normal distribution it
covers 75 % instead of 95 %, and with 5 seeds 83 %; BCa does no better. The simulation is in
benchmarks/results/intervals.md.

There is no interval over fewer than `FEWEST_SEEDS` seeds, where scores are not finite (the estimate
is NaN then), where all scores are equal, which is no evidence of how much seeds differ, and where
so few differ that every resample has the same statistic. `EqualScores` has what is known of equal
scores.
"""

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.seeding import generator
from coach_rl.graph_managers.statistics import interquartile_mean

Statistic = Callable[[Array], FloatArray]
"""A function along the last axis, such as `interquartile_mean` and `mean`."""

Bounds = tuple[float, float]
"""The least and the greatest value that a score can have."""

ANY: Bounds = (-math.inf, math.inf)
CONFIDENCE = 0.95
FEWEST_SEEDS = 3
"""Seeds that an interval needs. With two, Student's interval is more than 6 times as wide as the
two scores are apart on either side."""
RESAMPLES = 2000
"""Resamples of the bootstrap, and the most that are enumerated instead of drawn."""
ARRANGEMENTS = 200_000
"""The most arrangements of seeds that a permutation test enumerates; of more, it draws a tenth."""
TOO_FEW = "too few seeds"
NOT_FINITE = "not finite"
NO_SPREAD = "no spread over seeds"
SAME_MIDDLE = "no spread in the middle half of the seeds"
"""Reasons for which there is no interval."""
POWER = 0.8
"""Probability of establishing a difference of the size that is called detectable."""


@dataclass(frozen=True, kw_only=True)
class EqualScores:
    """Bounds that hold where all seeds of a group have the same score."""

    seeds: int
    unseen_share: float
    """The largest share of seeds with other scores, such as failures, that as many seeds miss with
    a probability of 1 - confidence."""
    successes: int | None = None
    """Successes in the episodes of all seeds; None where the scores are no shares of episodes, or
    the number of episodes is not known, as for the three fields below."""
    episodes: int | None = None
    """Episodes of all seeds."""
    low: float | None = None
    """Lower end of the Clopper-Pearson interval of the share of successes."""
    high: float | None = None
    """Upper end."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number over seeds, and how well it is known."""

    value: float
    low: float | None = None
    """Lower end of its interval; None where there is none, as over one seed."""
    high: float | None = None
    """Upper end."""
    reason: str = ""
    """Reason for having no interval; empty where there is one."""
    equal: EqualScores | None = None
    """Bounds instead of an interval where all scores are equal; None elsewhere."""

    def holds(self, value: float) -> bool:
        """True if the interval holds a value; without an interval, every value is possible."""
        return self.low is None or self.high is None or self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Difference(Estimate):
    """The difference of two groups: positive where the first one scores higher."""

    seeds: tuple[int, int]
    """Seeds of each group."""
    detectable: float | None = None
    """The true difference that is established with a probability of `POWER` by as many seeds that
    differ as much; None where it is not known, as with one seed, and beside an interval where it
    would be larger than any that the metric can have."""
    p_value: float | None = None
    """p of the permutation test over seeds; None where there is no interval and the groups have a
    spread, and where even the clearest arrangement of as many seeds is not significant."""
    of_episodes: tuple[float, float] | None = None
    """Newcombe's interval of the difference of the shares of successes in all episodes; None but
    where all scores of each group are equal and the numbers of episodes are known."""
    is_clear: bool = False
    """True if there is a difference, with at most 5 % of errors among equal groups: zero is outside
    the interval, and the permutation test is significant where it can be. Without spread in both
    groups `of_episodes` stands for the interval, and the permutation test must be significant."""


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
    episodes: Array | None = None,
) -> Estimate:
    """A statistic over seeds, with its interval.

    Args:
        scores: [n], one per seed.
        statistic: Of what.
        bounds: Of the scores; the interval ends there.
        episodes: [n], the episodes of which each score is the share of successes; None where
            scores are something else, or the numbers are not known.
    """
    scores = _checked(scores)
    value, low, high = (float(part) for part in band(scores, statistic, bounds=bounds))
    if not math.isnan(low):
        return Estimate(value=value, low=low, high=high)
    reason = _why_no_interval(scores)
    equal = _equal_scores(scores, episodes) if reason == NO_SPREAD else None
    return Estimate(value=value, reason=reason, equal=equal)


def band(
    scores: Array,
    statistic: Statistic = interquartile_mean,
    *,
    bounds: Bounds = ANY,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A statistic over seeds at each point of a curve, and the ends of its intervals.

    Args:
        scores: [..., n], seeds last.
        statistic: Of what.
        bounds: Of the scores; the intervals end there.

    Returns:
        The statistic, lower and upper ends, [...] each. The statistic is NaN where a score is not
        finite; the ends are NaN wherever there is no interval.
    """
    scores = _checked(scores)
    is_finite = np.asarray(np.isfinite(scores).all(axis=-1))
    finite = np.where(is_finite[..., None], scores, 0.0)
    value = np.asarray(np.where(is_finite, statistic(finite), math.nan))
    seeds = scores.shape[-1]
    if seeds < FEWEST_SEEDS:
        return value, np.full_like(value, math.nan), np.full_like(value, math.nan)
    error = standard_error(finite, statistic)
    error = np.where(is_finite & (error > 0), error, math.nan)
    reach = student_t((1 + CONFIDENCE) / 2, seeds - 1) * error
    return value, np.maximum(value - reach, bounds[0]), np.minimum(value + reach, bounds[1])


def standard_error(scores: Array, statistic: Statistic) -> FloatArray:
    """Standard error of a statistic: of the mean the usual one, else by a bootstrap over seeds.

    It doesn't depend on the order of the scores.

    Args:
        scores: [..., n], seeds last, n of 2 or more.
        statistic: Of what.

    Returns:
        [...]; exactly 0 where all resamples have the same value, as where all scores are equal.
    """
    scores = np.sort(np.asarray(scores, np.float64), axis=-1)
    seeds = scores.shape[-1]
    if statistic is mean:
        error = scores.std(axis=-1, ddof=1) / math.sqrt(seeds)
        return np.where(_is_equal(scores), 0.0, error)
    drawn, weight = _resamples(seeds)
    resampled = statistic(scores[..., drawn])  # [..., R]
    centred = resampled - (resampled @ weight)[..., None]
    error = np.sqrt(centred**2 @ weight * seeds / (seeds - 1))
    return np.where(_is_equal(scores) | _is_equal(resampled), 0.0, error)


def difference(
    scores: Array,
    baseline: Array,
    statistic: Statistic = interquartile_mean,
    *,
    bounds: Bounds = ANY,
    confidence: float = CONFIDENCE,
    episodes: tuple[Array | None, Array | None] = (None, None),
) -> Difference:
    """The difference between the scores of two groups, with an interval.

    The groups are independent, also where their seeds have the same numbers: runs of two variants
    have nothing in common after the first update. Degrees of freedom are Welch's, so the groups
    may differ in size and in spread; a group without spread adds nothing to the standard error.
    There is no interval where a group has too few seeds, and where neither has any spread in what
    the statistic depends on. Of groups without an interval, only those whose seeds are all equal
    can differ clearly.

    Args:
        scores: [n], one per seed.
        baseline: [m], of the group it is compared with.
        statistic: What is compared.
        bounds: Of the scores; the interval ends where none could differ more.
        confidence: The share of intervals that hold the true difference.
        episodes: [n] and [m], the episodes of which each score is the share of successes; None
            where scores are something else, or the numbers are not known.
    """
    require(0 < confidence < 1, f"confidence must be between 0 and 1, got {confidence}")
    scores, baseline = _checked(scores), _checked(baseline)
    seeds = (len(scores), len(baseline))
    reason = _why_no_interval(scores, baseline)
    if reason == NOT_FINITE:
        return Difference(value=math.nan, seeds=seeds, reason=reason)
    value = float(statistic(scores) - statistic(baseline))
    if reason == TOO_FEW:
        return Difference(value=value, seeds=seeds, reason=reason)
    variances = [float(standard_error(each, statistic)) ** 2 for each in (scores, baseline)]
    total = sum(variances)
    if total == 0 and not (_is_equal(scores) and _is_equal(baseline)):
        return Difference(value=value, seeds=seeds, reason=SAME_MIDDLE)
    if total == 0:
        return _difference_without_spread(value, scores, baseline, episodes, confidence)
    error = math.sqrt(total)
    parts = zip(variances, seeds, strict=True)
    freedom = total**2 / sum(part**2 / (n - 1) for part, n in parts)
    reach = student_t((1 + confidence) / 2, freedom) * error
    most = bounds[1] - bounds[0]
    is_outside = abs(value) > reach
    p_value = None
    if _least_p_value(*seeds, statistic) < 1 - confidence:
        p_value = permutation_test(scores, baseline, statistic) if is_outside else None
        is_outside = p_value is not None and p_value < 1 - confidence
    detectable = reach + student_t(POWER, freedom) * error
    return Difference(
        value=value,
        low=max(value - reach, -most),
        high=min(value + reach, most),
        seeds=seeds,
        detectable=detectable if detectable <= most else None,
        p_value=p_value,
        is_clear=is_outside,
    )


def permutation_test(scores: Array, baseline: Array, statistic: Statistic = mean) -> float:
    """The p-value of the permutation test over seeds: the groups are equal, and a difference luck.

    It is the share of all ways to deal the scores to two groups of these sizes that have at least
    as large a difference, on either side. Of ways with the same difference, as there are many for
    the interquartile mean, the difference of the means decides. Of more than `ARRANGEMENTS` ways, a
    tenth as many are drawn, the same ones at every call.

    Args:
        scores: [n], finite.
        baseline: [m], finite.
        statistic: The difference of what.
    """
    scores, baseline = np.asarray(scores, np.float64), np.asarray(baseline, np.float64)
    every = np.sort(np.concatenate([scores, baseline]))
    ours, theirs, is_complete = _arrangements(len(scores), len(baseline))
    tolerance = 1e-9 * float(np.ptp(every))

    def beyond(of: Statistic) -> FloatArray:
        """Excess of each arrangement's difference over the observed one, [K]."""
        found = np.abs(of(every[ours]) - of(every[theirs]))
        return np.asarray(found - abs(float(of(scores) - of(baseline))))

    first, second = beyond(statistic), beyond(mean)
    is_as_large = (first > tolerance) | ((first >= -tolerance) & (second >= -tolerance))
    count = int(np.count_nonzero(is_as_large))
    return count / len(ours) if is_complete else (count + 1) / (len(ours) + 1)


def clopper_pearson(successes: int, episodes: int) -> tuple[float, float]:
    """The exact interval of a share of episodes (Clopper and Pearson 1934, Biometrika 26:404)."""
    from scipy.special import betaincinv  # scipy.stats has this interval, and takes 0.5 s to import

    tail = (1 - CONFIDENCE) / 2
    failures = episodes - successes
    low = 0.0 if successes == 0 else float(betaincinv(successes, failures + 1, tail))
    high = 1.0 if failures == 0 else float(betaincinv(successes + 1, failures, 1 - tail))
    return low, high


def newcombe(
    ours: tuple[int, int], theirs: tuple[int, int], *, confidence: float = CONFIDENCE
) -> tuple[float, float]:
    """The interval of a difference of two shares of episodes.

    It is the hybrid score interval of Newcombe 1998 (Statistics in Medicine 17:873, method 10).

    Args:
        ours: Successes and episodes.
        theirs: Those of the other group.
        confidence: The share of intervals that hold the true difference.
    """
    (p, n), (q, m) = ((successes / episodes, episodes) for successes, episodes in (ours, theirs))
    (p_low, p_high), (q_low, q_high) = (
        (float(end) for end in wilson(share, episodes, confidence=confidence))
        for share, episodes in ((p, n), (q, m))
    )
    value = p - q
    return (
        value - math.hypot(p - p_low, q_high - q),
        value + math.hypot(p_high - p, q - q_low),
    )


def wilson(
    share: float | FloatArray, count: int, *, confidence: float = CONFIDENCE
) -> tuple[FloatArray, FloatArray]:
    """Wilson's score interval of a share of `count` (1927, JASA 22:209)."""
    share = np.asarray(share, np.float64)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    centre = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    root = np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    reach = z / (1 + z**2 / count) * root
    return np.maximum(centre - reach, 0.0), np.minimum(centre + reach, 1.0)


def probability_of_improvement(pairs: Sequence[tuple[Array, Array]]) -> Estimate:
    """The chance that a run of one group scores higher than a run of another; ties count half.

    Over several environments it is the mean of their chances. The interval is Newcombe's score
    interval (2006, Statistics in Medicine 25:559, method 5), which stays within [0, 1] and does
    not shrink to a point where one group is above the other in every pair of runs; with a quantile
    of Student's t, since 3 runs above 3 others happen by chance once in 10 times.

    Args:
        pairs: Scores and those of the baseline, [n] and [m], for each environment.
    """
    require(len(pairs) > 0, "the probability of improvement over no environments is undefined")
    checked = [tuple(map(_checked, pair)) for pair in pairs]
    reason = _why_no_interval(*itertools.chain(*checked))
    if reason == NOT_FINITE:
        return Estimate(value=math.nan, reason=reason)
    chances = [_chance(scores, baseline) for scores, baseline in checked]
    value = float(np.mean(chances))
    sizes = [(len(scores), len(baseline)) for scores, baseline in checked]
    if reason == TOO_FEW:
        return Estimate(value=value, reason=reason)
    freedom = sum(n + m - 2 for n, m in sizes)
    bound = student_t((1 + CONFIDENCE) / 2, freedom) ** 2
    grid = np.linspace(0.0, 1.0, 20001)
    variance = sum(_variance_of_chance(grid, *pair) for pair in sizes) / len(pairs) ** 2
    inside = grid[(value - grid) ** 2 <= bound * variance]
    return Estimate(value=value, low=float(inside.min()), high=float(inside.max()))


def performance_profile(
    scores: Array, thresholds: Array
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """The share of runs that score above each threshold, with Wilson's interval.

    Args:
        scores: [n], one per seed.
        thresholds: [T].

    Returns:
        The share, lower and upper ends, [T] each; all are NaN where a score is not finite, and the
        ends where there are too few seeds.
    """
    scores = _checked(scores)
    thresholds = np.asarray(thresholds, np.float64)
    share = (scores[None, :] > thresholds[:, None]).mean(axis=-1)  # [T]
    nothing = np.full_like(share, math.nan)
    if not np.isfinite(scores).all():
        return nothing, nothing, nothing
    if len(scores) < FEWEST_SEEDS:
        return share, nothing, nothing
    return share, *wilson(share, len(scores))


def student_t(chance: float, freedom: float) -> float:
    """Quantile of Student's t distribution; degrees of freedom need not be whole."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, chance))


def _is_equal(scores: FloatArray) -> BoolArray:
    """True where all seeds score the same, [...]; compares scores, not their noisy spread."""
    return np.asarray(np.ptp(scores, axis=-1) == 0)


def _why_no_interval(*groups: FloatArray) -> str:
    """Reason for having no interval; empty where there is one."""
    if not all(np.isfinite(scores).all() for scores in groups):
        return NOT_FINITE
    if min(map(len, groups)) < FEWEST_SEEDS:
        return TOO_FEW
    return NO_SPREAD if all(_is_equal(scores) for scores in groups) else SAME_MIDDLE


def _equal_scores(scores: FloatArray, episodes: Array | None) -> EqualScores:
    """Bounds for scores that are all equal."""
    seeds = len(scores)
    unseen_share = 1 - (1 - CONFIDENCE) ** (1 / seeds)
    if episodes is None:
        return EqualScores(seeds=seeds, unseen_share=unseen_share)
    successes, count = _pooled(scores, episodes)
    low, high = clopper_pearson(successes, count)
    return EqualScores(
        seeds=seeds,
        unseen_share=unseen_share,
        successes=successes,
        episodes=count,
        low=low,
        high=high,
    )


def _difference_without_spread(
    value: float,
    scores: FloatArray,
    baseline: FloatArray,
    episodes: tuple[Array | None, Array | None],
    confidence: float,
) -> Difference:
    """The difference of two groups whose seeds are equal, which has no interval over seeds."""
    of_episodes = None
    is_clear = False
    p_value = permutation_test(scores, baseline)
    ours, theirs = episodes
    if ours is not None and theirs is not None:
        of_episodes = newcombe(
            _pooled(scores, ours), _pooled(baseline, theirs), confidence=confidence
        )
        is_outside = of_episodes[0] > 0 or of_episodes[1] < 0
        is_clear = is_outside and p_value < 1 - confidence
    return Difference(
        value=value,
        seeds=(len(scores), len(baseline)),
        reason=NO_SPREAD,
        p_value=p_value,
        of_episodes=of_episodes,
        is_clear=is_clear,
    )


def _pooled(scores: FloatArray, episodes: Array) -> tuple[int, int]:
    """Successes and episodes of all seeds."""
    counts = np.asarray(episodes, np.int64)
    require(
        counts.shape == scores.shape and bool((counts > 0).all()),
        f"episodes must be one positive number per score, got {counts.tolist()} for "
        f"{len(scores)} scores",
    )
    return int(np.rint(scores * counts).sum()), int(counts.sum())


@lru_cache(maxsize=64)
def _resamples(seeds: int) -> tuple[IntArray, FloatArray]:
    """Resamples of seeds, [R, n], and their probabilities [R].

    They are all there are, each order of the same seeds once, where that makes no more than
    `RESAMPLES`, and random ones elsewhere.
    """
    if math.comb(2 * seeds - 1, seeds) > RESAMPLES:
        rng = generator(0, "bootstrap over seeds", seeds)
        drawn = rng.integers(0, seeds, (RESAMPLES, seeds))
        return drawn, np.full(RESAMPLES, 1 / RESAMPLES)
    every = np.array(list(itertools.combinations_with_replacement(range(seeds), seeds)), np.int64)
    counts = (every[:, :, None] == np.arange(seeds)).sum(axis=1)  # [R, n]
    orders = np.array(
        [math.factorial(seeds) / math.prod(map(math.factorial, row)) for row in counts.tolist()]
    )
    return every, orders / orders.sum()


@lru_cache(maxsize=16)
def _arrangements(n: int, m: int) -> tuple[IntArray, IntArray, bool]:
    """Ways to deal n + m scores to two groups, [K, n] and [K, m], and whether these are all."""
    is_complete = math.comb(n + m, n) <= ARRANGEMENTS
    if is_complete:
        chosen = itertools.chain.from_iterable(itertools.combinations(range(n + m), n))
        ours = np.fromiter(chosen, np.int64).reshape(-1, n)
    else:
        rng = generator(0, "arrangements of seeds", n, m)
        ours = np.argsort(rng.random((ARRANGEMENTS // 10, n + m)), axis=-1)[:, :n]
    is_theirs = np.ones((len(ours), n + m), np.bool_)
    np.put_along_axis(is_theirs, ours, False, axis=-1)
    return ours, np.nonzero(is_theirs)[1].reshape(-1, m), is_complete


@lru_cache(maxsize=64)
def _least_p_value(n: int, m: int, statistic: Statistic) -> float:
    """The p-value where all scores of one group are above all of the other's."""
    return permutation_test(np.arange(n) + m, np.arange(m), statistic)


def _chance(scores: FloatArray, baseline: FloatArray) -> float:
    higher = scores[:, None] > baseline[None, :]
    equal = scores[:, None] == baseline[None, :]
    return float(higher.mean() + equal.mean() / 2)


def _variance_of_chance(chance: FloatArray, n: int, m: int) -> FloatArray:
    """Newcombe's variance of the estimate where this is the true chance."""
    half = (n + m) / 2 - 1
    parts = 1 + half * (1 - chance) / (2 - chance) + half * chance / (1 + chance)
    return np.asarray(chance * (1 - chance) * parts / (n * m))


def _checked(given: Array) -> FloatArray:
    scores: FloatArray = np.asarray(given, np.float64)
    require(scores.size > 0, "statistics over no seeds are undefined; give at least one score")
    return scores


Shown = Callable[[float], str]
"""The text of a value of the metric."""


def with_interval(found: Estimate, shown: Shown) -> str:
    """A number and, in brackets, its interval."""
    return f"{shown(found.value)} ({interval_text(found, shown)})"


def interval_text(found: Estimate, shown: Shown) -> str:
    """The interval of a number, or else the reason why there is none and what is known instead."""
    if found.low is not None and found.high is not None:
        return f"{shown(found.low)} to {shown(found.high)}"
    return found.reason if found.equal is None else _equal_text(found.equal, shown)


def difference_text(found: Difference, shown: Shown) -> str:
    """The interval of a difference, or else the one over episodes or the reason."""
    if found.of_episodes is None:
        return interval_text(found, shown)
    low, high = found.of_episodes
    return f"{shown(low)} to {shown(high)} over episodes"


def _equal_text(equal: EqualScores, shown: Shown) -> str:
    unseen = f"up to {equal.unseen_share:.0%}".replace("%", " %")
    if equal.low is None or equal.high is None:
        return f"all equal; {unseen} of seeds may differ"
    counts = f"{equal.successes:,} of {equal.episodes:,} episodes"
    what = "fail" if equal.successes == equal.episodes else "differ"
    ends = f"{shown(equal.low)} to {shown(equal.high)}"
    return f"{counts}, {ends}; {unseen} of seeds may {what}"
