"""What decisions are worth and why sub-episodes end, by hand."""

from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.infos import PLAIN_SUMS, InfoWatch
from coach_rl.core.levels import received_by
from coach_rl.core.records import End, EnvResponse
from coach_rl.extensions.strict_subgoals.stop_on_failure import StopOnFailure
from coach_rl.levels.building import judge_of, parts_before
from coach_rl.levels.context import LevelContext
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


def test_failure_reward_is_worst_return_of_goals():
    stops = StopOnFailure()
    assert stops.worst(replace(LOW, horizon=6)) == -6
    assert stops.worst(TOP) is None
    assert StopOnFailure(reward=-9.0).worst(replace(LOW, horizon=None)) == -9
