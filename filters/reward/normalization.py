"""Normalise rewards by their running mean and standard deviation."""

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.filters.normalizer import Normalizer
from coach_rl.filters.space_requirements import box_of


@parameter_class
class RewardNormalizationFilter:
    """Subtract the running mean of all rewards, divide by their running standard deviation, clip.

    Subtracting a mean changes which policy is best where episodes differ in length:
    `RewardReturnScalingFilter` only scales.
    """

    clip: Positive[float] | None = 5.0
    """Largest magnitude that comes out, in standard deviations; None for no limit."""
    epsilon: Positive[float] = 1e-8
    """Added to the variance."""

    def build(self, space: Space) -> Normalizer:
        """Build the filter for a reward."""
        return Normalizer(
            box_of("RewardNormalizationFilter", space),
            clip=self.clip,
            epsilon=self.epsilon,
            dtype=np.float64,
        )
