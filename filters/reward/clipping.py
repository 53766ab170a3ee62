"""Clip rewards to a range."""

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class RewardClippingFilter:
    """Rewards are limited to `low` and `high`; 0 is a bound like any other."""

    low: float | None = None
    """Smallest reward that passes; None for no limit."""
    high: float | None = None
    """Largest reward that passes; None for no limit."""

    def __post_init__(self) -> None:
        require(
            self.low is not None or self.high is not None,
            "RewardClippingFilter needs low, high or both, got neither",
        )
        require(
            self.low is None or self.high is None or self.low <= self.high,
            f"RewardClippingFilter.low must not exceed high, got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a reward."""
        source = box_of("RewardClippingFilter", space)
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return StatelessInputStage(
            box(np.clip(source.low, low, high), np.clip(source.high, low, high), source.dtype),
            lambda rewards: np.minimum(np.maximum(rewards, low), high),
        )
