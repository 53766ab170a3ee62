"""Arithmetic of learned goals as functions of tensors [R, ...]."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from coach_rl.extensions.exporting.goals import WRITTEN, achieved, goal_of, target, verdict
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.learned_goals.learned_goals import LearnedGoals
from coach_rl.extensions.learned_goals.metra_goals import METRAGoals

WRITTEN += [LearnedGoals, METRAGoals]
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


@achieved.register
def _latents(space: LearnedGoals, seen: Tensors) -> Tensor:
    kept = {key: seen[key] for key in space.keys}
    is_double = {key: each.dtype == torch.float64 for key, each in kept.items()}
    latents = space.latents({k: v.float() if is_double[k] else v for k, v in kept.items()})
    return latents.to(torch.float32)


@target.register
def _scaled(space: LearnedGoals, action: Tensor, seen: Tensors) -> Tensor:
    if space.params.bounds_rate is None:
        return goal_of(space, action, seen)
    middle, half = map(torch.as_tensor, space.scale)
    return goal_of(space, (middle + action * half).to(torch.float32), seen)


@verdict.register
def _never(_space: METRAGoals, goal: Tensor, _seen: Tensors) -> tuple[Tensor, Tensor]:
    never = torch.zeros_like(goal[:, 0], dtype=torch.bool)
    return never, never


@target.register
def _skill(space: METRAGoals, action: Tensor, _seen: Tensors) -> Tensor:
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
