"""The judge of a level that receives options."""

import numpy as np

from coach_rl.core.level_parts import NO_DIFFERENCE, EndBits, Judgement, RowIndex
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import BoolArray, End, EnvResponse, IntArray, Observation, take
from coach_rl.levels.context import LevelContext
from coach_rl.levels.judging import SimulatorJudge, end_bits


class OptionJudge(SimulatorJudge):
    """Judges by options, some of which may have rewards and ends of their own.

    Args:
        space: The options.
        context: Of the level.
    """

    def __init__(self, space: OptionSpace, context: LevelContext) -> None:
        self._space = space
        self._rows = context.rows

    def decided_on(self, rows: IntArray, starts: BoolArray, seen: Observation) -> Observation:  # noqa: ARG002
        return self.shown(rows, seen)

    def shown(self, rows: IntArray, seen: Observation) -> Observation:
        return seen | self._space.show(self._rows.goal.take(rows, axis=0), seen)

    def judgement(self, answer: EnvResponse, index: RowIndex, end: EndBits) -> Judgement:
        options = self._space
        option = self._rows.goal[index]
        reward = answer.reward
        terminated = answer.terminated
        if options.rewards:
            before = take(self._rows.observation, answer.rows)
            reward = options.reward(option, before, answer.observation, reward)
        if options.ends:
            ended = options.ended(option, answer.observation)
            end |= end_bits(ended, End.OPTION)
            terminated = terminated | (ended & options.has_own_reward(option))
        is_over = end.astype(np.bool_)
        return Judgement(reward, terminated, is_over & ~terminated, end, is_over, NO_DIFFERENCE)
