"""A stack that needs no learning: a planner asks for half of the way, a pusher goes there."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.saved import Saved
from coach_rl.environments.toy import GoalPointMassParameters
from coach_rl.graph_managers import LevelParameters
from tests.builders import graph

PLACE = GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.1, 0.1), elements=(0, 1))


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


def push(observation):
    """Towards the goal, braking."""
    seen = observation["observation"]
    return np.clip(4 * (observation[GOAL_KEY] - seen[:, :2]) - seen[:, 2:], -1, 1)


def half_way(observation):
    """The middle between here and the goal."""
    return (observation["observation"][:, :2] + observation[GOAL_KEY]) / 2


def pass_on(observation):
    """What it was told is what it tells."""
    return observation[GOAL_KEY]


@dataclass(frozen=True, kw_only=True)
class WalkerParameters:
    name: str
    decisions: ClassVar[dict] = {"planner": half_way, "messenger": pass_on, "pusher": push}

    def build(self, context):
        return Scripted(self.decisions[self.name])


def experiment(*between, environment=None, walker=WalkerParameters, place=PLACE):
    """A planner above a pusher, and levels that pass its goals on; evaluated twice in 240 steps."""
    middle = (
        LevelParameters(name=name, agent=walker(name="messenger"), goal_space=place, horizon=3)
        for name in between
    )
    return graph(
        LevelParameters(name="high", agent=walker(name="planner")),
        *middle,
        LevelParameters(name="low", agent=walker(name="pusher"), goal_space=place, horizon=25),
        environment=environment or GoalPointMassParameters(terminate=True),
        training=240,
        evaluation_interval=120,
        evaluation_episodes=3,
        num_envs=2,
    )
