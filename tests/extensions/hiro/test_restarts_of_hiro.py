"""Open episodes of a HIRO stack that restart when a state is loaded."""

from functools import partial

import pytest

from coach_rl.extensions.hiro.hiro_agent import HIROAgentParameters
from tests.graph_managers import test_restarts as restarts


@pytest.fixture
def restarted():
    yield from restarts.continued(partial(restarts.hierarchy, HIROAgentParameters))


@pytest.mark.parametrize(
    "check",
    [
        restarts.test_everything_but_the_open_episodes_goes_on,
        restarts.test_the_episodes_are_others_and_all_levels_begin_them,
        restarts.test_no_transition_of_a_replay_memory_goes_on_across_the_gap,
    ],
)
def test_hiro_stack_restarts_as_other_stacks_do(check, restarted):
    check(restarted)
