"""HIRO above levels with rewards, horizons and ends of their own resumes bit for bit."""

from dataclasses import replace
from functools import partial

import pytest

import coach_rl as rl
from tests.agents.goal_stacks import RELATIVE, SETTINGS, stack
from tests.agents.resuming import after, amid, assert_resumes
from tests.agents.test_own_goal_rewards import (
    ImpatientParameters,
    by_distance,
    cosine,
    drawn,
    potential,
)
from tests.builders import created

OWN_FUNCTIONS = {
    "reward": {"goals": replace(RELATIVE, reward=cosine)},
    "reward and horizon": {
        "goals": replace(RELATIVE, reward=potential),
        "horizon_of": by_distance,
    },
    "drawn horizon": {"horizon_of": drawn},
    "own ends": {"low": ImpatientParameters(**SETTINGS)},
}


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", OWN_FUNCTIONS)
def test_hiro_above_own_functions_resumes_bit_for_bit(name, tmp_path):
    params = stack(rl.HIROAgentParameters(**SETTINGS), **OWN_FUNCTIONS[name])
    assert_resumes(partial(created, params), tmp_path, after(100, amid))
