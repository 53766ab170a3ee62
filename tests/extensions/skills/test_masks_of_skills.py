"""Action masks of agents of options: no forbidden action anywhere."""

from collections import Counter

import pytest

import coach_rl as rl
from tests.agents import masked_world
from tests.agents.test_action_masks import (
    check_no_forbidden_action,
    dqn,
    options,
    ppo,
)

RUNS = {
    "option critic": lambda **more: options(
        ppo(action_mask="option_mask"),
        rl.OptionCriticAgentParameters(
            algorithm=ppo().algorithm, update_mode="eager", name="critic"
        ),
        **more,
    ),
    "skills": lambda **more: options(
        ppo(action_mask="option_mask"), rl.SkillAgentsParameters.of(dqn(), count=3), **more
    ),
}


@pytest.mark.parametrize("name", RUNS)
def test_no_phase_of_skills_takes_a_forbidden_action(name, monkeypatch):
    taken = Counter()
    monkeypatch.setattr(masked_world, "TAKEN", taken)
    check_no_forbidden_action(name, RUNS[name], taken)
