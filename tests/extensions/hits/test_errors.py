"""Goals with a time that are refused: a call, the kind of error, and parts of its message."""

from dataclasses import replace
from functools import partial

import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl import (
    ConfigurationError,
)
from coach_rl.core.errors import ParameterError, SpaceError
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from tests.agents.goal_stacks import RELATIVE, SETTINGS
from tests.agents.test_own_goal_rewards import ImpatientParameters, made
from tests.agents.test_own_goal_rewards import stack as point_mass
from tests.core.test_errors import SEEN
from tests.extensions.hits.test_timed_goals import LINE, Half
from tests.graph_managers.test_errors import (
    ENDING,
    ENDS,
    LOW,
    TOP,
    stack,
)
from tests.refusals import check_refused

TIMED = replace(ENDING, goal_space=TimedGoalSpace.of(LOW.goal_space, longest=9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (stack(TOP, TIMED), f"{ENDS} ... its goals end when their time is up"),
        (
            lambda: made(
                point_mass(
                    rl.TD3AgentParameters(**SETTINGS),
                    ImpatientParameters(**SETTINGS),
                    goals=TimedGoalSpace.of(RELATIVE, longest=9),
                )
            ),
            "its goals end when their time is up",
        ),
    ],
)
def test_agent_that_ends_goals_with_a_time_is_refused(call, message):
    check_refused(call, ConfigurationError, message)


SHOWS_TIME = spaces.Dict({**SEEN.spaces, "time_left": spaces.Box(0, 1, (1,))})


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (partial(LINE.check_given, SEEN), SpaceError, "gives them no time; use a GoalSpace there"),
        (
            partial(replace(LINE, elements=(0,)).check, SHOWS_TIME),
            SpaceError,
            "shows a 'time_left' of its own",
        ),
        (
            lambda: TimedGoalSpace.of(Half(low=(-5.0,), high=(5.0,), threshold=(0.5,)), longest=8),
            ParameterError,
            "lose ... of Half; ... class Timed(Half, TimedGoal",
        ),
    ],
)
def test_timed_goals_invalid_input_error(call, kind, message):
    check_refused(call, kind, message)
