"""Warnings of a level manager, and what it lets others read; `test_level_machine` has the rest."""

import copy
import warnings
from dataclasses import replace

import pytest

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import NOTHING_RECEIVED
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.levels.level_checks import agent_spaces
from tests.levels.plain_stack import Level
from tests.levels.scripted_stack import SPACES, build

GOALS = GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(0.5, 0.5), elements=(0, 1))
TWO_LEVELS = [Level(name="top"), Level(name="low", goal_space=GOALS, horizon=5)]


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
