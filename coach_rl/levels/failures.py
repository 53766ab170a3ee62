"""Levels that stop where the one below misses its goal (Strict Subgoal Execution)."""

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import End, EnvResponse, missed
from coach_rl.levels.judging import Judgement, end_bits


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
