"""A planner with notes on each row above a learning level: a script, a search, a language model."""

from dataclasses import dataclass, replace

import numpy as np
from two_levels import PLACES, Panel, stack

import coach_rl as rl
from coach_rl.core import End, parameter_class
from coach_rl.extensions.scripts.scripted_agent import ActingOnly, ScriptedRows

CORNERS = np.array([[-0.8, -0.8], [0.8, -0.8], [0.8, 0.8], [-0.8, 0.8]], np.float32)


@dataclass
class Notes(ScriptedRows):
    """What the planner notes of each row."""

    SAVED = ("next_corner",)
    next_corner: np.ndarray  # [N]


@parameter_class
class Tour:
    """Sends the level below to the corners in turn, and stays at one until it is reached."""

    name: str = "tour"

    def build(self, context):
        return Touring(self.name)


class Touring(ActingOnly):
    """The agent."""

    def new_rows(self, num_envs, seed):
        return Notes(np.zeros(num_envs, np.int64))

    def act(self, row_state, request, clock):
        return CORNERS[row_state.next_corner[request.rows]]

    def observe(self, row_state, outcome, clock):
        rows = outcome.rows[(outcome.below & End.GOAL) > 0]
        row_state.next_corner[rows] = (row_state.next_corner[rows] + 1) % 4


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The top tours the corners."""
    corners = replace(PLACES, relative=False, reach=None, threshold=(0.2, 0.2))
    return stack(panel, top={"agent": Tour()}, low={"goal_space": corners})
