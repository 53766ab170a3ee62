"""A low level that is rewarded by what the level above comes to expect: its critic as a potential.

The advantage of a decision to the level above, as in feudal learning, instead of nearness to goals.
"""

from dataclasses import replace

from two_levels import PLACES, Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray
from coach_rl.core.goals import ViewOfAbove


def gain(step: rl.GoalStep, above: ViewOfAbove) -> FloatArray:
    """How much more the level above expects of the goal after the decision than before."""
    return above.values(step.after, step.goal) - above.values(step.before, step.goal)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC above, whose critic rewards the low level's decisions as it is when they are made."""
    return stack(panel, low={"goal_space": replace(PLACES, reward=gain)})
