"""Rewards of a level with goals by a function of the user's."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from coach_rl.core.agents import ActionCritic, AnyAgent, ValuingAgent
from coach_rl.core.errors import ConfigurationError, NonFiniteError, RunError
from coach_rl.core.goals import GoalSpace, GoalStep, ViewOfAbove, name_of
from coach_rl.core.level_parts import EndBits, Judgement, RowIndex
from coach_rl.core.levels import NothingReceived, received_by
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import (
    Array,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.saved import SavedAttribute
from coach_rl.levels.context import LevelContext
from coach_rl.levels.goal_judging import GoalJudge


@dataclass(frozen=True, kw_only=True)
class LevelAbove:
    """The level above in R rows; see `core.goals.ViewOfAbove`."""

    critic: ActionCritic
    """The critic of its agent."""
    own: GoalSpace | NothingReceived
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
        return {**observation, **self.own.show(self.goal, observation)}


class RewardedGoalJudge(GoalJudge):
    """Judges by the level's goals, with rewards by a function of their space.

    Args:
        function: Of `GoalSpace.reward`.
        space: The goals.
        context: Of the level.
    """

    key = "goal_rewards"
    SAVED = (SavedAttribute("_actions", varies=True),)

    def __init__(
        self, function: Callable[..., FloatArray], space: GoalSpace, context: LevelContext
    ) -> None:
        super().__init__(space, context)
        self._owner = f"level '{context.level.name}': GoalSpace.reward ({name_of(function)})"
        self._function = function
        self._context = context
        self._actions: dict[str, Array] = {}
        """[N, ...] each: the action of each row's open decision, a plain one under an empty key."""

    def decided(self, rows: IntArray, directive: Directive) -> Directive:
        action = directive.action
        for key, values in (action if isinstance(action, dict) else {"": action}).items():
            if key not in self._actions:
                shape = (len(self._rows.row), *values.shape[1:])
                self._actions[key] = np.zeros(shape, values.dtype)
            self._actions[key][rows] = values
        return directive

    def judgement(self, answer: EnvResponse, index: RowIndex, end: EndBits) -> Judgement:
        earned = self._earned(answer)
        return super().judgement(answer, index, end)._replace(reward=earned)

    def views(self, rows: IntArray) -> Sequence[ViewOfAbove]:  # noqa: ARG002
        """Arguments of the function besides the decisions of these rows."""
        return ()

    def _earned(self, answer: EnvResponse) -> FloatArray:
        """The rewards of the decisions that led to an answer, float64 [R].

        Raises:
            RunError: The function returns something else than a number a row.
            NonFiniteError: One of them is not finite.
        """
        rows = answer.rows
        actions = take(self._actions, rows)
        noted = self._context.watch.of(answer) if self._context.now().learns else answer
        step = GoalStep(
            before=take(self._rows.observation, rows),
            after=answer.observation,
            goal=self._rows.goal[rows],
            action=actions.get("", actions),
            duration=answer.duration,
            reward=answer.reward,
            info=noted.info,
        )
        earned = np.asarray(self._function(step, *self.views(rows)))
        if earned.shape != (len(answer),) or earned.dtype.kind not in "biuf":
            raise RunError(
                f"{self._owner} returned {earned.dtype} of shape {earned.shape} for {len(answer)} "
                "rows; needed is one number for each row"
            )
        if not np.isfinite(earned).all():
            row = int(rows[np.flatnonzero(~np.isfinite(earned))[0]])
            raise NonFiniteError(f"{self._owner} returned a reward that is not finite in row {row}")
        return earned.astype(np.float64)


class LookingUpJudge(RewardedGoalJudge):
    """The same, with a function that reads the level above.

    Args:
        function: Of `GoalSpace.reward`.
        space: The goals.
        context: Of the level.

    Raises:
        ConfigurationError: There is no level above.
    """

    def __init__(
        self, function: Callable[..., FloatArray], space: GoalSpace, context: LevelContext
    ) -> None:
        super().__init__(function, space, context)
        if not context.sender:
            raise ConfigurationError(
                f"{self._owner} takes a view of the level above, and there is none, or there may "
                "be several; use it below another level in a chain, or a function of GoalStep alone"
            )
        self._above: tuple[LevelAbove, ...] = ()
        """The level above, once its agent is known."""

    def note_above(self, agent: AnyAgent) -> None:
        """Let the function read the agent of the level above.

        Raises:
            ConfigurationError: That has no critic, or options.
        """
        own = received_by(self._context.sender[0])
        if not isinstance(agent, ValuingAgent) or isinstance(own, OptionSpace):
            raise ConfigurationError(
                f"{self._owner} reads the level above, which needs TD3, DDPG or SAC there, without "
                f"options of its own; got {type(agent).__name__}"
            )
        critic = agent.critic_for(self._owner)
        none = np.zeros((0, 0), np.float32)
        self._above = (LevelAbove(critic=critic, own=own, sub_goal=self._space, goal=none),)

    def views(self, rows: IntArray) -> Sequence[ViewOfAbove]:
        outer = self._rows.outer_goals
        return [
            replace(each, goal=outer[-1][rows]) if each.own.sent_size else each
            for each in self._above
        ]
