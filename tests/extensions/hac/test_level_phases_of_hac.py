"""Levels of HAC that freeze, and go on after a stop in any phase."""

import pytest

from coach_rl import HACAgentParameters, ReplayMemoryParameters
from tests.extensions.level_phases import test_level_phases
from tests.extensions.level_phases.test_level_phases import (
    SCHEDULES,
    check_frozen,
    check_resumes_in_any_phase,
)


def hac():
    learner = test_level_phases.hindsight(memory=ReplayMemoryParameters())
    return HACAgentParameters(learner=learner)


@pytest.mark.parametrize("level", ["top", "low"])
def test_no_number_of_a_hac_agent_changes_while_it_is_frozen(level):
    check_frozen(hac, level)


EACH_TIME = {"warm-up by success", "turns"}
"""Schedules that are tried each time; between them levels warm up, freeze and thaw."""


@pytest.mark.parametrize(
    "schedule",
    [pytest.param(each, marks=() if each in EACH_TIME else pytest.mark.slow) for each in SCHEDULES],
)
def test_a_run_of_hac_stopped_in_any_phase_resumes_bit_for_bit(schedule):
    check_resumes_in_any_phase(hac, schedule)
