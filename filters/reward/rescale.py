"""Multiply rewards by a constant."""

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class RewardRescaleFilter:
    """Every reward times `factor`."""

    factor: float
    """Anything but 0."""

    def __post_init__(self) -> None:
        require(self.factor != 0, f"RewardRescaleFilter.factor must not be 0, got {self.factor}")

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a reward."""
        source = box_of("RewardRescaleFilter", space)
        ends = (source.low * self.factor, source.high * self.factor)
        return StatelessInputStage(
            box(np.minimum(*ends), np.maximum(*ends), source.dtype),
            lambda rewards: rewards * self.factor,
        )
