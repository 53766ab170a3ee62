"""Keep an agent within a part of a Box."""

import numpy as np

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of, describe, per_element
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class BoxMasking:
    """The agent acts in the part from `low` to `high`; actions keep their meaning.

    Equal bounds force a value. The way back brings an action outside the mask to its nearest point
    inside. For an agent that acts in a fixed range, list a `LinearBoxToBoxMap` behind it.
    """

    low: float | tuple[float, ...]
    """Smallest action allowed: one number for all elements or one for each, in row-major order."""
    high: float | tuple[float, ...]
    """Largest action allowed."""

    def __post_init__(self) -> None:
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        require(
            (1 in (len(low), len(high)) or len(low) == len(high)) and bool((low <= high).all()),
            f"BoxMasking.low must nowhere exceed high, got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a Box that contains the mask; an integer Box needs whole bounds."""
        target = box_of("BoxMasking", space)
        low, high = (
            per_element("BoxMasking", field, value, target.shape)
            for field, value in (("low", self.low), ("high", self.high))
        )
        lowest, highest = low.astype(target.dtype), high.astype(target.dtype)
        if (lowest < target.low).any() or (highest > target.high).any():
            raise SpaceError(
                f"BoxMasking from {self.low} to {self.high} leaves the environment's "
                f"{describe(target)}; the mask must lie within it"
            )
        if np.issubdtype(target.dtype, np.integer) and (
            (lowest != low).any() or (highest != high).any()
        ):
            raise SpaceError(
                f"BoxMasking needs whole bounds for {describe(target)}, "
                f"got {self.low} and {self.high}"
            )
        return StatelessActionStage(
            box(lowest, highest, target.dtype),
            forward=lambda action: np.clip(action, lowest, highest),
            backward=lambda action: np.clip(action, lowest, highest),
        )
