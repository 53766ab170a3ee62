"""Levels under a curriculum, as they are at the checkpoint that is exported."""

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import FloatArray, IntArray, Observation
from coach_rl.extensions.curricula.curriculum import (
    Curriculum,
    ScheduledBounds,
    ScheduledGoals,
    ScheduledHorizon,
)
from coach_rl.extensions.exporting.goals import WRITTEN, action_for, goal_of, requested, target
from coach_rl.extensions.exporting.graphs import changing, level_now
from coach_rl.extensions.exporting.policies import Tensors

WRITTEN += [ScheduledGoals, ScheduledBounds]


@level_now.register
def _with_horizon(change: Curriculum, level: LevelDescription) -> LevelDescription:
    """The level with a horizon of a number; its goals hold today's thresholds and bounds."""
    if type(change) is not Curriculum:
        raise changing(level.name, change)
    scheduled = level.horizon_of
    if not isinstance(scheduled, ScheduledHorizon):
        return level
    longest = scheduled.longest
    own = scheduled.level.horizon_of
    if own is None:
        return replace(level, horizon=longest, horizon_of=None)

    def shortened(observation: Observation, goal: FloatArray, uniform: FloatArray) -> IntArray:
        return np.minimum(own(observation, goal, uniform), longest)

    return replace(level, horizon_of=shortened)


@target.register
def _meant(space: ScheduledBounds, action: Tensor, seen: Tensors) -> Tensor:
    middle, half = map(torch.as_tensor, space.scale)
    return goal_of(space, (middle + action * half).to(torch.float32), seen)


@action_for.register
def _scaled(space: ScheduledBounds, goal: Tensor, seen: Tensors) -> Tensor:
    middle, half = map(torch.as_tensor, space.scale)
    sent = requested(space, goal, seen)
    return ((sent - middle) / torch.clamp(half, min=1e-8)).clamp(-1, 1).to(torch.float32)
