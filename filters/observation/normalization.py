"""Normalise observations by their running mean and standard deviation."""

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.filters.normalizer import Normalizer
from coach_rl.filters.space_requirements import box_of


@parameter_class
class ObservationNormalizationFilter:
    """Subtract each element's running mean, divide by its running standard deviation, clip.

    Comes out as float32. An observation is taken into the statistics before it is normalised. The
    statistics run over all rows of all environments and stand still in TEST.
    """

    clip: Positive[float] | None = 5.0
    """Largest output magnitude, in standard deviations; None for no limit. Usual: 5 to 10."""
    epsilon: Positive[float] = 1e-8
    """Added to the variance."""

    def build(self, space: Space) -> Normalizer:
        """Build the filter for any Box."""
        return Normalizer(
            box_of("ObservationNormalizationFilter", space),
            clip=self.clip,
            epsilon=self.epsilon,
            dtype=np.float32,
        )
