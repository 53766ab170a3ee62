"""A level rewarded by how much nearer to its goal a decision led: a difference of potentials."""

from dataclasses import replace

import numpy as np
from two_levels import PLACES, Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray


def progress(step: rl.GoalStep) -> FloatArray:
    """0.99 Φ(after) - Φ(before), where Φ is minus the distance (Ng et al. 1999, theorem 1)."""
    before, after = (
        -np.linalg.norm(step.goal - seen["achieved_goal"], axis=1)
        for seen in (step.before, step.after)
    )
    return 0.99 * after - before


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The low level learns from potentials."""
    return stack(panel, low={"goal_space": replace(PLACES, reward=progress)})
