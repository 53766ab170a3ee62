"""HIRO above levels with rewards, horizons and ends of their own resumes bit for bit."""

import pytest

import coach_rl as rl
from tests.agents.goal_stacks import SETTINGS
from tests.agents.test_own_goal_rewards import OWN_FUNCTIONS, check_resumes


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_hiro_above_own_functions_resumes_bit_for_bit(name, tmp_path):
    check_resumes(rl.HIROAgentParameters(**SETTINGS), OWN_FUNCTIONS[name], tmp_path)
