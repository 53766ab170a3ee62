"""A stack of levels equals a plain recursion over one environment: of any kind, in any company.

The recursion (`plain_stack`) knows nothing of rows, send and recv. Agents follow a script or plan,
so equality is exact.
"""

import copy
import warnings
from dataclasses import replace

import numpy as np
import pytest

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import NOTHING_RECEIVED
from coach_rl.core.options import OptionSpace
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.levels.level_checks import agent_spaces
from tests.levels.plain_stack import Level
from tests.levels.scripted_stack import SPACES, build

GOALS = GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(0.5, 0.5), elements=(0, 1))
TWO_LEVELS = [Level(name="top"), Level(name="low", goal_space=GOALS, horizon=5)]


def test_stack_tested_decision_all_levels_below_are_greedy():
    levels = [
        Level(name="top", testing_rate=0.5),
        Level(name="middle", goal_space=GOALS, horizon=3),
        Level(name="low", goal_space=OptionSpace(count=3), horizon=2),
    ]
    top, agents = build([1], levels, Clock())
    for _ in range(60):
        top.recv()
    assert 0 < np.mean([each["tested"] for each in agents[0].transitions[0]]) < 1
    for agent in agents[1:]:  # who tests nothing of its own passes on what it is told
        assert all(each["quiet"] == each["tested"] for each in agent.transitions[0])
        assert 0 < np.mean([each["quiet"] for each in agent.transitions[0]]) < 1


def test_stack_rewards_are_discounted_by_simulator_steps():
    levels = [
        Level(name="top"),
        Level(name="middle", goal_space=OptionSpace(count=3), horizon=2),
        Level(name="low", goal_space=OptionSpace(count=4), horizon=3),
    ]
    top, agents = build([3], levels, Clock(), 0.9)
    for _ in range(40):
        top.recv()
    steps = iter(agents[2].transitions[0])
    for transition in agents[0].transitions[0]:
        duration = transition["duration"]
        rewards = [next(steps)["reward"] for _ in range(duration)]
        assert transition["reward"] == pytest.approx(np.dot(rewards, 0.9 ** np.arange(duration)))


def test_level_manager_sub_goals_are_clipped_to_bounds():
    top, agents = build([5], TWO_LEVELS, Clock())
    for _ in range(40):
        top.recv()
    goals = np.array([each["told"] for each in agents[1].transitions[0]])
    assert np.abs(goals).max() == 3.0
    wished = np.array([each["seen"] for each in agents[0].transitions[0]])
    assert np.abs(wished).max() > 3.0, "the test wants wishes out of bounds"


@pytest.mark.parametrize(("threshold", "warns"), [(1e-3, False), (1e-7, True)])
def test_level_manager_goals_that_float32_rounds_warn_once(threshold, warns):
    fine = replace(GOALS, threshold=(threshold,) * 2)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        top, _ = build([5], [Level(name="top"), Level(name="low", goal_space=fine)], Clock())
        for _ in range(20):
            top.recv()
    messages = [str(each.message) for each in warned]
    assert len(messages) == warns
    assert all("float32 numbers are" in each for each in messages)


def test_level_manager_state_dict_shares_no_memory():
    top, _ = build([1, 2, 3], TWO_LEVELS, Clock())
    for _ in range(7):
        top.recv()
    state = top.state_dict()
    before = copy.deepcopy(state)
    for _ in range(3):
        top.recv()
    for at in (("rows",), ("environment", "rows")):
        mine, other = state, before
        for key in at:
            mine, other = mine[key], other[key]
        assert_same_state(mine, other)
    top.load_state_dict(state)
    top.recv()
    assert_same_state(state["environment"]["rows"], before["environment"]["rows"])


def test_level_manager_reset_response_is_not_written_to():
    top, _ = build([1, 2], TWO_LEVELS, Clock())
    response = top.reset()
    before = copy.deepcopy(response.first_observation)
    for _ in range(3):
        top.recv()
    assert_same_state(response.first_observation, before)


X = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))


def test_agent_spaces_include_goal_of_level():
    assert agent_spaces(SPACES, NOTHING_RECEIVED) is SPACES
    seen = agent_spaces(SPACES, X)
    assert seen.observation[GOAL_KEY] == X.space
    assert seen.observation["observation"] == SPACES.observation["observation"]
    assert seen.action == SPACES.action
