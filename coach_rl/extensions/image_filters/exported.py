"""Filters of images as functions of tensors."""

from collections.abc import Callable

import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.extensions.exporting.torch_filters import torch_filter
from coach_rl.extensions.image_filters.image_filters import (
    ObservationCropFilter,
    ObservationRGBToYFilter,
    ObservationToUInt8Filter,
)
from coach_rl.filters import InputStage


@torch_filter.register
def _crop(params: ObservationCropFilter, _stage: InputStage) -> Callable[[Tensor], Tensor]:
    kept = (slice(None), *map(slice, params.low, params.high))
    return lambda values: values[kept]


@torch_filter.register
def _grey(_params: ObservationRGBToYFilter, stage: InputStage) -> Callable[[Tensor], Tensor]:
    box = stage.output_space
    assert isinstance(box, spaces.Box)
    low, high = float(box.low.min()), float(box.high.max())

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
