"""Filters of actions: descriptions whose `build` returns an `ActionStage`.

Every filter maps both ways; start with `LinearBoxToBoxMap`.
"""

import numpy as np
from gymnasium import spaces

from coach_rl.core.box_ranges import stretched
from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.stages import (
    StatelessActionStage,
    bounded_box_of,
    box,
    box_of,
    describe,
    per_element,
)


def is_whole(box: spaces.Box) -> bool:
    """Return whether the Box holds whole numbers."""
    return bool(np.issubdtype(box.dtype, np.integer))


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
