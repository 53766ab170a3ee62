"""Hindsight actions that are refused: the kind of error, and what its one line contains."""

from dataclasses import replace

import pytest

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, ParameterError, RunError
from coach_rl.extensions.hac.hindsight_actions import HindsightActionParameters
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.memories import ReplayMemoryParameters
from tests.extensions.hac import test_hindsight_actions as actions
from tests.refusals import check_refused

STOPPING = LevelPlace(
    level=replace(actions.level("top", actions.GOAL), parts=(StopOnFailure(),)),
    below=actions.level("low", actions.SUB_GOAL),
)


def at(place):
    return lambda: actions.build(at=place)


def sent_as(kind):
    return actions.build(sub_goal=kind(**actions.OWN_TIME))


CASES = {
    ParameterError: [
        (
            lambda: ReplayMemoryParameters(parts=(HindsightActionParameters(),)),
            "go with hindsight",
        ),
        (lambda: actions.build(penalty=1.0), "penalty must be float < 0 | None, got 1.0"),
    ],
    ConfigurationError: [
        (
            at(LevelPlace(level=actions.level("low", actions.GOAL))),
            "level 'low': hindsight actions need a level below",
        ),
        (at(actions.place(horizon=None)), "level 'top': the penalty of a missed test is minus"),
        (at(actions.place(goal=actions.DENSE)), "level 'top': ... other rewards ... .penalty"),
        (at(STOPPING), "level 'top': ... choose one"),
        (lambda: sent_as(actions.OwnTime), "level 'top': ... (3,), and OwnTime.space ... (2,)"),
    ],
    RunError: [
        (lambda: actions.decisions(sent_as(actions.BadHindsight)), "(2, 3) for 2 rows; ... (2,)"),
    ],
}
"""Calls by kind of error, and parts of the message in their order."""


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [(call, kind, message) for kind in CASES for call, message in CASES[kind]],
)
def test_hindsight_actions_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
