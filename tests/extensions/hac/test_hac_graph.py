"""The description of a HAC stack."""

from dataclasses import replace

from coach_rl.environments.toy import PointMassParameters
from coach_rl.extensions.hac.hac_graph import HACGraphParameters
from tests.graph_managers.test_parameters import LOW, TOP


def hac(*stack, **changes):
    return HACGraphParameters(stack=stack, environment=PointMassParameters(), **changes)


def test_levels_of_a_hac_stack_that_say_no_testing_rate_take_the_stacks():
    middle = replace(TOP, name="middle", testing_rate=0.1)
    described = hac(TOP, middle, LOW, testing_rate=0.5)
    assert [level.testing_rate for level in described.levels] == [0.5, 0.1, None]
    assert described.stack == (TOP, middle, LOW)
    changed = replace(described, testing_rate=0.2)
    assert [level.testing_rate for level in changed.levels] == [0.2, 0.1, None]
