"""Filters of observations: descriptions whose `build` returns an `InputStage`.

Start with `ObservationClippingFilter` for a filter that is only a function,
`ObservationNormalizationFilter` for one with statistics, `ObservationStackingFilter` for one with
memory per row.
"""

from typing import Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ParameterError, SpaceError, UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.spaces import Space
from coach_rl.filters.normalizer import Normalizer
from coach_rl.filters.stages import (
    InputStage,
    RowMemory,
    StatelessInputStage,
    box,
    box_of,
    describe,
    require_limits,
)


@parameter_class
class ObservationClippingFilter:
    """Every element is limited to `low` and `high`; the dtype stays."""

    low: float | None = None
    """Smallest value that passes; None for no limit."""
    high: float | None = None
    """Largest value that passes; None for no limit."""

    def __post_init__(self) -> None:
        require_limits("ObservationClippingFilter", self.low, self.high)

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


@parameter_class
class ObservationReductionBySubPartsNameFilter:
    """Keep only some elements of a vector, chosen by name; they keep their order."""

    names: tuple[str, ...]
    """The name of every element, in order; the elements of one sub-part may share a name."""
    sub_parts: tuple[str, ...]
    """The names chosen."""
    method: Literal["keep", "discard"] = "keep"
    """Treatment of the chosen elements."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in self.sub_parts:
            if name not in self.names:
                raise UnknownNameError("sub-part", name, set(self.names), f"{owner}.names has them")
        if not self._kept:
            raise ParameterError(
                f"{owner} would leave nothing: {self.method} {self.sub_parts} of {self.names}"
            )

    @property
    def _kept(self) -> tuple[int, ...]:
        keep = self.method == "keep"
        return tuple(
            index for index, name in enumerate(self.names) if (name in self.sub_parts) == keep
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a vector with as many elements as there are names."""
        source = box_of("ObservationReductionBySubPartsNameFilter", space)
        if source.shape != (len(self.names),):
            raise SpaceError(
                "ObservationReductionBySubPartsNameFilter needs a vector of "
                f"{len(self.names)} elements, one per name, got {describe(source)}"
            )
        kept = np.array(self._kept, dtype=np.int64)
        return StatelessInputStage(
            box(source.low[kept], source.high[kept], source.dtype),
            lambda values: values[:, kept],
        )


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
    differences: bool = False
    """Changes in place of older observations: the newest one minus each. They are velocities where
    positions are observed. Normalise behind this filter: changes in a short step are small."""

    def build(self, space: Space) -> "ObservationStack":
        """Build the filter for any Box with at least as many axes as `axis` needs.

        Differences need numbers with a sign: a Box of floats.
        """
        source = box_of("ObservationStackingFilter", space)
        if self.differences and not np.issubdtype(source.dtype, np.floating):
            raise SpaceError(
                "ObservationStackingFilter.differences needs a Box of floats, got "
                f"{describe(source)}; leave differences out"
            )
        axes = len(source.shape) + 1
        if not -axes <= self.axis < axes:
            raise SpaceError(
                f"ObservationStackingFilter.axis is {self.axis}, but a stack of observations of "
                f"shape {source.shape} has {axes} axes; allowed: {-axes} to {axes - 1}"
            )
        return ObservationStack(
            source, size=self.stack_size, axis=self.axis % axes, differences=self.differences
        )


class ObservationStack(InputStage):
    """Remembers the last observations of every row.

    Args:
        space: Of one observation.
        size: Observations shown at once.
        axis: Where their axis stands in what comes out, 0 or more, without the row axis.
        differences: The newest observation minus each older one takes its place.
    """

    def __init__(
        self, space: spaces.Box, *, size: int, axis: int, differences: bool = False
    ) -> None:
        low, high = space.low, space.high
        older = (low - high, high - low) if differences else (low, high)
        lowest, highest = (
            np.stack([bound] * (size - 1) + [newest], axis=axis)
            for bound, newest in zip(older, (low, high), strict=True)
        )
        super().__init__(box(lowest, highest, space.dtype))
        self._space = space
        self._size = size
        self._axis = axis
        self._differences = differences

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
        if self._differences:
            stacks[:, :-1] = stacks[:, -1:] - stacks[:, :-1]
        return np.ascontiguousarray(np.moveaxis(stacks, 1, self._axis + 1))
