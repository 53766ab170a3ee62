"""Colour to grey."""

import numpy as np

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, describe, image_of
from coach_rl.filters.stages import StatelessInputStage

# ITU-R BT.601-7, section 2.5.1: the luma of red, green, blue.
_WEIGHTS = (0.299, 0.587, 0.114)
# The same in 1/65536, as in pillow's convert("L"). All sums of byte times weight stay below 2**24,
# so float32 holds them exactly in whatever order they are added.
_INTEGER_WEIGHTS = (19595.0, 38470.0, 7471.0)


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
