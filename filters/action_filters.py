"""Filters of actions: descriptions whose `build` returns an `ActionStage`.

Every filter maps both ways; start with `LinearBoxToBoxMap`.
"""

from math import prod
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.core.errors import ActionError, SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import Array, IntArray
from coach_rl.core.spaces import Space, check_actions, choice_sizes, first_action, stretched
from coach_rl.filters.stages import (
    StatelessActionStage,
    bounded_box_of,
    box,
    box_of,
    describe,
    per_element,
)

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
    if (product := prod(numbers)) > _LARGEST_PRODUCT:
        raise SpaceError(
            f"{owner} would make {product} actions of {numbers} bins, allowed: {_LARGEST_PRODUCT}; "
            "use fewer bins, or an agent for continuous actions"
        )
    return numbers


def even_points(
    owner: str, low: float, high: float, number: int, *, whole: bool
) -> npt.NDArray[np.float64]:
    """Evenly spaced points from `low` to `high`, both included; rounded to integers on request.

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


TargetAction = int | float | tuple[object, ...]
"""One action: a number for Discrete, (nested) tuples in the shape of any other space."""


def target_array(targets: tuple[TargetAction, ...], space: Space) -> Array:
    """The targets as an array [targets, ...] in the dtype of `space`.

    Raises:
        SpaceError: One doesn't lie in the space, or is listed twice.
    """
    if not isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box
    ):
        raise SpaceError(
            "PartialDiscreteActionSpaceMap needs Discrete, MultiDiscrete, MultiBinary or Box "
            f"actions, got {describe(space)}"
        )
    table = np.zeros((len(targets), *(space.shape or ())), dtype=space.dtype)
    is_inexact = np.issubdtype(table.dtype, np.floating)  # rounding to the dtype is no harm
    for index, target in enumerate(targets):
        action = np.asarray(target)
        try:
            table[index] = action
            is_kept = is_inexact or bool((table[index] == action).all())
            check_actions(space, table[index : index + 1])
        except (ActionError, ValueError, TypeError, OverflowError):
            is_kept = False
        if not is_kept or action.shape != space.shape:
            raise SpaceError(
                f"PartialDiscreteActionSpaceMap: target action {target} (position {index}) doesn't "
                f"lie in the environment's {describe(space)}"
            )
    _, first = np.unique(table.reshape(len(table), -1), axis=0, return_index=True)
    if len(first) != len(table):
        twice = min(set(range(len(table))) - {int(index) for index in first})
        raise SpaceError(
            f"PartialDiscreteActionSpaceMap: target action {targets[twice]} is listed twice"
        )
    return table


def table_stage(table: Array) -> StatelessActionStage:
    """The stage whose agent action i is `table[i]`.

    The way back of a table of floats goes to the nearest entry (Euclidean), of any other to the
    entry itself; `ActionError` when it isn't there.

    Args:
        table: [actions, ...], no two alike.
    """
    flat = table.reshape(len(table), -1)
    is_inexact = np.issubdtype(table.dtype, np.floating)

    def backward(action: Array) -> Array:
        rows = action.reshape(len(action), 1, flat.shape[1])  # against [actions, elements]
        if is_inexact:
            distance = np.square(rows.astype(np.float64) - flat).sum(axis=2)  # [R, actions]
            return np.asarray(distance.argmin(axis=1))
        matches = (rows == flat).all(axis=2)  # [R, actions]
        found = matches.any(axis=1)
        if not found.all():
            row = int(np.flatnonzero(~found)[0])
            raise ActionError(
                f"PartialDiscreteActionSpaceMap never gives the action {action[row]} of row {row}, "
                "so there is no way back; list it among the target actions"
            )
        return np.asarray(matches.argmax(axis=1))

    return StatelessActionStage(
        spaces.Discrete(len(table)), forward=lambda action: table[action], backward=backward
    )


@parameter_class
class BoxDiscretization:
    """Evenly spaced values per dimension, both bounds among them; whole numbers in an integer Box.

    An action is any combination of them. The agent's action 0 is the low bound everywhere; the last
    dimension varies fastest.
    """

    num_bins: Annotated[int, Ge(2)] | NonEmpty[tuple[Annotated[int, Ge(2)], ...]]
    """Values per dimension, 2 or more: one number for all dimensions or one for each."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a Box with finite bounds."""
        owner = "BoxDiscretization"
        target = bounded_box_of(owner, space)
        low, high = (bound.reshape(-1).astype(np.float64) for bound in (target.low, target.high))
        numbers = bins_per_dimension(owner, self.num_bins, len(low))
        whole = is_whole(target)
        points = [
            even_points(owner, low[index], high[index], number, whole=whole)
            for index, number in enumerate(numbers)
        ]

        def forward(action: Array) -> Array:
            bins = np.unravel_index(action, numbers)  # one [R] per dimension
            flat = np.stack([part[index] for part, index in zip(points, bins, strict=True)], axis=1)
            return flat.reshape(len(action), *target.shape).astype(target.dtype)

        def backward(action: Array) -> Array:
            flat = action.reshape(len(action), len(points))
            bins = tuple(nearest(part, flat[:, index]) for index, part in enumerate(points))
            return np.asarray(np.ravel_multi_index(bins, numbers), dtype=np.int64)

        return StatelessActionStage(
            spaces.Discrete(prod(numbers)), forward=forward, backward=backward
        )


