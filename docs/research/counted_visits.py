"""A bonus of the top level alone for places that it has seen seldom; it is saved with the agent."""

import numpy as np
from two_levels import SMALL, Panel, stack

import coach_rl as rl
from coach_rl.core import FloatArray, parameter_class
from coach_rl.core.agents import AgentContext
from coach_rl.core.records import Action, Observation, Outcome
from coach_rl.core.saved import Saved


class Visits(Saved):
    """1 / sqrt(n) for the n-th visit of a cell of a grid over the places."""

    SAVED = ("counts",)

    def __init__(self) -> None:
        self.counts = np.zeros((10, 10), np.int64)

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """The bonus of decisions, [R]."""
        place = 5 * (outcome.observation["achieved_goal"] + 1)
        cells = tuple(np.clip(place, 0, 9).astype(np.int64).T)
        np.add.at(self.counts, cells, 1)
        return 1 / np.sqrt(self.counts[cells])


@parameter_class
class VisitsParameters:
    """Its description."""

    def build(self, context: AgentContext) -> Visits:
        """The bonus of one agent."""
        return Visits()


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The log has it as `signals/top/bonus/mean`; returns are those of the world."""
    return stack(panel, top={"agent": rl.SACAgentParameters(**SMALL, bonus=VisitsParameters())})
