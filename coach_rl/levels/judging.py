"""Judges: what a level receives, how its agent sees that, and what its decisions are worth.

Here are that of levels which receive nothing, and that of options.
"""

import numpy as np

from coach_rl.core.level_parts import NO_DIFFERENCE, EndBits, Judgement, LevelPart, RowIndex
from coach_rl.core.records import BoolArray, End, EnvResponse, IntArray, Observation

REAL_ENDS = np.array(End.TERMINATED | End.TRUNCATED, np.uint8)
# Arrays, not scalars: they take half the time in arithmetic with other arrays.
_BITS = {bit: np.array(bit, np.uint8) for bit in End}


def end_bits(where: BoolArray, bit: End) -> EndBits:
    """`bit` where the condition holds, else 0, uint8 [R]."""
    return where * _BITS[bit]


class SimulatorJudge(LevelPart):
    """Judges by the rewards and ends of the simulator; the agent sees what it shows."""

    def decided_on(self, rows: IntArray, starts: BoolArray, seen: Observation) -> Observation:  # noqa: ARG002
        """Observations that the agent decides on, [R, ...] each.

        Args:
            rows: The rows that decide, [R].
            starts: Where it is the first decision of a sub-episode, [R].
            seen: The observations of the level below, [R, ...] each.
        """
        return seen

    def shown(self, rows: IntArray, seen: Observation) -> Observation:  # noqa: ARG002
        """Observations of the level below as the agent sees them, [R, ...] each."""
        return seen

    def judgement(
        self,
        answer: EnvResponse,
        index: RowIndex,  # noqa: ARG002
        end: EndBits,
    ) -> Judgement:
        """Judge the decisions of R rows by what they led to.

        Args:
            answer: What they led to.
            index: Index of their rows.
            end: Reasons for ends that are known already, [R]; written to.
        """
        is_over = end.astype(np.bool_)
        terminated = answer.terminated
        return Judgement(
            answer.reward, terminated, is_over & ~terminated, end, is_over, NO_DIFFERENCE
        )
