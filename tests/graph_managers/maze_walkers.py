"""A two-level stack that needs no learning: a planner says where to go, a pusher goes there."""

from dataclasses import dataclass

import numpy as np

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.saved import Saved
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds.point_maze import PointMazeMedium
from coach_rl.graph_managers import GraphParameters, LevelParameters, ScheduleParameters

MAZE = PointMazeMedium()
PLACE = GoalSpace(
    low=(-3.5, -3.5), high=(3.5, 3.5), threshold=(0.25, 0.25), key="observation", elements=(0, 1)
)


class Scripted(Saved):
    """An agent that is a function of the observation."""

    def __init__(self, decide):
        self.decide = decide
        self.seen = []
        """Of each decision for row 0: whether it was the first for its goal, and the goal."""

    def new_rows(self, num_envs, seed):
        return Saved()

    def act(self, row_state, request, clock):
        observation = request.observation
        if request.rows[0] == 0:
            goal = observation[GOAL_KEY][0]
            self.seen.append((bool(request.starts[0]), tuple(float(part) for part in goal)))
        return self.decide(observation).astype(np.float32)

    def observe(self, row_state, outcome, clock):
        pass

    def train(self, clock):
        return None

    def description(self):
        return "scripted"


@dataclass(frozen=True, kw_only=True)
class WalkerParameters:
    name: str

    def build(self, context):
        return Scripted({"planner": next_cells, "messenger": pass_on, "pusher": push}[self.name])


def push(observation):
    """Towards the goal, braking."""
    seen = observation["observation"]
    return np.clip(4 * (observation[GOAL_KEY] - seen[:, :2]) - seen[:, 2:], -1, 1)


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


def pass_on(observation):
    """What it was told is what it tells."""
    return observation[GOAL_KEY]


def maze_experiment(*between, level="point_maze_medium", **options):
    """A planner above a pusher, and levels that pass its goals on; evaluated twice in 240 steps."""
    return GraphParameters(
        levels=(
            LevelParameters(name="high", agent=WalkerParameters(name="planner")),
            *(
                LevelParameters(
                    name=name,
                    agent=WalkerParameters(name="messenger"),
                    goal_space=PLACE,
                    horizon=3,
                )
                for name in between
            ),
            LevelParameters(
                name="low",
                agent=WalkerParameters(name="pusher"),
                goal_space=PLACE,
                horizon=25,
            ),
        ),
        environment=parameters(level, **options),
        schedule=ScheduleParameters(
            training=EnvironmentSteps(240),
            evaluation_interval=EnvironmentSteps(120),
            evaluation_episodes=EnvironmentEpisodes(3),
        ),
        num_envs=2,
    )
