"""A level rewarded by the direction of its movement, as the worker of FuN."""

from dataclasses import replace

import numpy as np
from two_levels import PLACES, Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray


def direction(step: rl.GoalStep) -> FloatArray:
    """The cosine between movement and wanted direction (Vezhnevets et al. 2017, section 4)."""
    moved = step.after["achieved_goal"] - step.before["achieved_goal"]
    wanted = step.goal - step.before["achieved_goal"]
    lengths = np.linalg.norm(moved, axis=1) * np.linalg.norm(wanted, axis=1)
    return (moved * wanted).sum(axis=1) / np.maximum(lengths, 1e-8)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The low level moves as the top points; a goal lasts its whole horizon."""
    goals = replace(PLACES, reward=direction, threshold=(0.0, 0.0))
    return stack(panel, low={"goal_space": goals})
