"""Numbers to bytes."""

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationToUInt8Filter:
    """Map `low`..`high` to 0..255.

    Rounded to the nearest level (half to even), clipped outside the range. Keeps images small in a
    replay memory.
    """

    low: float
    """Value that becomes 0."""
    high: float
    """Value that becomes 255."""

    def __post_init__(self) -> None:
        require(
            self.low < self.high,
            f"ObservationToUInt8Filter.low must be below high, got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for any Box."""
        source = box_of("ObservationToUInt8Filter", space)

        def levels(values: Array) -> Array:
            scaled = (values - np.float64(self.low)) * (255.0 / (self.high - self.low))
            np.rint(scaled, out=scaled)
            return np.clip(scaled, 0.0, 255.0, out=scaled).astype(np.uint8)

        return StatelessInputStage(box(levels(source.low), levels(source.high), np.uint8), levels)
