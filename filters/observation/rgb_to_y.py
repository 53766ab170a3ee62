"""Colour to grey."""

from dataclasses import dataclass

import numpy as np

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, describe, image_of
from coach_rl.filters.stages import StatelessInputStage

# ITU-R BT.601-7, section 2.5.1: the luma of red, green, blue.
_WEIGHTS = (0.299, 0.587, 0.114)
# The same in 1/65536; integer arithmetic rounds to nearest, exactly as pillow's convert("L").
_INTEGER_WEIGHTS = (19595, 38470, 7471)


@dataclass(frozen=True, kw_only=True)
class ObservationRGBToYFilter:
    """[height, width, 3] to the luma [height, width], by ITU-R BT.601; the dtype stays."""

    def build(self, space: Space) -> StatelessInputStage:
        """For images of three channels, channels last."""
        source = image_of("ObservationRGBToYFilter", space)
        if source.shape[2:] != (3,):
            raise SpaceError(
                "ObservationRGBToYFilter needs images [height, width, 3], "
                f"got {describe(source)}; grey images don't need it"
            )
        low, high = source.low.min(), source.high.max()

        def grey(images: Array) -> Array:
            luma = images @ np.array(_WEIGHTS, dtype=images.dtype)
            return np.asarray(np.clip(luma, low, high))

        shape = source.shape[:2]
        return StatelessInputStage(
            box(np.full(shape, low), np.full(shape, high), source.dtype),
            _integer_grey if source.dtype == np.uint8 else grey,
        )


def _integer_grey(images: Array) -> Array:
    weighted = images.astype(np.uint32)  # [R, H, W, 3]
    weighted *= np.array(_INTEGER_WEIGHTS, dtype=np.uint32)
    luma = weighted[..., 0] + weighted[..., 1] + weighted[..., 2] + np.uint32(1 << 15)
    return (luma >> 16).astype(np.uint8)
