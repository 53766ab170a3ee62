"""Levels and directives that are refused: a call, the kind of error, and the start of its line."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ActionError, ConfigurationError, SpaceError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import Directive
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.levels.level_checks import check_level
from tests.levels.plain_stack import Level
from tests.levels.scripted_stack import SPACES, build
from tests.levels.test_judging import LINE, LOW
from tests.levels.test_level_manager import TWO_LEVELS
from tests.refusals import check_refused

X = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))
STRANGE = GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), key="elsewhere")
DIRECTIVE = Directive(action=np.zeros((1, 2), np.float32))


def unfit(goal_space, *, is_top):
    return lambda: check_level(Level(name="low", goal_space=goal_space), SPACES, is_top=is_top)


def send_to_busy_row():
    top, _ = build([1, 2], TWO_LEVELS, Clock())
    low = top.environment
    while not (low.rows.open[1] and not low.rows.open[0]):
        top.recv()
    low.send(DIRECTIVE, np.array([0]))
    low.send(DIRECTIVE, np.array([1]))


def send_without_goals():
    top, _ = build([1], TWO_LEVELS, Clock())
    top.send(DIRECTIVE)


CASES = [
    (unfit(STRANGE, is_top=False), SpaceError, "the goal's key 'elsewhere' is not observed"),
    (unfit(OptionSpace(count=3), is_top=True), SpaceError, "the top level has no options"),
    (unfit(X, is_top=True), SpaceError, "'desired_goal' has 3 elements, the goal space 1"),
    (
        lambda: StopOnFailure().worst(replace(LOW, horizon=None)),
        ConfigurationError,
        "give StopOnFailure.reward",
    ),
    (
        lambda: StopOnFailure().worst(replace(LOW, goal_space=replace(LINE, reward="dense"))),
        ConfigurationError,
        "give StopOnFailure.reward",
    ),
    (send_to_busy_row, ActionError, "row 1 is still busy with its goal"),
    (send_without_goals, ActionError, "takes goals of its goal space"),
]
"""Calls, kinds of error, and a part of the message, which begins with the level's name."""


@pytest.mark.parametrize(("call", "kind", "message"), CASES)
def test_levels_invalid_input_error(call, kind, message):
    check_refused(call, kind, f"level ' ... {message}")
