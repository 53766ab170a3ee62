"""Let an agent act in a range of its own choice."""

import numpy as np

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space, stretched
from coach_rl.filters.action.bins import is_whole
from coach_rl.filters.space_requirements import bounded_box_of, box, describe, per_element
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class LinearBoxToBoxMap:
    """The agent's `low`..`high` is stretched to the environment's bounds, element by element.

    Each side is mapped exactly onto its bound, whether or not the bounds are symmetric. Actions
    outside either Box are brought to its border first.
    """

    low: float | tuple[float, ...] = -1.0
    """The agent's low bound: one number for all elements or one for each, in row-major order."""
    high: float | tuple[float, ...] = 1.0
    """The agent's high bound."""

    def __post_init__(self) -> None:
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        require(
            bool(np.isfinite(low).all() and np.isfinite(high).all())
            and (1 in (len(low), len(high)) or len(low) == len(high))
            and bool((low < high).all()),
            "LinearBoxToBoxMap.low and high must be finite, low below high everywhere, "
            f"got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a float Box with finite bounds."""
        owner = "LinearBoxToBoxMap"
        target = bounded_box_of(owner, space)
        if is_whole(target):
            raise SpaceError(f"{owner} needs a Box of floats, got {describe(target)}")
        source = box(
            per_element(owner, "low", self.low, target.shape),
            per_element(owner, "high", self.high, target.shape),
            target.dtype,
        )

        def forward(action: Array) -> Array:
            return stretched(action, source.low, source.high, target.low, target.high)

        def backward(action: Array) -> Array:
            return stretched(action, target.low, target.high, source.low, source.high)

        return StatelessActionStage(source, forward=forward, backward=backward)
