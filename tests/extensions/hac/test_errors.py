"""Stacks of HAC that are refused or warned of: a call, its kind, and parts of its line."""

from dataclasses import replace

import pytest

import coach_rl as rl
from tests.graph_managers.test_errors import (
    GOAL_TOP,
    OPTIONS,
    idle,
    levels_of,
)
from tests.graph_managers.test_graph import off_policy, stacked
from tests.refusals import check_refused

C, P, U = rl.ConfigurationError, rl.ParameterError, rl.UnknownNameError


def hac_with(*below, **given):
    stack = (GOAL_TOP, *below)
    return lambda: rl.HACGraphParameters(stack=stack, environment=rl.PointMassParameters(), **given)


def hac_of(**low):
    return hac_with(replace(GOAL_TOP, name="low", **low))


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: rl.HACGraphManager(levels_of(GOAL_TOP)()),
            P,
            "HACGraphManager needs ... got ",
        ),
        (hac_of(goal_space=OPTIONS), P, "level 'low' of a HAC stack needs goals"),
        (hac_of(goal_space=None), P, "level 'low' of a HAC stack needs goals"),
        (hac_of(horizon=None), P, "level 'low' of a HAC stack needs a horizon"),
        (hac_with(levels=1), U, "'levels'"),
        (hac_with(reward_discount=1), U, "'reward_discount'"),
        (
            idle(stacked(low=rl.HACAgentParameters(learner=off_policy(500), name="lower"))),
            rl.CoachWarning,
            "level 'low': agent 'lower' would learn nothing: it waits for 500 transitions",
        ),
    ],
)
def test_hac_stack_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
