"""Filters of images: parts of them, other sizes, grey ones, bytes."""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.stages import StatelessInputStage, box, box_of, describe

_LARGEST_CHANNEL_COUNT = 4
# ITU-R BT.601-7, section 2.5.1: the luma of red, green, blue.
_WEIGHTS = (0.299, 0.587, 0.114)
# The same in 1/65536, as in pillow's convert("L"). All sums of byte times weight stay below 2**24,
# so float32 holds them exactly in whatever order they are added.
_INTEGER_WEIGHTS = (19595.0, 38470.0, 7471.0)


def image_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box of images, [height, width] or [height, width, channels], uint8 or float.

    Raises:
        SpaceError: It is something else; if the channels stand first, the message shows how to
            bring them to the end.
    """
    box = box_of(owner, space)
    wanted = f"{owner} needs images [height, width] or [height, width, channels of 1 to 4]"
    if box.dtype not in (np.uint8, np.float32, np.float64):
        raise SpaceError(f"{wanted} of uint8, float32 or float64, got {describe(box)}")
    if len(box.shape) not in (2, 3) or box.shape[2:] > (_LARGEST_CHANNEL_COUNT,):
        raise SpaceError(
            f"{wanted}, got {describe(box)}; channels that stand first are moved by a wrapper of "
            "the environment, e.g. gymnasium.wrappers.TransformObservation"
        )
    return box


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
