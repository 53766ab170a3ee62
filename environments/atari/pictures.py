"""Small grey pictures of emulator frames: the mean over the area that each pixel covers."""

import math

import numpy as np

from coach_rl.core.records import Array, FloatArray


class AreaMean:
    """Shrinks a picture to a size at which each pixel is the mean of the area that it covers.

    A pixel on the border of two areas counts for each with the share that lies in it. Two matrix
    products do that, first along the width, then along the height. Areas repeat after a number of
    pixels that divides both sizes, so the products have the size of such a block.

    Args:
        height: Pixels of the picture.
        width: Pixels of the picture.
        size: Pixels of the result in both directions, not more than those of the picture.
    """

    def __init__(self, height: int, width: int, size: int) -> None:
        self._size = size
        self._row_blocks = math.gcd(height, size)
        self._column_blocks = math.gcd(width, size)
        self._rows = _weights(height // self._row_blocks, size // self._row_blocks)
        self._columns = _weights(width // self._column_blocks, size // self._column_blocks).T.copy()

    def __call__(self, picture: Array) -> Array:
        """The small picture, uint8 [size, size], of one uint8 [height, width]; rounded."""
        height = len(picture)
        size = self._size
        pixels = picture.astype(np.float32)
        narrow = pixels.reshape(-1, len(self._columns)) @ self._columns
        blocks = narrow.reshape(self._row_blocks, height // self._row_blocks, size)
        small = np.matmul(self._rows, blocks).reshape(size, size)
        small += 0.5  # the cast drops what is behind the point
        return np.asarray(small.astype(np.uint8))


def _weights(before: int, after: int) -> FloatArray:
    """Matrix [after, before] from pixels to the means of as many equal areas."""
    begin = np.arange(after)[:, None] * (before / after)
    pixel = np.arange(before)
    # Pixel j covers [j, j + 1]; its share in the area [b, b + w] is the length of the overlap.
    overlap = np.minimum(begin + before / after, pixel + 1) - np.maximum(begin, pixel)
    return np.asarray(np.maximum(overlap, 0) * (after / before), np.float32)
