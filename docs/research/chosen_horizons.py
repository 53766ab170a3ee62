"""Sub-goals that last longer the further away they are, and by chance up to twice as long."""

import numpy as np
from two_levels import Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray, IntArray


def by_distance(observation: rl.Observation, goal: FloatArray, uniform: FloatArray) -> IntArray:
    """3 to 12 decisions."""
    distance = np.linalg.norm(goal - observation["achieved_goal"], axis=1)
    return np.clip(10 * distance * (1 + uniform), 3, 12).astype(np.int64)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The low level's horizon is a function of state, goal and chance."""
    return stack(panel, low={"horizon_of": by_distance})
