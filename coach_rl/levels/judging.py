"""Rewards and ends of a level's sub-episodes, as pure functions.

Stopping where the level below misses its goal is Strict Subgoal Execution, docs/how_to_levels.md.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import (
    Array,
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


# Arrays, not scalars: they take half the time in arithmetic with other arrays.
_BITS = {bit: np.array(bit, np.uint8) for bit in End}


class Judgement(NamedTuple):
    """R decisions, judged by the level's own task."""

    reward: FloatArray
    """[R] the goal reward, the option's own, or the raw reward at a level without either."""
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
    before: Observation | None = None,
    stopped: BoolArray | None = None,
    limit: IntArray | None = None,
    earned: FloatArray | None = None,
) -> Judgement:
    """Judge the decisions of R rows by what they led to.

    Args:
        answer: What they led to.
        level: Whose decisions they are.
        goal: [R, G] the level's goals or options; ignored if it has none.
        decisions: [R] how many the sub-episodes have had, this one included.
        outer_spaces: What the goals of the levels above mean, top first.
        outer_goals: [R, G] each: those goals.
        before: [R, ...] each: what the decisions were made on; needed where options have rewards
            of their own, and for goals with `uses_before`.
        stopped: [R] the level's agent has ended its option or goal; None where it doesn't decide
            that.
        limit: [R] horizons of the sub-episodes; None: the level's.
        earned: [R] rewards by a function of the goal space; None: it has none.
    """
    end = answer.end & REAL_ENDS
    if stopped is not None:
        end |= end_bits(stopped, End.OPTION)
    longest = level.horizon if limit is None else limit
    if longest is not None:
        end |= end_bits(decisions >= longest, End.HORIZON)
    for space, outer_goal in zip(outer_spaces, outer_goals, strict=True):
        end |= end_bits(space.is_over(outer_goal, answer.observation), End.OUTER)
    reward, terminated, difference = answer.reward, answer.terminated, None
    if isinstance(level.goal_space, GoalSpace):
        space = level.goal_space
        if space.uses_before:
            verdict = space.verdict(goal, answer.observation, before)
        else:
            verdict = space.verdict(goal, answer.observation)
        difference, reward, reached, is_final = verdict
        if earned is not None:
            reward = earned
        end |= end_bits(reached, End.GOAL)
        if is_final is not reached:
            end |= end_bits(is_final & ~reached, End.HORIZON)
        # A real end doesn't reach this level's goal: by default it only truncates the sub-episode.
        terminated = is_final if level.goal_is_terminal else np.zeros_like(is_final)
        if level.real_end_is_terminal:
            terminated = terminated | answer.terminated
    elif isinstance(level.goal_space, OptionSpace):
        reward, ended, is_final = _of_option(level.goal_space, goal, before, answer)
        end |= end_bits(ended, End.OPTION)
        terminated = terminated | is_final
    is_over = end.astype(np.bool_)
    return Judgement(reward, terminated, is_over & ~terminated, end, is_over, difference)


def checked_ends(found: Array, count: int, *, by_chance: bool, owner: str) -> Array:
    """The ends [R] that an agent returned, or their chances.

    Args:
        found: What its method `ends` returned.
        count: R.
        by_chance: Whether they are chances.
        owner: The level and the method, for messages.

    Raises:
        RunError: It is something else.
    """
    ends = np.asarray(found)
    fits = ends.shape == (count,) and ends.dtype.kind in ("fbiu" if by_chance else "b")
    if not fits or (by_chance and not ((ends >= 0) & (ends <= 1)).all()):
        needed = "a chance from 0 to 1" if by_chance else "True or False"
        raise RunError(
            f"{owner} must return {needed} for each of {count} rows, got "
            f"{' '.join(repr(found).split()):.80}"
        )
    return ends


def _of_option(
    options: OptionSpace, option: FloatArray, before: Observation | None, answer: EnvResponse
) -> tuple[FloatArray, BoolArray, BoolArray]:
    """Rewards of decisions under options, where an option ended itself, and where for good, [R]."""
    reward, ended = answer.reward, np.zeros(len(answer), np.bool_)
    if options.rewards:
        assert before is not None, "rewards of options are functions of what came before"
        reward = options.reward(option, before, answer.observation, reward)
    if options.ends:
        ended = options.ended(option, answer.observation)
    return reward, ended, ended & options.has_own_reward(option)


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
    now = goal_space.given_by(answer.first_observation)
    differs = now.astype(np.float32, copy=False) != goal
    if not np.count_nonzero(differs):
        return {}
    has_moved = differs.any(axis=1) & (end == 0)
    if not has_moved.any():
        return {}
    following = np.where(has_moved[:, None], now, goal).astype(np.float32, copy=False)
    return goal_space.show(following, answer.observation)


def stops_on_failure(level: LevelDescription, phase: Phase) -> bool:
    """Return whether a level stops on failures in a phase."""
    when = level.stops_on_failure
    return when == "always" or (when == "training" and phase is not Phase.TEST)


def with_failures(
    judgement: Judgement, answer: EnvResponse, *, level: LevelDescription
) -> Judgement:
    """The same, where the level stops for good if the one below missed its goal.

    A decision that met the level's own goal, or a final end of the environment, is no failure.

    Args:
        judgement: Of R decisions.
        answer: What they led to.
        level: Whose decisions they are.
    """
    failed = missed(answer.end) & ~judgement.terminated
    failed &= judgement.end & np.uint8(End.GOAL) == 0
    worst = failure_reward(level)
    return judgement._replace(
        reward=judgement.reward if worst is None else np.where(failed, worst, judgement.reward),
        terminated=judgement.terminated | failed,
        truncated=judgement.truncated & ~failed,
        end=judgement.end | end_bits(failed, End.FAILURE),
        is_over=judgement.is_over | failed,
    )


def failure_reward(level: LevelDescription) -> float | None:
    """Return the reward of a failure that a level stops on; None for the environment's.

    Raises:
        ConfigurationError: The worst return under the level's goals is not known.
    """
    space = level.goal_space
    if level.failure_reward is not None or not isinstance(space, GoalSpace):
        return level.failure_reward
    returns = space.returns(level.horizon)
    if returns is None:
        raise ConfigurationError(
            f"level '{level.name}' stops on failure, which is worth minus its horizon under "
            "rewards of -1 and 0; it has no horizon or other rewards: give its failure_reward"
        )
    return returns[0]