@parameter_class
class BoxMasking:
    """The agent acts in the part from `low` to `high`; actions keep their meaning.

    Equal bounds force a value. The way back brings an action outside the mask to its nearest point
    inside. For an agent that acts in a fixed range, list a `LinearBoxToBoxMap` behind it.
    """

    low: float | tuple[float, ...]
    """Smallest action allowed: one number for all elements or one for each, in row-major order."""
    high: float | tuple[float, ...]
    """Largest action allowed."""

    def __post_init__(self) -> None:
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        require(
            (1 in (len(low), len(high)) or len(low) == len(high)) and bool((low <= high).all()),
            f"BoxMasking.low must nowhere exceed high, got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a Box that contains the mask; an integer Box needs whole bounds."""
        target = box_of("BoxMasking", space)
        low, high = (
            per_element("BoxMasking", field, value, target.shape)
            for field, value in (("low", self.low), ("high", self.high))
        )
        lowest, highest = low.astype(target.dtype), high.astype(target.dtype)
        if (lowest < target.low).any() or (highest > target.high).any():
            raise SpaceError(
                f"BoxMasking from {self.low} to {self.high} leaves the environment's "
                f"{describe(target)}; the mask must lie within it"
            )
        if np.issubdtype(target.dtype, np.integer) and (
            (lowest != low).any() or (highest != high).any()
        ):
            raise SpaceError(
                f"BoxMasking needs whole bounds for {describe(target)}, "
                f"got {self.low} and {self.high}"
            )
        return StatelessActionStage(
            box(lowest, highest, target.dtype),
            forward=lambda action: np.clip(action, lowest, highest),
            backward=lambda action: np.clip(action, lowest, highest),
        )


@parameter_class
class FullDiscreteActionSpaceMap:
    """Every action of a countable space gets a number of its own, so none is out of reach.

    Turns MultiDiscrete and MultiBinary actions into Discrete ones, or renumbers a Discrete space
    from 0. Actions ascend, the last element varies fastest.
    """

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a finite space."""
        if not isinstance(space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary):
            raise SpaceError(
                "FullDiscreteActionSpaceMap needs a Discrete, MultiDiscrete or MultiBinary space, "
                f"got {describe(space)}; a Box is made discrete by BoxDiscretization"
            )
        sizes = choice_sizes(space)
        shape = space.shape or ()
        first = first_action(space).astype(np.int64)

        def forward(action: Array) -> Array:
            flat = np.stack(np.unravel_index(action, sizes), axis=1)  # [R, elements]
            return (first + flat.reshape(len(action), *shape)).astype(space.dtype)

        def backward(action: Array) -> Array:
            flat = (action.astype(np.int64) - first).reshape(len(action), len(sizes))
            return np.asarray(np.ravel_multi_index(tuple(flat.T), sizes), dtype=np.int64)

        return StatelessActionStage(
            spaces.Discrete(prod(sizes)), forward=forward, backward=backward
        )


@parameter_class
class LinearBoxToBoxMap:
    """The agent's `low`..`high` is stretched to the environment's bounds, element by element.

    Each side is mapped exactly onto its bound, whether or not the bounds are symmetric. Actions
    outside either Box are brought to its border first.
    """

    low: float | tuple[float, ...] = -1.0
    """The agent's low bound: one number for all elements or one for each, in row-major order."""
    high: float | tuple[float, ...] = 1.0
    """The agent's high bound."""

    def __post_init__(self) -> None:
        low, high = np.atleast_1d(self.low), np.atleast_1d(self.high)
        require(
            bool(np.isfinite(low).all() and np.isfinite(high).all())
            and (1 in (len(low), len(high)) or len(low) == len(high))
            and bool((low < high).all()),
            "LinearBoxToBoxMap.low and high must be finite, low below high everywhere, "
            f"got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a float Box with finite bounds."""
        owner = "LinearBoxToBoxMap"
        target = bounded_box_of(owner, space)
        if is_whole(target):
            raise SpaceError(f"{owner} needs a Box of floats, got {describe(target)}")
        source = box(
            per_element(owner, "low", self.low, target.shape),
            per_element(owner, "high", self.high, target.shape),
            target.dtype,
        )

        def forward(action: Array) -> Array:
            return stretched(action, source.low, source.high, target.low, target.high)

        def backward(action: Array) -> Array:
            return stretched(action, target.low, target.high, source.low, source.high)

        return StatelessActionStage(source, forward=forward, backward=backward)


@parameter_class
class PartialDiscreteActionSpaceMap:
    """The agent's action i is `target_actions[i]`; all other actions are out of reach.

    The environment may take Discrete, MultiDiscrete, MultiBinary or Box actions. The way back goes
    to the same action, in a Box of floats to the nearest one.
    """

    target_actions: NonEmpty[tuple[TargetAction, ...]]
    """The environment's actions, no two alike: numbers, or tuples in the shape of its space."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a space that contains every target action."""
        return table_stage(target_array(self.target_actions, space))
