"""Arithmetic of goals with a time as functions of tensors [R, ...]."""

import torch
from torch import Tensor

from coach_rl.core.goals import TIME_KEY
from coach_rl.extensions.exporting.goals import (
    WRITTEN,
    difference_of,
    goal_of,
    is_near,
    shown_goal,
    shown_place,
    target,
    verdict,
)
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace

WRITTEN += [TimedGoalSpace]


@shown_goal.register
def _with_time(space: TimedGoalSpace, goal: Tensor, seen: Tensors) -> Tensors:
    return {**shown_place(space, goal, seen), TIME_KEY: goal[:, -1:] / space.longest}


@target.register
def _timed(space: TimedGoalSpace, action: Tensor, seen: Tensors) -> Tensor:
    time = torch.ceil(action[:, space.size :]).clamp(1, space.longest).to(torch.float32)
    return torch.cat([goal_of(space, action, seen), time], dim=1)


@verdict.register
def _in_time(space: TimedGoalSpace, goal: Tensor, seen: Tensors) -> tuple[Tensor, Tensor]:
    is_up = goal[:, -1] <= 0
    return is_near(space, difference_of(space, goal, seen)) & is_up, is_up
