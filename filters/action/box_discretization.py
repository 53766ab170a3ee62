"""Let an agent with discrete actions act in a Box."""

from typing import Annotated

import numpy as np
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.action.bins import (
    bins_per_dimension,
    combinations,
    even_points,
    is_whole,
    nearest,
)
from coach_rl.filters.space_requirements import bounded_box_of
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class BoxDiscretization:
    """Evenly spaced values per dimension, both bounds among them.

    An action is any combination of them. The agent's action 0 is the low bound everywhere; the last
    dimension varies fastest.
    """

    num_bins: Annotated[int, Ge(2)] | NonEmpty[tuple[Annotated[int, Ge(2)], ...]]
    """Values per dimension, 2 or more: one number for all dimensions or one for each."""
    force_int_bins: bool = False
    """Round the values to whole numbers; always done for an integer Box."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a Box with finite bounds."""
        owner = "BoxDiscretization"
        target = bounded_box_of(owner, space)
        low, high = (bound.reshape(-1).astype(np.float64) for bound in (target.low, target.high))
        numbers = bins_per_dimension(owner, self.num_bins, len(low))
        whole = self.force_int_bins or is_whole(target)
        points = [
            even_points(owner, low[index], high[index], number, whole=whole)
            for index, number in enumerate(numbers)
        ]

        def forward(action: Array) -> Array:
            bins = np.unravel_index(action, numbers)  # one [R] per dimension
            flat = np.stack([part[index] for part, index in zip(points, bins, strict=True)], axis=1)
            return flat.reshape(len(action), *target.shape).astype(target.dtype)

        def backward(action: Array) -> Array:
            flat = action.reshape(len(action), len(points))
            bins = tuple(nearest(part, flat[:, index]) for index, part in enumerate(points))
            return np.asarray(np.ravel_multi_index(bins, numbers), dtype=np.int64)

        return StatelessActionStage(
            spaces.Discrete(combinations(numbers)), forward=forward, backward=backward
        )
