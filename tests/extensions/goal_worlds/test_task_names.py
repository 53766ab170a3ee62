"""Names of goal worlds in a description."""

from coach_rl.environments import parameters
from tests.graph_managers.test_parameters import flat


def test_the_line_that_the_name_of_a_goal_world_is_answered_with_works():
    assert flat(environment=parameters("goal_pendulum")).environment.level == "goal_pendulum"
