"""HIGL's landmarks: the first on the way, against a plain search, and where it is moved."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.stages.stages import Stages
from coach_rl.core.agents import AgentContext
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.hiro.landmarks import (
    LandmarkParameters,
    LandmarkPlanner,
    Novelty,
    NoveltyParameters,
)
from tests.agents.decisions import transition
from tests.memories import replay_worlds

BOX = spaces.Box(-9, 9, (2,), np.float32)
SEEN = spaces.Dict({"place": BOX, GOAL_KEY: BOX})
GOAL = GoalSpace(
    key="place",
    low=(-9.0, -9.0),
    high=(9.0, 9.0),
    threshold=(0.1, 0.1),
    relative=True,
    observed="relative",
)
PLACES = np.array([[0, 0], [2, 0], [4, 0], [4, 3], [0, 3], [0, 6], [7, 7]], np.float32)


class WalledOff:
    """An agent to which a step to the right is dear and one to the left is cheap."""

    stages = Stages("walled off")

    @property
    def learner(self):
        return self

    def policy_actions(self, observation):
        return observation[GOAL_KEY] / 2

    def values(self, observation, action):
        left = 2 * action  # what is left to go, as it was shown
        assert np.array_equal(left, observation[GOAL_KEY])
        return -np.where(left[:, 0] > 0, 3.0, 1.0) * np.hypot(*left.T)


def cost(here, there):
    away = there - here
    return (3.0 if away[0] > 0 else 1.0) * float(np.hypot(*away))


def planner(places=PLACES, novelty=None, **changes):
    memory = replay_worlds.build(num_envs=1, observed=SEEN, acted=BOX, capacity=100)
    for place in places:
        seen = {"place": place[None], GOAL_KEY: np.zeros((1, 2), np.float32)}
        memory.add(transition(seen, np.zeros((1, 2), np.float32), seen))
    settings = {"coverage": 20, "starts": 0, "shift": None, "longest_edge": 8.0, "near_goal": 2.5}
    params = LandmarkParameters(**{**settings, "novelty": None, **changes})
    return LandmarkPlanner(
        params, goal=GOAL, low=WalledOff(), store=memory.store, novelty=novelty, seed=1
    )


def slow_landmark(here, goal, places, longest, near):
    """The first landmark by a plain search over all ways."""
    if cost(here, goal) < near:
        return goal
    count, dear = len(places), 1e6
    edges = [[cost(a, b) for b in places] for a in places]
    last = [cost(place, goal) for place in places]
    for end in range(count):
        limit = max(longest, min(edges[begin][end] for begin in range(count) if begin != end))
        for begin in range(count):
            edges[begin][end] += dear * (edges[begin][end] > limit)
    limit = max(longest, min(last))
    best = [each + dear * (each > limit) for each in last]
    for _ in range(count):  # Bellman-Ford
        best = [min(best[a], *(edges[a][b] + best[b] for b in range(count))) for a in range(count)]
    first = [cost(here, place) for place in places]
    ways = [f + dear * (f > longest) + b for f, b in zip(first, best, strict=True)]
    return places[int(np.argmin(ways))]


@pytest.mark.parametrize("longest", [0.0, 5.0, 8.0, 100.0])
def test_landmarks_equal_a_plain_search(longest):
    rng = np.random.default_rng(3)
    here, goals = rng.uniform(-1, 8, (2, 40, 2)).astype(np.float32)
    found = planner(longest_edge=longest).landmarks({"place": here, GOAL_KEY: goals})
    slow = [slow_landmark(*pair, PLACES, longest, 2.5) for pair in zip(here, goals, strict=True)]
    np.testing.assert_allclose(found, np.array(slow), atol=1e-5)
    assert len(np.unique(found, axis=0)) > 4


def test_a_goal_that_is_near_is_its_own_landmark():
    goal = np.array([[-1.0, 2.0]], np.float32)
    ways = planner()
    assert ways.landmarks({"place": goal + 1, GOAL_KEY: goal}).tolist() == goal.tolist()
    assert ways.metrics()["landmarks/goal_share"] == 1.0


def test_the_point_aimed_at_lies_at_the_shift_towards_the_landmark():
    ways = planner(shift=0.5)
    here = np.array([[1.0, 1.0], [2.0, 2.0]], np.float32)
    landmarks = np.array([[4.0, 5.0], [2.0, 2.0]], np.float32)  # 3 and 4 away, and right here
    moved = ways.shifted(landmarks, {"place": here})
    np.testing.assert_allclose(moved, [[1.3, 1.4], [2.0, 2.0]], atol=1e-6)


def test_until_landmarks_start_one_is_drawn_to_where_one_is():
    early, due = planner(starts=len(PLACES) + 1), planner(starts=len(PLACES))
    seen = {"place": np.array([[6.0, 6.0]], np.float32), GOAL_KEY: PLACES[:1]}
    assert early.targets(seen).tolist() == [[6.0, 6.0]]
    assert due.targets(seen).tolist() != [[6.0, 6.0]]


def test_coverage_takes_few_places_and_novelty_adds_its_own(monkeypatch):
    observed = spaces.Dict({"place": BOX})
    context = AgentContext(spaces=EnvironmentSpaces(observation=observed, action=BOX), num_envs=1)
    novelty = Novelty(
        NoveltyParameters(count=1, layers=(8,), features=2, every=7, updates_per_step=0.5, batch=4),
        observation_space=observed,
        context=context,
        owner="agent",
    )
    learned = []
    monkeypatch.setattr(novelty, "scores", lambda states: -states["place"].sum(axis=1))
    monkeypatch.setattr(novelty, "learn", learned.append)
    ways = planner(novelty=novelty, coverage=2)
    ways.learn()
    assert novelty.places.tolist() == [[0.0, 0.0]]
    assert [len(states["place"]) for states in learned] == [4, 4, 4]  # half of 7 steps
    ways.learn()
    assert len(learned) == 3  # nothing is new
    here = np.random.default_rng(0).uniform(-1, 8, (200, 2)).astype(np.float32)
    goals = np.full((200, 2), -5, np.float32)
    found = np.unique(ways.landmarks({"place": here, GOAL_KEY: goals}), axis=0)
    assert 1 <= len(found) <= 3
    assert [0.0, 0.0] in found.tolist()
