"""The judge of goals, and the parts of levels that goals bring."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GoalRounding, GoalSpace
from coach_rl.core.level_parts import EndBits, Judgement, LevelPart, RowIndex
from coach_rl.core.records import (
    BoolArray,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.levels.context import LevelContext
from coach_rl.levels.judging import SimulatorJudge, end_bits
from coach_rl.levels.rows import LevelRows


class GoalJudge(SimulatorJudge):
    """Judges by the level's goals, which its agent sees.

    Args:
        space: The goals.
        context: Of the level.
    """

    def __init__(self, space: GoalSpace, context: LevelContext) -> None:
        self._space = space
        self._rows = context.rows
        self._rounding = GoalRounding(space, within_bounds=bool(context.above))
        self._goal_is_terminal = context.level.goal_is_terminal
        self._real_end_is_terminal = context.level.real_end_is_terminal

    def decided_on(self, rows: IntArray, starts: BoolArray, seen: Observation) -> Observation:
        space = self._space
        goal = self._rows.goal.take(rows, axis=0)
        if np.count_nonzero(starts):
            self._rounding.check(goal)
            self._rows.difference_at_start[rows[starts]] = space.difference(goal, seen)[starts]
        return seen | space.show(goal, seen)

    def shown(self, rows: IntArray, seen: Observation) -> Observation:
        return seen | self._space.show(self._rows.goal.take(rows, axis=0), seen)

    def judgement(self, answer: EnvResponse, index: RowIndex, end: EndBits) -> Judgement:
        space = self._space
        goal = self._rows.goal[index]
        if space.uses_before:
            before = take(self._rows.observation, answer.rows)
            verdict = space.verdict(goal, answer.observation, before)
        else:
            verdict = space.verdict(goal, answer.observation)
        difference, reward, reached, is_final = verdict
        end |= end_bits(reached, End.GOAL)
        if is_final is not reached:
            end |= end_bits(is_final & ~reached, End.HORIZON)
        # A real end doesn't reach this level's goal: by default it only truncates the sub-episode.
        terminated = is_final if self._goal_is_terminal else np.zeros_like(is_final)
        if self._real_end_is_terminal:
            terminated = terminated | answer.terminated
        is_over = end.astype(np.bool_)
        return Judgement(reward, terminated, is_over & ~terminated, end, is_over, difference)


class GivenGoals(LevelPart):
    """The goals of the top level, which the environment gives, and may move.

    Args:
        space: What they mean.
        rows: The level's.
    """

    def __init__(self, space: GoalSpace, rows: LevelRows) -> None:
        self._space = space
        self._rows = rows

    def deciding(self, rows: IntArray, starts: BoolArray, seen: Observation) -> None:  # noqa: ARG002
        self._rows.goal[rows] = self._space.given_by(seen)

    def observed(self, outcome: Outcome, answer: EnvResponse, clock: Clock) -> Outcome:  # noqa: ARG002
        goal = self._rows.goal.take(outcome.rows, axis=0)
        moved = moved_goals(answer, goal_space=self._space, goal=goal, end=outcome.end)
        return replace(outcome, next_goal=moved) if moved else outcome


class OuterGoals(LevelPart):
    """Goals of the levels above, any of which ends the level's sub-episode.

    Args:
        spaces: What they mean, top first.
        rows: The level's.
    """

    def __init__(self, spaces: Sequence[GoalSpace], rows: LevelRows) -> None:
        self._spaces = spaces
        self._rows = rows

    def ends(self, answer: EnvResponse, index: RowIndex) -> EndBits:
        is_over = np.zeros(len(answer.rows), np.bool_)
        for space, goal in zip(self._spaces, self._rows.outer_goals, strict=True):
            is_over |= space.is_over(goal[index], answer.observation)
        return end_bits(is_over, End.OUTER)


def moved_goals(
    answer: EnvResponse, *, goal_space: GoalSpace, goal: FloatArray, end: EndBits
) -> Observation:
    """Return the moved goals as the agent sees them from its next decision on; empty if none moved.

    Args:
        answer: The environment's, which shows the goals it gives.
        goal_space: What they mean.
        goal: [R, G] the goals so far.
        end: [R] 0 where the sub-episode continues. A new sub-episode begins with a goal of its own,
            which is no move.
    """
    now = goal_space.given_by(answer.first_observation)
    differs = now.astype(np.float32, copy=False) != goal
    if not np.count_nonzero(differs):
        return {}
    has_moved = differs.any(axis=1) & (end == 0)
    if not has_moved.any():
        return {}
    following = np.where(has_moved[:, None], now, goal).astype(np.float32, copy=False)
    return goal_space.show(following, answer.observation)
