"""Arithmetic of goals as functions of tensors [R, ...]."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.agents.hierarchies.metra_goals import METRAGoals
from coach_rl.agents.learned_goals import LearnedGoals
from coach_rl.core.goals import GOAL_KEY, TIME_KEY, GoalSpace, TimedGoalSpace
from coach_rl.core.levels import LevelSpace
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.extensions.exporting.policies import Tensors

_WRITTEN = (
    "achieved", "difference_of", "is_over", "judge", "reached_at", "show", "shown_from", "target",
    "verdict",
)  # fmt: skip
"""Methods of goal spaces that are written here as functions of tensors."""
_CENTRE = (
    (3.3871327179, 50.434271938, 159.29113202, 59.109374720),
    (1.0, 17.895169469, 78.757757664, 67.187563600),
)
_NEAR = (
    (1.4234372777, 2.7568153900, 1.3067284816, 0.17023821103),
    (1.0, 0.73700164250, 0.12021132975),
)
_FAR = (
    (6.6579051150, 3.0812263860, 0.42868294337, 0.017337203997),
    (1.0, 0.24197894225, 0.012258202635),
)
"""Coefficients of PPND7, the lowest power first (Wichura 1988, Applied Statistics 37, AS 241)."""


def is_written(space: GoalSpace) -> bool:
    """Return whether a goal space judges by what is written here, without methods of its own."""
    known = (METRAGoals, LearnedGoals, TimedGoalSpace, GoalSpace)
    nearest = next(each for each in known if isinstance(space, each))
    return all(getattr(type(space), name) is getattr(nearest, name) for name in _WRITTEN)


def shown_goal(space: LevelSpace, goal: Tensor, seen: Tensors) -> Tensors:
    """`GoalSpace.show` or `OptionSpace.show` of tensors."""
    if isinstance(space, OptionSpace):
        return {OPTION_KEY: goal}
    shown = {GOAL_KEY: goal[:, : space.size]}
    if space.observed == "relative":
        shown = {GOAL_KEY: -difference_of(space, goal, seen).to(torch.float32)}
    if space.sent_size > space.size:
        shown[TIME_KEY] = goal[:, -1:] / _longest(space)
    return shown


def target(space: LevelSpace, action: Tensor, seen: Tensors) -> Tensor:
    """`GoalSpace.target` or `OptionSpace.target` of tensors."""
    if isinstance(space, OptionSpace):
        return nn.functional.one_hot(action.to(torch.int64), space.count).to(torch.float32)
    goal, size = action[:, : space.size], space.size
    if isinstance(space, METRAGoals):
        return _skill(space, goal)
    if isinstance(space, LearnedGoals) and space.params.bounds_rate is not None:
        middle, half = map(torch.as_tensor, space.scale)
        goal = (middle + goal * half).to(torch.float32)
    if space.relative:
        goal = achieved(space, seen) + goal
    low, high = map(torch.from_numpy, space.bounds)
    goal = turned(space, goal)
    goal = torch.minimum(torch.maximum(goal, low), high).to(torch.float32)
    if space.sent_size == size:
        return goal
    time = torch.ceil(action[:, size:]).clamp(1, _longest(space)).to(torch.float32)
    return torch.cat([goal, time], dim=1)


def turned(space: GoalSpace, goal: Tensor) -> Tensor:
    """`GoalSpace.turned` of tensors [R, G]."""
    if not space.angles:
        return goal
    low, high = map(torch.from_numpy, space.bounds)
    turns = torch.round((goal - (low + high) / 2) / (2 * np.pi))
    is_angle = torch.tensor([element in space.angles for element in range(space.size)])
    is_outside = (goal < low) | (goal > high)
    return torch.where(is_angle & is_outside, goal - 2 * np.pi * turns, goal)


def verdict(space: GoalSpace, goal: Tensor, seen: Tensors) -> tuple[Tensor, Tensor]:
    """[R] whether goals are met, and whether nothing is left to do for them."""
    if isinstance(space, METRAGoals):
        never = torch.zeros_like(goal[:, 0], dtype=torch.bool)
        return never, never
    met = is_near(space, difference_of(space, goal, seen))
    if space.sent_size == space.size:
        return met, met
    is_up = goal[:, -1] <= 0
    return met & is_up, is_up


def is_near(space: GoalSpace, difference: Tensor) -> Tensor:
    """`GoalSpace.reached_at` of tensors [..., G]."""
    threshold = torch.tensor(space.threshold, dtype=torch.float64)
    difference = difference.to(torch.float64)
    if space.reached_within == "ball":
        return ((difference / threshold) ** 2).sum(dim=-1) <= 1
    return (difference.abs() <= threshold).all(dim=-1)


def action_for(space: GoalSpace, goal: Tensor, seen: Tensors) -> Tensor:
    """Actions of the level above that set these goals, which have no angles."""
    low, high = map(torch.from_numpy, space.bounds)
    if space.relative:
        goal = -difference_of(space, goal, seen)
        high = high - low if space.reach is None else torch.tensor(space.reach)
        low = -high
    return torch.minimum(torch.maximum(goal, low), high).to(torch.float32)


def achieved(space: GoalSpace, seen: Tensors) -> Tensor:
    """`GoalSpace.achieved` of tensors."""
    if isinstance(space, LearnedGoals):
        kept = {key: seen[key] for key in space.keys}
        is_double = {key: each.dtype == torch.float64 for key, each in kept.items()}
        latents = space.latents({k: v.float() if is_double[k] else v for k, v in kept.items()})
        return latents.to(torch.float32)
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


def _longest(space: GoalSpace) -> int:
    longest: int = space.longest  # type: ignore[attr-defined]  # of goals with a time
    return longest


def _skill(space: METRAGoals, action: Tensor) -> Tensor:
    """`METRAGoals.target` of tensors; graphs have no inverse of the error function."""
    if space.settings.discrete:
        chosen = nn.functional.one_hot(action.argmax(dim=1), space.size)
        return torch.where(chosen > 0, 1.0, -1.0 / (space.size - 1)).to(torch.float32)
    inside = action.to(torch.float64).clamp(-1 + 1e-7, 1 - 1e-7)
    return nn.functional.normalize(_quantile(inside / 2), dim=1).to(torch.float32)


def _quantile(centred: Tensor) -> Tensor:
    """Standard normal quantiles of probabilities 1/2 + `centred`, to seven digits."""
    tail = torch.sqrt(-torch.log(0.5 - centred.abs()))
    near = _ratio(_NEAR, tail - 1.6)
    far = torch.where(tail <= 5, near, _ratio(_FAR, tail - 5))
    middle = centred * _ratio(_CENTRE, 0.180625 - centred**2)
    return torch.where(centred.abs() <= 0.425, middle, torch.sign(centred) * far)


def _ratio(coefficients: Sequence[Sequence[float]], values: Tensor) -> Tensor:
    """A polynomial of values divided by another one."""
    above, below = (
        sum((factor * values**power for power, factor in enumerate(each)), torch.zeros_like(values))
        for each in coefficients
    )
    return above / below
