"""Rewards and ends of a level's sub-episodes, as pure functions."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import (
    BoolArray,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    missed,
)

EndBits = npt.NDArray[np.uint8]
"""Bits of `End`, [R]."""
REAL_ENDS = np.array(End.TERMINATED | End.TRUNCATED, np.uint8)


class Judgement(NamedTuple):
    """R decisions, judged by the level's own task."""

    reward: FloatArray
    """[R] the goal reward, or the raw reward at a level without goals."""
    terminated: BoolArray
    """[R] the sub-episode ended and its value is final."""
    truncated: BoolArray
    """[R] the sub-episode was cut off."""
    end: EndBits
    """[R] why the sub-episode ended; 0 where it continues."""
    is_over: BoolArray
    """[R] the sub-episode ended."""
    difference: FloatArray | None
    """[R, G] what is achieved minus the goal; None at a level without goals."""


def judged(
    answer: EnvResponse,
    *,
    level: LevelDescription,
    goal: FloatArray,
    decisions: IntArray,
    outer_spaces: Sequence[GoalSpace],
    outer_goals: Sequence[FloatArray],
    stops: bool = False,
) -> Judgement:
    """Judge the decisions of R rows by what they led to.

    Args:
        answer: What they led to.
        level: Whose decisions they are.
        goal: [R, G] the level's goals; not looked at where it has none.
        decisions: [R] how many the sub-episodes have had, this one included.
        outer_spaces: What the goals of the levels above mean, top first.
        outer_goals: [R, G] each: those goals.
        stops: Whether the level stops where the one below missed its goal.
    """
    end = answer.end & REAL_ENDS
    if level.horizon is not None:
        end |= end_bits(decisions >= level.horizon, End.HORIZON)
    for space, outer_goal in zip(outer_spaces, outer_goals, strict=True):
        end |= end_bits(space.is_over(outer_goal, answer.observation), End.OUTER)
    reward, terminated, difference = answer.reward, answer.terminated, None
    if isinstance(level.goal_space, GoalSpace):
        difference, reward, reached, is_final = level.goal_space.verdict(goal, answer.observation)
        end |= end_bits(reached, End.GOAL)
        if is_final is not reached:
            end |= end_bits(is_final & ~reached, End.HORIZON)
        # A real end is no merit of this level's goal: by default it only cuts the sub-episode off.
        terminated = is_final | answer.terminated if level.real_end_is_terminal else is_final
    if stops:
        failed = missed(answer.end) & ~terminated
        end |= end_bits(failed, End.FAILURE)
        worst = failure_reward(level)
        if worst is not None:
            reward = np.where(failed, worst, reward)
        terminated = terminated | failed
    is_over = end.astype(np.bool_)
    return Judgement(reward, terminated, is_over & ~terminated, end, is_over, difference)


def failure_reward(level: LevelDescription) -> float | None:
    """Return the reward of a failure that a level stops on; None for the environment's.

    Raises:
        ConfigurationError: Nothing says what is worst under the level's goals.
    """
    space = level.goal_space
    if level.failure_reward is not None or not isinstance(space, GoalSpace):
        return level.failure_reward
    if space.reward == "dense" or (level.horizon is None and space.sent_size == space.size):
        raise ConfigurationError(
            f"level '{level.name}' stops on failure, which is worth minus its horizon under "
            "rewards of -1 and 0; it has no horizon or is rewarded by distance: give its "
            "failure_reward"
        )
    return 0.0 if space.sent_size > space.size else -float(level.horizon or 0)


def end_bits(where: BoolArray, bit: End) -> EndBits:
    """`bit` where the condition holds, else 0, uint8 [R]."""
    return where * _BITS[bit]


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
    now = answer.first_observation[GOAL_KEY].reshape(goal.shape)
    differs = now.astype(np.float32, copy=False) != goal
    if not np.count_nonzero(differs):
        return {}
    has_moved = differs.any(axis=1) & (end == 0)
    if not has_moved.any():
        return {}
    following = np.where(has_moved[:, None], now, goal).astype(np.float32, copy=False)
    return goal_space.show(following, answer.observation)


# Arrays, not scalars: they take half the time in arithmetic with other arrays.
_BITS = {bit: np.array(bit, np.uint8) for bit in End}
