"""Skills that are refused."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.options import OptionSpace
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from tests.agents.small_agents import ppo, stack
from tests.extensions.skills.skill_stacks import diayn, to_the_right, upwards
from tests.refusals import check_refused


def test_skills_of_one_name_are_refused():
    check_refused(
        lambda: SkillAgentsParameters(agents=(PPOAgentParameters(), PPOAgentParameters())),
        ParameterError,
        "need different names, got ['agent', 'agent']",
    )


OPTIONS = OptionSpace(count=2)


def bonus(before, action, outcome):
    return np.ones(len(outcome.rows))


def skills_of_skills():
    each = (SkillAgentsParameters.of(ppo(name), count=2) for name in ("one", "other"))
    return stack(SkillAgentsParameters(agents=tuple(each)), OPTIONS)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: stack(replace(diayn(), bonus=bonus), OPTIONS),
            "agent 'skills' makes its rewards itself, and a bonus ... leave out the bonus",
        ),
        (
            lambda: stack(diayn(), OptionSpace(count=2, rewards=(to_the_right, upwards))),
            "agent 'skills' makes the rewards ... OptionSpace.rewards has 2 functions; leave them",
        ),
        (
            lambda: stack(SkillAgentsParameters.of(diayn(), count=2), OPTIONS),
            "agent 'skills_0' ... 'option' is not among its observations ['observation']",
        ),
        (
            skills_of_skills,
            "agent 'ones' ... 'option' is not among its observations ['observation']; let it",
        ),
    ],
)
def test_what_skills_cannot_learn_is_refused(call, message):
    check_refused(call, ConfigurationError, message)
