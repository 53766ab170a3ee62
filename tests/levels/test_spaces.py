"""Levels that do not fit on what is below them are refused by name."""

import pytest
from plain_stack import Level
from scripted_stack import SPACES

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.levels.level_manager import agent_spaces, check_level

X = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))
STRANGE = GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), key="elsewhere")


@pytest.mark.parametrize(
    ("level", "is_top", "message"),
    [
        (Level(name="low"), False, "^level 'low' needs a goal_space: the level above acts in it"),
        (
            Level(name="low", goal_space=STRANGE),
            False,
            "the goal's key 'elsewhere' is not observed",
        ),
        (Level(name="low", goal_space=OptionSpace(count=3)), True, "the top level has no options"),
        (
            Level(name="low", goal_space=X),
            True,
            "the environment's 'desired_goal' has 3 elements, the goal space 1",
        ),
    ],
)
def test_a_level_that_does_not_fit_is_named(level, is_top, message):
    with pytest.raises(ConfigurationError, match=message) as error:
        check_level(level, SPACES, is_top=is_top)
    assert str(error.value).startswith("level 'low'")


def test_an_agent_observes_the_goal_its_level_receives():
    assert agent_spaces(SPACES, None) is SPACES
    seen = agent_spaces(SPACES, X)
    assert seen.observation[GOAL_KEY] == X.space
    assert seen.observation["observation"] == SPACES.observation["observation"]
    assert seen.action == SPACES.action
