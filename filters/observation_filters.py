"""Filters of observations: descriptions whose `build` returns an `InputStage`.

Start with `ObservationClippingFilter` for a filter that is only a function,
`ObservationNormalizationFilter` for one with statistics, `ObservationStackingFilter` for one with
memory per row.
"""

from typing import Literal

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.errors import ParameterError, SpaceError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
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
    image_of,
    require_limits,
)

# ITU-R BT.601-7, section 2.5.1: the luma of red, green, blue.
_WEIGHTS = (0.299, 0.587, 0.114)
# The same in 1/65536, as in pillow's convert("L"). All sums of byte times weight stay below 2**24,
# so float32 holds them exactly in whatever order they are added.
_INTEGER_WEIGHTS = (19595.0, 38470.0, 7471.0)


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
class ObservationCropFilter:
    """Keep the elements from `low` up to, but without, `high`, axis by axis."""

    low: tuple[NonNegative[int], ...]
    """First index kept, one per axis of the observation, 0 or more."""
    high: tuple[int | None, ...]
    """First index no longer kept, one per axis; None keeps the axis up to its end."""

    def __post_init__(self) -> None:
        require(
            len(self.low) == len(self.high),
            "ObservationCropFilter.low and high need one entry per axis each, "
            f"got {self.low} and {self.high}",
        )
        require(
            all(high is None or low < high for low, high in zip(self.low, self.high, strict=True)),
            "ObservationCropFilter.low must be 0 or more and below high on every axis, "
            f"got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a Box with as many axes as the crop, and at least as large."""
        source = box_of("ObservationCropFilter", space)
        if len(source.shape) != len(self.low) or any(
            max(low + 1, high or 0) > size
            for low, high, size in zip(self.low, self.high, source.shape, strict=True)
        ):
            raise SpaceError(
                f"ObservationCropFilter from {self.low} to {self.high} doesn't fit into an "
                f"observation of shape {source.shape}; give one entry per axis within the shape"
            )
        kept = tuple(slice(low, high) for low, high in zip(self.low, self.high, strict=True))

        def crop(values: Array) -> Array:
            return values[(slice(None), *kept)].copy()

        return StatelessInputStage(box(source.low[kept], source.high[kept], source.dtype), crop)


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


def resizing_stage(source: spaces.Box, height: int, width: int) -> StatelessInputStage:
    """The stage that brings images of `source` to that size, channels and dtype unchanged.

    Resized by torch, for all rows at once: bilinear, with the support widened when shrinking
    (`antialias`), as pillow's `Image.BILINEAR` does it. On uint8 the two differ by at most one
    level.

    Args:
        source: [height, width] or [height, width, channels], uint8, float32 or float64.
        height: Pixels.
        width: Pixels.
    """
    shape = (height, width, *source.shape[2:])
    low, high = source.low.min(), source.high.max()

    def resize(images: Array) -> Array:
        pixels = torch.from_numpy(np.array(images, order="C"))  # [R, H, W] or [R, H, W, C]
        if not len(pixels):
            return np.zeros((0, *shape), dtype=images.dtype)
        stacked = pixels.unsqueeze(1) if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2)
        resized = torch.nn.functional.interpolate(
            stacked, size=(height, width), mode="bilinear", align_corners=False, antialias=True
        )
        last = resized.permute(0, 2, 3, 1).reshape(len(pixels), *shape).numpy()
        return np.asarray(np.clip(last, low, high))

    return StatelessInputStage(box(np.full(shape, low), np.full(shape, high), source.dtype), resize)


@parameter_class
class ObservationRescaleSizeByFactorFilter:
    """Height and width times `factor`, rounded to whole pixels; bilinear with antialiasing."""

    factor: Positive[float]
    """0.5 halves height and width."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images, channels last or none."""
        source = image_of("ObservationRescaleSizeByFactorFilter", space)
        height, width = (round(size * self.factor) for size in source.shape[:2])
        if not height or not width:
            raise SpaceError(
                f"ObservationRescaleSizeByFactorFilter.factor {self.factor} leaves nothing of an "
                f"image of {source.shape[0]} x {source.shape[1]} pixels; use a larger factor"
            )
        return resizing_stage(source, height, width)


@parameter_class
class ObservationRescaleToSizeFilter:
    """Images to `height` x `width`; the aspect ratio may change; bilinear with antialiasing."""

    height: Positive[int]
    """Pixels."""
    width: Positive[int]
    """Pixels."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images, channels last or none."""
        source = image_of("ObservationRescaleToSizeFilter", space)
        return resizing_stage(source, self.height, self.width)


@parameter_class
class ObservationRGBToYFilter:
    """[height, width, 3] to the luma [height, width], by ITU-R BT.601; the dtype stays."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images of three channels, channels last."""
        source = image_of("ObservationRGBToYFilter", space)
        if source.shape[2:] != (3,):
            raise SpaceError(
                "ObservationRGBToYFilter needs images [height, width, 3], "
                f"got {describe(source)}; grey images don't need it"
            )
        low, high = source.low.min(), source.high.max()

        def grey(images: Array) -> Array:
            red, green, blue = (images[..., channel] for channel in range(3))
            luma = red * _WEIGHTS[0] + green * _WEIGHTS[1] + blue * _WEIGHTS[2]
            return np.asarray(np.clip(luma, low, high))

        shape = source.shape[:2]
        return StatelessInputStage(
            box(np.full(shape, low), np.full(shape, high), source.dtype),
            _byte_grey if source.dtype == np.uint8 else grey,
        )


def _byte_grey(images: Array) -> Array:
    luma = images.astype(np.float32) @ np.array(_INTEGER_WEIGHTS, dtype=np.float32)  # [R, H, W]
    luma += 1 << 15  # round to nearest
    luma *= 1.0 / (1 << 16)
    return luma.astype(np.uint8)


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
        self._space, self._size, self._axis, self._differences = space, size, axis, differences

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
