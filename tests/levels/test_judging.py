"""What decisions are worth and why sub-episodes end, by hand."""

from dataclasses import replace

import numpy as np
import pytest

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import received_by
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import PLAIN_SUMS, End, EnvResponse, InfoWatch
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.levels.building import judge_of, parts_before
from coach_rl.levels.context import LevelContext
from coach_rl.levels.goal_judging import moved_goals
from coach_rl.levels.judging import REAL_ENDS
from coach_rl.levels.rows import EVERY_ROW, LevelRows
from tests.levels.plain_stack import Level

LINE = GoalSpace(low=(-9.0,), high=(9.0,), threshold=(0.5,))
LOW = Level(name="low", goal_space=LINE, horizon=3)
TOP = Level(name="top")
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


def judge(level, answered, *, decisions=(1, 1, 1, 1), outer=(), outer_space=LINE, goal=GOALS):
    """The judgement of a level below others that pursue the outer goals."""
    above = [
        Level(name=f"level {place}", goal_space=outer_space) for place in range(len(outer))
    ] or [TOP]
    rows = LevelRows.new(
        4,
        space=received_by(level),
        outer_spaces=[outer_space] * len(outer),
        is_top=False,
        sums=PLAIN_SUMS,
    )
    rows.decisions[:] = decisions
    if isinstance(level.goal_space, GoalSpace):
        rows.goal[:] = goal
    for mine, place in zip(rows.outer_goals, outer, strict=True):
        mine[:] = place
    context = LevelContext(
        level=level, rows=rows, counts={}, clock=Clock(), num_envs=4, seed=0, above=above,
        sender=above[-1:], agent=None, agent_rows=None, now=Clock, watch=InfoWatch({}, "level"),
    )  # fmt: skip
    end = answered.end & REAL_ENDS
    for part in parts_before(context):
        end |= part.ends(answered, EVERY_ROW)
    judgement = judge_of(context).judgement(answered, EVERY_ROW, end)
    for part in level.parts:
        judgement = part.build(context).judged(judgement, answered, answered.observation)
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
    assert not judgement.difference.size


def test_stop_on_failure_missed_sub_goal_terminates():
    level = replace(LOW, horizon=6, stops_on_failure="always")
    judgement = judge(level, answer())
    # Who reached the own goal all the same has not failed.
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.FAILURE, End.FAILURE]
    assert judgement.reward.tolist() == [0, 0, -6, -6]
    assert judgement.terminated.all()
    priced = judge(replace(level, failure_reward=-2.5), answer())
    assert priced.reward.tolist() == [0, 0, -2.5, -2.5]
    assert not (judge(replace(LOW, horizon=6), answer()).end & End.FAILURE).any()


def test_stop_on_failure_reached_goal_is_no_failure():
    level = replace(LOW, horizon=6, stops_on_failure="always", goal_is_terminal=False)
    judgement = judge(level, answer())
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.FAILURE, End.FAILURE]
    assert judgement.terminated.tolist() == [False, False, True, True]
    assert judgement.reward.tolist() == [0, 0, -6, -6]


def test_stop_on_failure_real_end_is_no_failure():
    level = replace(LOW, horizon=6, stops_on_failure="always")
    judgement = judge(level, answer(terminated=(2,), truncated=(3,)))
    assert judgement.end.tolist() == [End.GOAL, End.GOAL, End.TERMINATED, End.TRUNCATED]
    assert judgement.truncated.tolist() == [False, False, True, True]


def test_stop_on_failure_failure_propagates_to_level_above():
    seen = answer()
    seen.end[:] = [End.FAILURE, End.FAILURE | End.OUTER, End.FAILURE | End.HORIZON, End.OUTER]
    judgement = judge(replace(TOP, stops_on_failure="always"), seen)
    assert judgement.end.tolist() == [End.FAILURE, 0, End.FAILURE, 0]
    assert judgement.reward.tolist() == [10, 20, 30, 40], "the environment's, without goals"
    assert judgement.terminated.tolist() == [True, False, True, False]


def test_failure_reward_is_worst_return_of_goals():
    stops = StopOnFailure()
    assert stops.worst(replace(LOW, horizon=6)) == -6
    assert stops.worst(TOP) is None
    assert StopOnFailure(reward=-9.0).worst(replace(LOW, horizon=None)) == -9


def test_moved_goals_apply_if_sub_episode_continues():
    end = np.array([0, End.GOAL, 0, 0], np.uint8)

    def shown(goals, space=LINE):
        return moved_goals(answer(goals=goals), goal_space=space, goal=GOALS, end=end)

    assert shown(GOALS) == {}
    assert shown([[1], [7], [9], [3]]) == {}, "a new sub-episode has a goal of its own"
    assert shown([[5], [7], [9], [3]])[GOAL_KEY].tolist() == [[5], [2], [9], [3]]
    left = shown([[5], [7], [9], [3]], replace(LINE, observed="relative"))
    assert left[GOAL_KEY].tolist() == [[4], [0], [6], [-1]]
