"""Bins along each dimension of a Box, shared by the two discretizations."""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Array, IntArray

_LARGEST_PRODUCT = 2**31


def bins_per_dimension(
    owner: str, num_bins: int | tuple[int, ...], dimensions: int
) -> tuple[int, ...]:
    """The number of bins of each dimension.

    Raises:
        SpaceError: There are not as many numbers as dimensions, or too many combinations.
    """
    numbers = (num_bins,) * dimensions if isinstance(num_bins, int) else num_bins
    if len(numbers) != dimensions:
        raise SpaceError(
            f"{owner}.num_bins has {len(numbers)} entries for {dimensions} dimensions, got "
            f"{num_bins}; give one number for all or one for each"
        )
    if (product := combinations(numbers)) > _LARGEST_PRODUCT:
        raise SpaceError(
            f"{owner} would make {product} actions of {numbers} bins, allowed: {_LARGEST_PRODUCT}; "
            "use fewer bins, or an agent for continuous actions"
        )
    return numbers


def combinations(numbers: tuple[int, ...]) -> int:
    """Return the number of ways to choose one bin per dimension."""
    return int(np.prod(numbers, dtype=object))


def even_points(
    owner: str, low: float, high: float, number: int, *, whole: bool
) -> npt.NDArray[np.float64]:
    """Evenly spaced points from `low` to `high`, both included; rounded to integers where asked.

    Raises:
        SpaceError: Rounding makes two of them equal.
    """
    points = np.linspace(low, high, number)
    if whole:
        points = np.rint(points)
        if len(np.unique(points)) != number:
            raise SpaceError(
                f"{owner} can't place {number} whole numbers evenly from {low:g} to {high:g}; "
                "use fewer bins"
            )
    return points


def nearest(points: npt.NDArray[np.float64], values: Array) -> IntArray:
    """The index of the point nearest to each value; the lower one halfway between two.

    Args:
        points: [P], ascending.
        values: [R].
    """
    return np.searchsorted((points[:-1] + points[1:]) / 2.0, values)


def is_whole(box: spaces.Box) -> bool:
    """Return whether the Box holds whole numbers."""
    return bool(np.issubdtype(box.dtype, np.integer))
