"""Filters of images as functions of tensors.

Images are resized by products with the weights that torch's antialiased interpolation has, first
along the width, then along the height; bytes in the fixed-point numbers of its kernel for bytes.
"""

from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.extensions.exporting.torch_filters import torch_filter
from coach_rl.extensions.image_filters.image_filters import (
    ObservationCropFilter,
    ObservationRescaleSizeByFactorFilter,
    ObservationRescaleToSizeFilter,
    ObservationRGBToYFilter,
    ObservationToUInt8Filter,
)
from coach_rl.filters import InputStage

_MOST_BITS = 22
"""Bits behind the point of torch's weights for bytes at most; the largest weight has 15 in all."""


@torch_filter.register
def _crop(params: ObservationCropFilter, _stage: InputStage) -> Callable[[Tensor], Tensor]:
    kept = (slice(None), *map(slice, params.low, params.high))
    return lambda values: values[kept]


@torch_filter.register
def _grey(_params: ObservationRGBToYFilter, stage: InputStage) -> Callable[[Tensor], Tensor]:
    box = stage.output_space
    assert isinstance(box, spaces.Box)
    low = float(box.low.min())
    high = float(box.high.max())

    def grey(images: Tensor) -> Tensor:
        is_bytes = images.dtype == torch.uint8
        red, green, blue = (images.to(torch.float64)[..., channel] for channel in range(3))
        if is_bytes:  # whole numbers in 1/65536, exact in float64
            luma = red * 19595 + green * 38470 + blue * 7471
            return torch.floor((luma + 32768) / 65536).to(torch.uint8)
        luma = red * 0.299 + green * 0.587 + blue * 0.114
        return luma.clamp(low, high).to(images.dtype)

    return grey


@torch_filter.register
def _bytes(params: ObservationToUInt8Filter, _stage: InputStage) -> Callable[[Tensor], Tensor]:
    scale = 255.0 / (params.high - params.low)

    def levels(values: Tensor) -> Tensor:
        scaled = (values.to(torch.float64) - params.low) * scale
        return torch.round(scaled).clamp(0, 255).to(torch.uint8)

    return levels


@torch_filter.register(ObservationRescaleSizeByFactorFilter)
@torch_filter.register(ObservationRescaleToSizeFilter)
def _resized(_params: object, stage: InputStage) -> Callable[[Tensor], Tensor]:
    box = stage.output_space
    assert isinstance(box, spaces.Box)
    height, width = box.shape[:2]
    low = float(box.low.min())
    high = float(box.high.max())

    def resize(images: Tensor) -> Tensor:
        along = _bytes_along if images.dtype == torch.uint8 else _along
        images = along(images, 2, width)
        return along(images, 1, height).clamp(low, high).to(images.dtype)

    return resize


def _along(images: Tensor, axis: int, size: int) -> Tensor:
    """Images [R, H, W, ...] with another size along an axis."""
    before = int(images.shape[axis])
    if before == size:
        return images
    weights = _weights(before, size, images.dtype)
    last = images.dim() - 1  # negative axes are not written to ONNX
    return (images.movedim(axis, last) @ weights).movedim(last, axis)


def _bytes_along(images: Tensor, axis: int, size: int) -> Tensor:
    """The same of bytes, rounded to bytes."""
    before = int(images.shape[axis])
    if before == size:
        return images
    weights = _weights(before, size, torch.float64)
    bits = 0
    while bits < _MOST_BITS and 0.5 + float(weights.max()) * 2 ** (bits + 1) < 2**15:
        bits += 1
    fixed = torch.floor(weights * 2**bits + 0.5)  # whole numbers, exact in float64
    last = images.dim() - 1
    sums = images.movedim(axis, last).to(torch.float64) @ fixed
    rounded = torch.floor((sums + 2 ** (bits - 1)) / 2**bits).clamp(0, 255)
    return rounded.movedim(last, axis).to(torch.uint8)


def _weights(before: int, after: int, dtype: torch.dtype) -> Tensor:
    """The weight of each pixel of a line in each of the line of another size, [before, after].

    Triangles as wide as two of the larger pixels, within the line, whose sum is 1.
    """
    scale = before / after
    width = max(scale, 1.0)
    centre = scale * (np.arange(after) + 0.5)
    first = np.maximum((centre - width + 0.5).astype(np.int64), 0)
    end = np.minimum((centre + width + 0.5).astype(np.int64), before)
    pixel = np.arange(before)[:, None]
    weights = np.maximum(1 - np.abs(pixel - centre + 0.5) / width, 0)
    weights[(pixel < first) | (pixel >= end)] = 0
    return torch.from_numpy(weights / weights.sum(axis=0)).to(dtype)
