"""Rewards of a level with goals by a function of the user's."""

from collections.abc import Callable

import numpy as np

from coach_rl.core.errors import NonFiniteError, RunError
from coach_rl.core.goals import GoalStep
from coach_rl.core.records import (
    Action,
    Array,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.saved import Saved, SavedAttribute


class GoalRewards(Saved):
    """Calls a level's reward function, with the actions that its rows took.

    Args:
        function: Of `GoalSpace.reward`.
        level: The level's name, for messages.
        num_envs: N.
    """

    SAVED = (SavedAttribute("_actions", varies=True),)

    def __init__(
        self, function: Callable[[GoalStep], FloatArray], *, level: str, num_envs: int
    ) -> None:
        self._function, self._level, self._num_envs = function, level, num_envs
        self._actions: dict[str, Array] = {}
        """[N, ...] each: the action of each row's open decision, a plain one under an empty key."""

    def note(self, rows: IntArray, action: Action) -> None:
        """Record the actions [R, ...] that rows [R] were sent."""
        for key, values in (action if isinstance(action, dict) else {"": action}).items():
            kept = self._actions.get(key)
            if kept is None:
                shape = (self._num_envs, *values.shape[1:])
                kept = self._actions[key] = np.zeros(shape, values.dtype)
            kept[rows] = values

    def __call__(self, before: Observation, answer: EnvResponse, goal: FloatArray) -> FloatArray:
        """The rewards of decisions, float64 [R].

        Args:
            before: What they were made on, [R, ...] each.
            answer: What they led to.
            goal: [R, G].

        Raises:
            RunError: The function returns something else than a number a row.
            NonFiniteError: One of them is not finite.
        """
        actions = take(self._actions, answer.rows)
        step = GoalStep(
            before=before,
            after=answer.observation,
            goal=goal,
            action=actions.get("", actions),
            duration=answer.duration,
            reward=answer.reward,
            info=answer.info,
        )
        earned = np.asarray(self._function(step), np.float64)
        name = getattr(self._function, "__qualname__", self._function)
        if earned.shape != (len(answer),):
            raise RunError(
                f"level '{self._level}': GoalSpace.reward ({name}) returned an array of shape "
                f"{earned.shape} for {len(answer)} rows; needed is one number for each row"
            )
        if not np.isfinite(earned).all():
            row = int(answer.rows[np.flatnonzero(~np.isfinite(earned))[0]])
            raise NonFiniteError(
                f"level '{self._level}': GoalSpace.reward ({name}) returned a reward that is not "
                f"finite in row {row}"
            )
        return earned
