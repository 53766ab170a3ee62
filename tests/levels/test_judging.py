"""What decisions are worth and why sub-episodes end, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import End, EnvResponse
from coach_rl.levels.judging import failure_reward, judged, moved_goals, with_failures
from tests.levels.plain_stack import Level

LINE = GoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,))
LOW = Level(name="low", goal_space=LINE, horizon=3)
GOALS = np.array([[1.0], [2.0], [9.0], [3.0]], np.float32)


def answer(*, terminated=(), truncated=(), goals=None):
    """Four rows have come to 1, 2, 3 and 4; the level below used up its horizon."""
    rows = np.arange(4)
    is_dead, is_cut = np.isin(rows, terminated), np.isin(rows, truncated)
    seen = {"observation": np.array([[1.0], [2.0], [3.0], [4.0]])}
    if goals is not None:
        seen[GOAL_KEY] = np.array(goals, np.float32)
    return EnvResponse(
        rows=rows,
        observation=seen,
        first_observation=seen,
        reward=np.array([10.0, 20.0, 30.0, 40.0]),
        terminated=is_dead,
        truncated=is_cut,
        end=(End.HORIZON | is_dead * End.TERMINATED | is_cut * End.TRUNCATED).astype(np.uint8),
        duration=np.ones(4, np.int64),
    )


def judge(level, answered, *, decisions=(1, 1, 1, 1), outer=(), goal=GOALS, stops=False):
    judgement = judged(
        answered,
        level=level,
        goal=goal,
        decisions=np.array(decisions),
        outer_spaces=[LINE] * len(outer),
        outer_goals=[np.full((4, 1), place, np.float32) for place in outer],
    )
    if stops:
        judgement = with_failures(judgement, answered, level=level)
    assert judgement.end.dtype == np.uint8
    assert judgement.is_over.tolist() == (judgement.end > 0).tolist()
    return judgement


def test_judged_goal_terminates_and_horizon_truncates():
    judgement = judge(LOW, answer(), decisions=(1, 3, 3, 2))
    assert judgement.end.tolist() == [End.GOAL, End.GOAL | End.HORIZON, End.HORIZON, 0]
    assert judgement.reward.tolist() == [0, 0, -1, -1]
    assert judgement.terminated.tolist() == [True, True, False, False]
    assert judgement.truncated.tolist() == [False, False, True, False]
    assert judgement.difference.tolist() == [[0], [0], [-6], [1]]


def test_judged_outer_goal_truncates():
    judgement = judge(LOW, answer(), outer=(4, 2.25))
    assert judgement.end.tolist() == [End.GOAL, End.GOAL | End.OUTER, 0, End.OUTER]
    assert judgement.truncated.tolist() == [False, False, False, True]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_judged_real_termination_is_terminal_only_if_set(is_terminal):
    level = replace(LOW, real_end_is_terminal=is_terminal)
    judgement = judge(level, answer(terminated=(0, 2), truncated=(3,)))
    real = [End.GOAL | End.TERMINATED, End.GOAL, End.TERMINATED, End.TRUNCATED]
    assert judgement.end.tolist() == real
    assert judgement.terminated.tolist() == [True, True, is_terminal, False]
    assert judgement.truncated.tolist() == [False, False, not is_terminal, True]


def test_judged_goal_not_terminal_truncates():
    level = replace(LOW, goal_is_terminal=False, real_end_is_terminal=True)
    judgement = judge(level, answer(terminated=(0, 2)))
    assert judgement.end.tolist() == [End.GOAL | End.TERMINATED, End.GOAL, End.TERMINATED, 0]
    assert judgement.terminated.tolist() == [True, False, True, False]
    assert judgement.truncated.tolist() == [False, True, False, False]


@pytest.mark.parametrize("space", [None, OptionSpace(count=2)])
def test_judged_no_goals_keeps_raw_reward_and_ends(space):
    judgement = judge(
        Level(name="top", goal_space=space), answer(terminated=(1,), truncated=(1, 3))
    )
    assert judgement.reward.tolist() == [10, 20, 30, 40]
    assert judgement.end.tolist() == [0, End.TERMINATED | End.TRUNCATED, 0, End.TRUNCATED]
    assert judgement.terminated.tolist() == [False, True, False, False]
    assert judgement.truncated.tolist() == [False, False, False, True]
    assert judgement.difference is None


def test_with_failures_missed_sub_goal_terminates():
    level = replace(LOW, horizon=6, stops_on_failure="always")
    judgement = judge(level, answer(), stops=True)
    # Who reached the own goal all the same has not failed.
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.FAILURE, End.FAILURE]
    assert judgement.reward.tolist() == [0, 0, -6, -6]
    assert judgement.terminated.all()
    priced = judge(replace(level, failure_reward=-2.5), answer(), stops=True)
    assert priced.reward.tolist() == [0, 0, -2.5, -2.5]
    assert not (judge(level, answer()).end & End.FAILURE).any()


def test_with_failures_reached_goal_is_no_failure():
    level = replace(LOW, horizon=6, stops_on_failure="always", goal_is_terminal=False)
    judgement = judge(level, answer(), stops=True)
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.FAILURE, End.FAILURE]
    assert judgement.terminated.tolist() == [False, False, True, True]
    assert judgement.reward.tolist() == [0, 0, -6, -6]


def test_with_failures_real_end_is_no_failure():
    level = replace(LOW, horizon=6, stops_on_failure="always")
    judgement = judge(level, answer(terminated=(2,), truncated=(3,)), stops=True)
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.TERMINATED, End.TRUNCATED]
    assert judgement.truncated.tolist() == [False, False, True, True]


def test_with_failures_failure_propagates_to_level_above():
    seen = answer()
    seen.end[:] = [End.FAILURE, End.FAILURE | End.OUTER, End.FAILURE | End.HORIZON, End.OUTER]
    judgement = judge(Level(name="top", stops_on_failure="always"), seen, stops=True)
    assert judgement.end.tolist() == [End.FAILURE, 0, End.FAILURE, 0]
    assert judgement.reward.tolist() == [10, 20, 30, 40], "the environment's, without goals"
    assert judgement.terminated.tolist() == [True, False, True, False]


def test_failure_reward_is_worst_return_of_goals():
    assert failure_reward(replace(LOW, horizon=6)) == -6
    assert failure_reward(Level(name="top")) is None
    assert failure_reward(replace(LOW, horizon=None, failure_reward=-9.0)) == -9


def test_moved_goals_apply_if_sub_episode_continues():
    end = np.array([0, End.GOAL, 0, 0], np.uint8)

    def shown(goals, space=LINE):
        return moved_goals(answer(goals=goals), goal_space=space, goal=GOALS, end=end)

    assert shown(GOALS) == {}
    assert shown([[1], [7], [9], [3]]) == {}, "a new sub-episode has a goal of its own"
    assert shown([[5], [7], [9], [3]])[GOAL_KEY].tolist() == [[5], [2], [9], [3]]
    left = shown([[5], [7], [9], [3]], replace(LINE, observed="relative"))
    assert left[GOAL_KEY].tolist() == [[4], [0], [6], [-1]]
