"""Rewards of a level with goals by a function of the user's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coach_rl.core.agents import ActionCritic, AnyAgent, ValuingAgent
from coach_rl.core.errors import ConfigurationError, NonFiniteError, RunError
from coach_rl.core.goals import GoalSpace, GoalStep, takes
from coach_rl.core.levels import LevelDescription
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


@dataclass(frozen=True, kw_only=True)
class LevelAbove:
    """The level above in R rows; see `core.goals.ViewOfAbove`."""

    critic: ActionCritic
    """The critic of its agent."""
    own: GoalSpace | None
    """The goals that it receives."""
    sub_goal: GoalSpace
    """The goals that it sets."""
    goal: FloatArray
    """[R, G] its own goals; empty without any."""

    def values(self, observation: Observation, goal: FloatArray | None = None) -> FloatArray:
        action = None if goal is None else self.sub_goal.asked_by(goal, observation)
        return self.critic.values(self._seen(observation), action)

    def goals(self, observation: Observation) -> FloatArray:
        action = self.critic.greedy_actions(self._seen(observation))
        return self.sub_goal.target(action, observation)

    def _seen(self, observation: Observation) -> Observation:
        if self.own is None:
            return observation
        return {**observation, **self.own.show(self.goal, observation)}


class GoalRewards(Saved):
    """Calls a level's reward function, with the actions that its rows took.

    Args:
        function: Of `GoalSpace.reward`.
        level: The level.
        num_envs: N.
        above: The levels above it in a chain, top first; empty in other graphs.

    Raises:
        ConfigurationError: The function reads the level above, and there is none.
    """

    SAVED = (SavedAttribute("_actions", varies=True),)

    def __init__(
        self,
        function: Callable[..., FloatArray],
        *,
        level: LevelDescription,
        num_envs: int,
        above: Sequence[LevelDescription],
    ) -> None:
        self._function, self._level, self._num_envs = function, level.name, num_envs
        self._space, self._higher = level.goal_space, above[-1] if above else None
        self._reads_above = not takes(function, 1)
        self._above: LevelAbove | None = None
        if self._reads_above and not above:
            raise ConfigurationError(
                f"{self._owner} takes a view of the level above, and there is none, or there may "
                "be several; use it below another level in a chain, or a function of GoalStep alone"
            )
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

    @property
    def _owner(self) -> str:
        name = getattr(self._function, "__qualname__", self._function)
        return f"level '{self._level}': GoalSpace.reward ({name})"

    def note_above(self, agent: AnyAgent) -> None:
        """Let the function read the agent of the level above.

        Raises:
            ConfigurationError: That has no critic, or options.
        """
        if not self._reads_above:
            return
        own = None if self._higher is None else self._higher.goal_space
        if not isinstance(agent, ValuingAgent) or not isinstance(own, GoalSpace | None):
            raise ConfigurationError(
                f"{self._owner} reads the level above, which needs TD3, DDPG or SAC there, without "
                f"options of its own; got {type(agent).__name__}"
            )
        critic = agent.critic_for(self._owner)
        assert isinstance(self._space, GoalSpace)
        none = np.zeros((0, 0), np.float32)
        self._above = LevelAbove(critic=critic, own=own, sub_goal=self._space, goal=none)

    def __call__(
        self,
        before: Observation,
        answer: EnvResponse,
        goal: FloatArray,
        outer_goals: Sequence[FloatArray],
    ) -> FloatArray:
        """The rewards of decisions, float64 [R].

        Args:
            before: What they were made on, [R, ...] each.
            answer: What they led to.
            goal: [R, G].
            outer_goals: [R, G] each: those of the levels above with goals, top first.

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
        views = []
        if self._above is not None:
            own = self._above.goal if self._above.own is None else outer_goals[-1]
            views.append(replace(self._above, goal=own))
        earned = np.asarray(self._function(step, *views))
        if earned.shape != (len(answer),) or earned.dtype.kind not in "biuf":
            raise RunError(
                f"{self._owner} returned {earned.dtype} of shape {earned.shape} for {len(answer)} "
                "rows; needed is one number for each row"
            )
        if not np.isfinite(earned).all():
            row = int(answer.rows[np.flatnonzero(~np.isfinite(earned))[0]])
            raise NonFiniteError(f"{self._owner} returned a reward that is not finite in row {row}")
        return earned.astype(np.float64)
