"""Show the last few observations at once."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import InputStage, RowMemory


@parameter_class
class ObservationStackingFilter:
    """The last `stack_size` observations of a row along a new axis, oldest first.

    The first observation of an episode fills the whole stack. Stacks continue in TEST: they are
    what a row has seen, not something learned. It may stand anywhere in the list; at the end it
    costs least, as filters behind it would treat each observation `stack_size` times.
    """

    stack_size: Positive[int] = 4
    """Observations shown at once, 1 or more."""
    axis: int = -1
    """Position of the new axis in the output, counted without the row axis."""

    def build(self, space: Space) -> "ObservationStack":
        """Build the filter for any Box with at least as many axes as `axis` needs."""
        source = box_of("ObservationStackingFilter", space)
        axes = len(source.shape) + 1
        if not -axes <= self.axis < axes:
            raise SpaceError(
                f"ObservationStackingFilter.axis is {self.axis}, but a stack of observations of "
                f"shape {source.shape} has {axes} axes; allowed: {-axes} to {axes - 1}"
            )
        return ObservationStack(source, size=self.stack_size, axis=self.axis % axes)


class ObservationStack(InputStage):
    """Remembers the last observations of every row.

    Args:
        space: Of one observation.
        size: Observations shown at once.
        axis: Where their axis stands in what comes out, 0 or more, without the row axis.
    """

    def __init__(self, space: spaces.Box, *, size: int, axis: int) -> None:
        low, high = (np.stack([bound] * size, axis=axis) for bound in (space.low, space.high))
        super().__init__(box(low, high, space.dtype))
        self._space, self._size, self._axis = space, size, axis

    def new_rows(self, num_rows: int, /) -> dict[str, Array]:
        """`frames` [num_rows, size, ...], oldest first, 0 until the row's first episode starts."""
        shape = (num_rows, self._size, *self._space.shape)
        return {"frames": np.zeros(shape, dtype=self._space.dtype)}

    def advance(
        self, values: Array, memory: RowMemory, rows: IntArray, starts: BoolArray, /
    ) -> None:
        """Push observations [R, ...]; where the episode starts, fill the stack with them."""
        frames = memory["frames"]
        recent = frames[rows]  # [R, size, ...]
        recent[:, :-1] = recent[:, 1:]
        recent[:, -1] = values
        recent[starts] = values[starts][:, None]
        frames[rows] = recent

    def apply(self, _values: Array, memory: RowMemory, rows: IntArray, /) -> Array:
        """The stacks of these rows, [R, ...] with the new axis."""
        stacks = memory["frames"][rows]
        return np.ascontiguousarray(np.moveaxis(stacks, 1, self._axis + 1))
