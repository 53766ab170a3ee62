"""Filters that make actions of any flat space choices of an agent for Discrete spaces.

Every filter maps both ways.
"""

from math import prod
from typing import Annotated

import numpy as np
import numpy.typing as npt
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import ActionError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.records import Array, IntArray
from coach_rl.core.spaces import Space, check_actions
from coach_rl.filters.action_filters import is_whole
from coach_rl.filters.stages import StatelessActionStage, bounded_box_of, describe

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
