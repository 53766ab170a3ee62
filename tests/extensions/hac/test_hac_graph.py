"""The description of a HAC stack."""

from dataclasses import replace

from coach_rl.environments.toy import PointMassParameters
from coach_rl.extensions.hac.hac_graph import HACGraphParameters
from coach_rl.extensions.hac.sub_goal_testing import SubGoalTesting
from tests.graph_managers.test_parameters import LOW, TOP


def rate_of(level):
    """The share of a level's decisions that it tests; None where it tests none."""
    (rate,) = [part.rate for part in level.parts] or [None]
    return rate


def hac(*stack, **changes):
    return HACGraphParameters(stack=stack, environment=PointMassParameters(), **changes)


def test_levels_of_a_hac_stack_without_tests_of_their_own_take_the_stacks_rate():
    middle = replace(TOP, name="middle", parts=(SubGoalTesting(rate=0.1),))
    described = hac(TOP, middle, LOW, testing_rate=0.5)
    assert [rate_of(level) for level in described.levels] == [0.5, 0.1, None]
    assert described.stack == (TOP, middle, LOW)
    changed = replace(described, testing_rate=0.2)
    assert [rate_of(level) for level in changed.levels] == [0.2, 0.1, None]
