"""What decisions under goals with a time are worth, and why sub-episodes end, by hand."""

from dataclasses import replace

import numpy as np

from coach_rl.core.records import End
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from tests.levels.test_judging import LOW, answer, judge

ON_TIME = TimedGoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,), longest=5)


AT_TIMES = np.array([[1.0, 2.0], [2.0, 0.0], [9.0, 0.0], [3.0, 1.0]], np.float32)


def test_judged_timed_goal_terminates_when_time_is_up():
    judgement = judge(replace(LOW, goal_space=ON_TIME, horizon=None), answer(), goal=AT_TIMES)
    # at its goal too early; there on time; elsewhere when the time is up; on its way
    assert judgement.end.tolist() == [0, End.GOAL, End.HORIZON, 0]
    assert judgement.reward.tolist() == [0, 1, 0, 0]
    assert judgement.terminated.tolist() == [False, True, True, False]
    assert not judgement.truncated.any()


def test_judged_timed_goal_real_end_truncates():
    level = replace(LOW, goal_space=ON_TIME, horizon=None)
    judgement = judge(level, answer(terminated=(0, 2), truncated=(3,)), goal=AT_TIMES)
    missed = End.HORIZON | End.TERMINATED
    assert judgement.end.tolist() == [End.TERMINATED, End.GOAL, missed, End.TRUNCATED]
    assert judgement.terminated.tolist() == [False, True, True, False]
    assert judgement.truncated.tolist() == [True, False, False, True]


def test_judged_outer_timed_goal_truncates_when_time_is_up():
    goal = np.full((4, 1), 8, np.float32)
    judgement = judge(LOW, answer(), goal=goal, outer=(AT_TIMES,), outer_space=ON_TIME)
    assert judgement.end.tolist() == [0, End.OUTER, End.OUTER, 0]
    assert judgement.truncated.tolist() == [False, True, True, False]


def test_failure_reward_of_timed_goals_is_that_of_their_time():
    assert StopOnFailure().worst(replace(LOW, goal_space=ON_TIME, horizon=None)) == 0
