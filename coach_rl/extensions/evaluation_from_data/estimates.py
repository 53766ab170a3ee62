"""Estimates of a policy's value, their intervals, and how many episodes they rest on.

Each estimator is a sum of ratios of sums over episodes, `RatioSum`. So a bootstrap over episodes
needs the number of times that each is drawn alone, and no estimator is run again.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import FloatArray
from coach_rl.graph_managers.statistics import RESAMPLES

FEWEST_EFFECTIVE = 20
"""Effective samples below which an estimate is unreliable: its interval is too narrow then."""
CONFIDENCE = 0.95
DRAWN_AT_ONCE = 2**22
"""Numbers that the bootstrap has in memory, or those of one resample, where it has more."""


@dataclass(frozen=True)
class RatioSum:
    """sum_k (sum_i numerator_ik) / (sum_i denominator_ik), over episodes i.

    A ratio whose denominator is 0, where no episode has any weight, counts as 0.
    """

    numerator: FloatArray
    """[E, K]."""
    denominator: FloatArray
    """[E, K], or [E, 1] for all K."""

    @classmethod
    def mean(cls, of_episodes: FloatArray) -> "RatioSum":
        """The plain mean of a number of each episode, [E]."""
        return cls(of_episodes[:, None], np.ones((len(of_episodes), 1)))

    def value(self) -> float:
        """The estimate."""
        return float(self.resampled(np.ones((1, len(self.numerator))))[0])

    def resampled(self, counts: FloatArray) -> FloatArray:
        """Estimates [R] of resamples in which each episode is drawn so often, [R, E]."""
        above = counts @ self.numerator  # [R, K]
        below = np.broadcast_to(counts @ self.denominator, above.shape)
        ratios = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
        return np.asarray(ratios.sum(axis=1))


@dataclass(frozen=True, kw_only=True)
class ValueEstimate:
    """An estimate of the policy's discounted return."""

    estimator: str
    """Its name in `ESTIMATORS`."""
    value: float
    low: float
    """Lower end of its interval."""
    high: float
    """Upper end."""
    effective_samples: float
    """Episodes of the policy's own that would be as good; of all estimators that weigh episodes."""

    @property
    def is_reliable(self) -> bool:
        """False with fewer than `FEWEST_EFFECTIVE` effective samples."""
        return self.effective_samples >= FEWEST_EFFECTIVE


def resample_counts(episodes: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    """Times that each episode is drawn in each of the RESAMPLES, in blocks [B, E] float64."""
    require(episodes > 0, "an interval over no episodes is undefined; give at least one")
    return _blocks(episodes, rng)


def _blocks(episodes: int, rng: np.random.Generator) -> Iterator[FloatArray]:
    size = max(1, DRAWN_AT_ONCE // episodes)
    for begin in range(0, RESAMPLES, size):
        resamples = min(size, RESAMPLES - begin)
        drawn = rng.integers(0, episodes, (resamples, episodes))
        drawn += episodes * np.arange(resamples)[:, None]  # a range of numbers for each resample
        counts = np.bincount(drawn.ravel(), minlength=resamples * episodes)
        yield counts.reshape(resamples, episodes).astype(np.float64)
