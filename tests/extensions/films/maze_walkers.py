"""The stack that needs no learning in a maze: the planner asks for the next cell."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coach_rl.core.goals import GoalSpace
from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds.point_maze import PointMazeMedium
from tests.graph_managers import walkers
from tests.graph_managers.walkers import Scripted

MAZE = PointMazeMedium()
PLACE = GoalSpace(
    low=(-3.5, -3.5), high=(3.5, 3.5), threshold=(0.25, 0.25), key="observation", elements=(0, 1)
)


def next_cells(observation):
    """The middle of the next cell on the shortest way, or the goal once it is in the same cell."""
    return np.stack(
        [
            next_place(here, goal)
            for here, goal in zip(
                observation["observation"][:, :2], observation["desired_goal"], strict=True
            )
        ]
    )


def next_place(here, goal):
    start, end = cell_of(here), cell_of(goal)
    if start == end:
        return goal
    distances = MAZE.map.distances(end)
    row, column = start
    around = [(row + 1, column), (row - 1, column), (row, column + 1), (row, column - 1)]
    return MAZE.place(min((c for c in around if c in distances), key=distances.__getitem__))


def cell_of(place):
    cells = list(MAZE.map.distances(MAZE.map.starts[0]))
    return min(cells, key=lambda cell: np.abs(MAZE.place(cell) - place).max())


@dataclass(frozen=True, kw_only=True)
class WalkerParameters(walkers.WalkerParameters):
    decisions: ClassVar[dict] = {**walkers.WalkerParameters.decisions, "planner": next_cells}


def maze_experiment(*between, level="point_maze_medium", **options):
    """A planner above a pusher, and levels that pass its goals on; evaluated twice in 240 steps."""
    return walkers.experiment(
        *between, environment=parameters(level, **options), walker=WalkerParameters, place=PLACE
    )


__all__ = ["Scripted", "maze_experiment"]
