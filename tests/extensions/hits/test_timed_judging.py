"""What decisions under goals with a time are worth, and why sub-episodes end, by hand."""

from dataclasses import replace

from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from tests.levels.test_judging import LOW

ON_TIME = TimedGoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,), longest=5)


def test_failure_reward_of_timed_goals_is_that_of_their_time():
    assert StopOnFailure().worst(replace(LOW, goal_space=ON_TIME, horizon=None)) == 0
