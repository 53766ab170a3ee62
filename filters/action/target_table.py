"""A list of actions and its numbering, shared by the two discrete maps."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ActionError, SpaceError
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space, check_actions
from coach_rl.filters.space_requirements import describe
from coach_rl.filters.stages import StatelessActionStage

TargetAction = int | float | tuple[object, ...]
"""One action: a number for Discrete, (nested) tuples in the shape of any other space."""


def target_array(owner: str, targets: tuple[TargetAction, ...], space: Space) -> Array:
    """The targets as an array [targets, ...] in the dtype of `space`.

    Raises:
        SpaceError: One doesn't lie in the space, or is listed twice.
    """
    if space.shape is None or not isinstance(
        space, spaces.Discrete | spaces.MultiDiscrete | spaces.MultiBinary | spaces.Box
    ):
        raise SpaceError(
            f"{owner} needs Discrete, MultiDiscrete, MultiBinary or Box actions, "
            f"got {describe(space)}"
        )
    table = np.zeros((len(targets), *space.shape), dtype=space.dtype)
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
                f"{owner}: target action {target} (position {index}) doesn't lie in the "
                f"environment's {describe(space)}"
            )
    _, first = np.unique(table.reshape(len(table), -1), axis=0, return_index=True)
    if len(first) != len(table):
        twice = min(set(range(len(table))) - {int(index) for index in first})
        raise SpaceError(f"{owner}: target action {targets[twice]} is listed twice")
    return table


def table_stage(owner: str, table: Array) -> StatelessActionStage:
    """The stage whose agent action i is `table[i]`.

    The way back of a table of floats goes to the nearest entry (Euclidean), of any other to the
    entry itself; `ActionError` when it isn't there.

    Args:
        owner: The filter, for errors.
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
                f"{owner} never gives the action {action[row]} of row {row}, so there is no way "
                "back; list it among the target actions"
            )
        return np.asarray(matches.argmax(axis=1))

    return StatelessActionStage(
        spaces.Discrete(len(table)), forward=lambda action: table[action], backward=backward
    )
