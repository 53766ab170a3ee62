"""Sub-goals that are shown as what was achieved, where that explains the steps below better."""

import numpy as np
from two_levels import SMALL, Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray, parameter_class
from coach_rl.extensions.hiro.steps_below import StepsBelow, SubGoalRelabelling
from coach_rl.memories.samplers import UnitContext


class Achieved(SubGoalRelabelling):
    """What was achieved, where the agent below would more likely have done what it did under it."""

    name = "achieved"

    def relabelled(self, low: StepsBelow) -> FloatArray:
        """The sub-goals [B, G] to learn from."""
        achieved = low.observation["desired_goal"][:, 0] - low.last_goal
        achieved = np.clip(achieved, self.goal.space.low, self.goal.space.high)
        both = np.stack((low.sent, achieved), axis=1)  # [B, 2, G]
        sent_fits, achieved_fits = self.log_likelihood(both, low).T
        return np.where((achieved_fits > sent_fits)[:, None], achieved, low.sent)


@parameter_class
class AchievedParameters:
    """Its description."""

    after: str = "gather"

    def build(self, context: UnitContext) -> Achieved:
        """The unit in a memory."""
        return Achieved(context)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC above TD3; any agent with a replay memory takes the unit."""
    memory = rl.ReplayMemoryParameters(capacity=50_000, units=(AchievedParameters(),))
    return stack(panel, top={"agent": rl.SACAgentParameters(**SMALL, memory=memory)})
