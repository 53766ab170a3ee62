"""Requirements of a filter on the space it is built for, and their one-line errors."""

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space

_LARGEST_CHANNEL_COUNT = 4


def describe(space: Space) -> str:
    """The space in a few words on one line; the bounds of a Box are summed up."""
    if isinstance(space, spaces.Box):
        return f"Box({space.low.min():g}..{space.high.max():g}, {space.shape}, {space.dtype})"
    return " ".join(repr(space).split())


def box_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box with at least one element.

    Raises:
        SpaceError: It is another kind of space.
    """
    if not isinstance(space, spaces.Box) or 0 in space.shape:
        raise SpaceError(f"{owner} needs a Box that isn't empty, got {describe(space)}")
    return space


def image_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box of images, [height, width] or [height, width, channels], uint8 or float.

    Raises:
        SpaceError: It is something else; says how to bring the channels to the end where they stand
            first.
    """
    box = box_of(owner, space)
    wanted = f"{owner} needs images [height, width] or [height, width, channels of 1 to 4]"
    if box.dtype not in (np.uint8, np.float32, np.float64):
        raise SpaceError(f"{wanted} of uint8, float32 or float64, got {describe(box)}")
    if len(box.shape) not in (2, 3) or box.shape[2:] > (_LARGEST_CHANNEL_COUNT,):
        raise SpaceError(
            f"{wanted}, got {describe(box)}; channels that stand first are moved by "
            "ObservationMoveAxisFilter(source=0, destination=-1)"
        )
    return box


def bounded_box_of(owner: str, space: Space) -> spaces.Box:
    """The space as a Box whose every element has a lower and a higher, finite bound.

    Raises:
        SpaceError: It is another kind of space, or a side is unbounded or empty.
    """
    box = box_of(owner, space)
    if not (np.isfinite(box.low).all() and np.isfinite(box.high).all()):
        raise SpaceError(
            f"{owner} needs a Box with finite bounds on all sides, got {describe(box)}"
        )
    if not (box.low < box.high).all():
        raise SpaceError(f"{owner} needs a Box whose low is below its high, got {describe(box)}")
    return box


def axis_of(owner: str, field: str, axis: int, number_of_axes: int) -> int:
    """An axis of one row's value as an axis of a batch: rows come first.

    Raises:
        SpaceError: There is no such axis.
    """
    if not -number_of_axes <= axis < number_of_axes:
        raise SpaceError(
            f"{owner}.{field} is {axis}, but the value has {number_of_axes} axes; "
            f"allowed: {-number_of_axes} to {number_of_axes - 1}"
        )
    return axis % number_of_axes + 1


def per_element(
    owner: str, field: str, value: float | tuple[float, ...], shape: tuple[int, ...]
) -> npt.NDArray[np.float64]:
    """One number for all elements, or a number each in row-major order, as an array of `shape`.

    Raises:
        SpaceError: There are not as many numbers as elements.
    """
    numbers = np.asarray(value, dtype=np.float64)
    size = int(np.prod(shape))
    if numbers.ndim and numbers.size != size:
        raise SpaceError(
            f"{owner}.{field} has {numbers.size} numbers, but the Box of shape {shape} has {size} "
            "elements; give one number for all or one for each"
        )
    return np.array(np.broadcast_to(numbers.reshape(shape if numbers.ndim else ()), shape))


def box(low: Array, high: Array, dtype: npt.DTypeLike) -> spaces.Box:
    """A Box with these bounds, cast to its dtype first."""
    kind = np.dtype(dtype).type
    return spaces.Box(np.asarray(low, dtype=kind), np.asarray(high, dtype=kind), dtype=kind)
