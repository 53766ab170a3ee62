"""Input that hindsight refuses: a call, the kind of error, and what its one line contains."""

import pytest
from gymnasium import spaces

from coach_rl.core.agents import ALONE
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.extensions.hindsight import HindsightParameters
from tests.extensions.hindsight.test_hindsight import (
    GOAL,
    OBSERVED,
    JudgesObservations,
    ShowsHalf,
    as_own,
    with_hindsight,
)
from tests.refusals import check_refused


def observing(**changed):
    observed = {key: part for key, part in {**OBSERVED.spaces, **changed}.items() if part}
    return lambda: with_hindsight(observed=spaces.Dict(observed))


def own_goals(kind):
    return lambda: with_hindsight(goal=as_own(GOAL, kind))


CASES = {
    ConfigurationError: [
        (own_goals(JudgesObservations), "JudgesObservations overrides verdict(), ... judge"),
        (own_goals(ShowsHalf), "as GoalSpace.show does, and ShowsHalf overrides show"),
        (
            lambda: HindsightParameters().at(ALONE),
            "HindsightParameters.goal is None, and the agent's level has no goals",
        ),
    ],
    SpaceError: [
        (
            observing(desired_goal=None),
            "environment's 'desired_goal', which is not ... achieved_goal",
        ),
        (observing(achieved_goal=None), "the goal's key 'achieved_goal' is not observed"),
        (
            observing(desired_goal=spaces.Box(-1, 1, (3,))),
            "'desired_goal' has 3 elements, the goal space 2",
        ),
    ],
}
"""Calls by kind of error, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [(call, kind, message) for kind in CASES for call, message in CASES[kind]],
)
def test_hindsight_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
