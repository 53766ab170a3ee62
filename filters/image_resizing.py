"""Resizing batches of images, shared by the two rescale filters.

Done by torch, for all rows at once: bilinear, with the support widened when shrinking
(`antialias`), as pillow's `Image.BILINEAR` does it. On uint8 the two differ by at most one level.
"""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.records import Array
from coach_rl.filters.space_requirements import box
from coach_rl.filters.stages import StatelessInputStage


def resizing_stage(source: spaces.Box, height: int, width: int) -> StatelessInputStage:
    """The stage that brings images of `source` to that size, channels and dtype unchanged.

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
