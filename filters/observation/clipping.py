"""Clip observations to a range."""

import numpy as np

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationClippingFilter:
    """Every element is limited to `low` and `high`; the dtype stays."""

    low: float | None = None
    """Smallest value that passes; None for no limit."""
    high: float | None = None
    """Largest value that passes; None for no limit."""

    def __post_init__(self) -> None:
        require(
            self.low is not None or self.high is not None,
            "ObservationClippingFilter needs low, high or both, got neither",
        )
        require(
            self.low is None or self.high is None or self.low <= self.high,
            f"ObservationClippingFilter.low must not exceed high, got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for any Box; an integer Box needs whole bounds."""
        source = box_of("ObservationClippingFilter", space)
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        if np.issubdtype(source.dtype, np.integer):
            for bound in (low, high):
                if np.isfinite(bound) and bound != round(bound):
                    raise SpaceError(
                        f"ObservationClippingFilter needs whole bounds for {source.dtype}, "
                        f"got {bound}"
                    )
            limits = np.iinfo(np.dtype(source.dtype).name)
            low, high = (min(max(bound, limits.min), limits.max) for bound in (low, high))
        lowest, highest = (np.asarray(bound).astype(source.dtype) for bound in (low, high))
        return StatelessInputStage(
            box(
                np.clip(source.low, lowest, highest),
                np.clip(source.high, lowest, highest),
                source.dtype,
            ),
            lambda values: np.minimum(np.maximum(values, lowest), highest),
        )
