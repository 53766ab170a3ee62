"""Arithmetic of goals as functions of tensors [R, ...].

Methods register theirs for their goal spaces, and name these in `WRITTEN`.
"""

from functools import singledispatch

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.extensions.exporting.policies import Tensors

_WRITTEN = (
    "achieved", "difference_of", "is_over", "judge", "reached_at", "show", "shown_from", "target",
    "verdict",
)  # fmt: skip
"""Methods of goal spaces that are written here as functions of tensors."""
WRITTEN: list[type[GoalSpace]] = [GoalSpace]
"""Classes of goal spaces whose methods are written as functions of tensors, the general first."""


def is_written(space: GoalSpace) -> bool:
    """Return whether a goal space judges by what is written here, without methods of its own."""
    nearest = next(each for each in reversed(WRITTEN) if isinstance(space, each))
    return all(getattr(type(space), name) is getattr(nearest, name) for name in _WRITTEN)


@singledispatch
def shown_goal(space: object, goal: Tensor, seen: Tensors) -> Tensors:
    """`GoalSpace.show` or `OptionSpace.show` of tensors."""
    raise NotImplementedError(f"of a {type(space).__name__}, with {len(seen)} and {goal.shape}")


@shown_goal.register
def _shown_option(_space: OptionSpace, option: Tensor, _seen: Tensors) -> Tensors:
    return {OPTION_KEY: option}


@shown_goal.register
def shown_place(space: GoalSpace, goal: Tensor, seen: Tensors) -> Tensors:
    """`GoalSpace.show` of tensors."""
    if space.observed == "relative":
        return {GOAL_KEY: -difference_of(space, goal, seen).to(torch.float32)}
    return {GOAL_KEY: goal[:, : space.size]}


@singledispatch
def target(space: object, action: Tensor, seen: Tensors) -> Tensor:
    """`GoalSpace.target` or `OptionSpace.target` of tensors."""
    raise NotImplementedError(f"of a {type(space).__name__}, with {len(seen)} and {action.shape}")


@target.register
def _option(space: OptionSpace, action: Tensor, _seen: Tensors) -> Tensor:
    return nn.functional.one_hot(action.to(torch.int64), space.count).to(torch.float32)


@target.register
def goal_of(space: GoalSpace, action: Tensor, seen: Tensors) -> Tensor:
    """`GoalSpace.target` of tensors."""
    goal = action[:, : space.size]
    if space.relative:
        goal = achieved(space, seen) + goal
    low, high = map(torch.from_numpy, space.bounds)
    goal = turned(space, goal)
    return torch.minimum(torch.maximum(goal, low), high).to(torch.float32)


def turned(space: GoalSpace, goal: Tensor) -> Tensor:
    """`GoalSpace.turned` of tensors [R, G]."""
    if not space.angles:
        return goal
    low, high = map(torch.from_numpy, space.bounds)
    turns = torch.round((goal - (low + high) / 2) / (2 * np.pi))
    is_angle = torch.tensor([element in space.angles for element in range(space.size)])
    is_outside = (goal < low) | (goal > high)
    return torch.where(is_angle & is_outside, goal - 2 * np.pi * turns, goal)


@singledispatch
def verdict(space: GoalSpace, goal: Tensor, seen: Tensors) -> tuple[Tensor, Tensor]:
    """[R] whether goals are met, and whether nothing is left to do for them."""
    met = is_near(space, difference_of(space, goal, seen))
    return met, met


def is_near(space: GoalSpace, difference: Tensor) -> Tensor:
    """`GoalSpace.reached_at` of tensors [..., G]."""
    threshold = torch.tensor(space.threshold, dtype=torch.float64)
    difference = difference.to(torch.float64)
    if space.reached_within == "ball":
        return ((difference / threshold) ** 2).sum(dim=-1) <= 1
    return (difference.abs() <= threshold).all(dim=-1)


@singledispatch
def action_for(space: GoalSpace, goal: Tensor, seen: Tensors) -> Tensor:
    """The action that sends a goal to the level below, as tensors; of goals without angles."""
    return requested(space, goal, seen)


def requested(space: GoalSpace, goal: Tensor, seen: Tensors) -> Tensor:
    """Goals, or displacements to them, within what may be set."""
    low, high = map(torch.from_numpy, space.bounds)
    if space.relative:
        goal = -difference_of(space, goal, seen)
        high = high - low if space.reach is None else torch.tensor(space.reach)
        low = -high
    return torch.minimum(torch.maximum(goal, low), high).to(torch.float32)


@singledispatch
def achieved(space: GoalSpace, seen: Tensors) -> Tensor:
    """`GoalSpace.achieved` of tensors."""
    values = seen[space.key].flatten(1)
    values = values if values.is_floating_point() else values.to(torch.float64)
    return values if space.elements is None else values[:, list(space.elements)]


def difference_of(space: GoalSpace, goal: Tensor, seen: Tensors) -> Tensor:
    """Achieved minus wanted, angles within half a turn, [R, G]."""
    difference = achieved(space, seen) - goal[:, : space.size]
    if not space.angles:
        return difference
    is_angle = torch.tensor([element in space.angles for element in range(space.size)])
    turned = difference - 2 * np.pi * torch.round(difference / (2 * np.pi))
    return torch.where(is_angle, turned, difference)
