"""Let an agent with discrete actions choose a part of an image."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.action.bins import (
    bins_per_dimension,
    combinations,
    even_points,
    is_whole,
    nearest,
)
from coach_rl.filters.space_requirements import bounded_box_of, describe
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class AttentionDiscretization:
    """Cut a plane into a grid of cells; an action chooses one cell.

    The environment takes a Box of four numbers, the corners `[x_low, y_low, x_high, y_high]` of a
    region. The cell (i, j), counted along x and y from the low bounds, is the agent's action `i *
    cells along y + j`.
    """

    num_bins: Positive[int] | tuple[Positive[int], Positive[int]]
    """Cells along x and y, 1 or more: one number for both or one for each."""
    force_int_bins: bool = False
    """Round the cells' borders to whole numbers (pixels); always done for an integer Box."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a Box of shape (4,) with finite bounds, equal for both corners."""
        owner = "AttentionDiscretization"
        target = bounded_box_of(owner, space)
        if target.shape != (4,) or any(
            (bound[:2] != bound[2:]).any() for bound in (target.low, target.high)
        ):
            raise SpaceError(
                f"{owner} needs a Box of [x_low, y_low, x_high, y_high] in which both corners have "
                f"the same bounds, got {describe(target)}"
            )
        numbers = bins_per_dimension(owner, self.num_bins, 2)
        whole = self.force_int_bins or is_whole(target)
        borders = [
            even_points(
                owner, float(target.low[axis]), float(target.high[axis]), number + 1, whole=whole
            )
            for axis, number in enumerate(numbers)
        ]
        centres = [(border[:-1] + border[1:]) / 2.0 for border in borders]

        def forward(action: Array) -> Array:
            bins = np.unravel_index(action, numbers)  # along x, along y, each [R]
            low_corner = [border[index] for border, index in zip(borders, bins, strict=True)]
            high_corner = [border[index + 1] for border, index in zip(borders, bins, strict=True)]
            return np.stack([*low_corner, *high_corner], axis=1).astype(target.dtype)

        def backward(action: Array) -> Array:
            corners = action.astype(np.float64)
            middle = (corners[:, :2] + corners[:, 2:]) / 2.0
            bins = tuple(nearest(centre, middle[:, axis]) for axis, centre in enumerate(centres))
            return np.asarray(np.ravel_multi_index(bins, numbers), dtype=np.int64)

        return StatelessActionStage(
            spaces.Discrete(combinations(numbers)), forward=forward, backward=backward
        )
