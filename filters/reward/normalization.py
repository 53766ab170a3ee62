"""Normalise rewards by their running mean and standard deviation."""

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.normalizer import Normalizer
from coach_rl.filters.space_requirements import box_of


@parameter_class
class RewardNormalizationFilter:
    """Subtract the running mean of all rewards, divide by their running standard deviation, clip.

    Subtracting a mean changes which policy is best where episodes differ in length:
    `RewardReturnScalingFilter` only scales.
    """

    clip: float | None = 5.0
    """Largest magnitude that comes out, in standard deviations; None for no limit."""
    epsilon: float = 1e-8
    """Added to the variance."""

    def __post_init__(self) -> None:
        require(
            self.clip is None or self.clip > 0,
            f"RewardNormalizationFilter.clip must be above 0 or None, got {self.clip}",
        )
        require(
            self.epsilon > 0,
            f"RewardNormalizationFilter.epsilon must be above 0, got {self.epsilon}",
        )

    def build(self, space: Space) -> Normalizer:
        """Build the filter for a reward."""
        return Normalizer(
            box_of("RewardNormalizationFilter", space),
            clip=self.clip,
            epsilon=self.epsilon,
            dtype=np.float64,
        )
