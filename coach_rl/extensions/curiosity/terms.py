"""Bonuses that follow episodes, and the stage by which they join an agent."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from coach_rl.agents.agent_rows import AnyAgentRows, write_rows
from coach_rl.agents.bonuses import Bonus
from coach_rl.agents.off_policy_agent import OffPolicyAgentParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.agents.stages.reward_terms import RewardTerms
from coach_rl.agents.stages.stage import StageBuild
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.saved import Saved, SavedNames
from coach_rl.extensions.curiosity.streams import RewardStream
from coach_rl.memories.transition_batch import TransitionBatch

_BEGINS = "bonus/begins"
"""Name of marks of rows whose real episode began with the open decision."""


class EpisodeBonus(Saved):
    """A bonus that follows episodes, may have a stream, and may be computed again in batches.

    Attributes:
        stream: The stream that it feeds in place of the agent's reward; None: it is added to that.
        is_fresh: True if it is computed in batches from a replay memory.
        extras: Names of the columns of `kept` that replay memories need.
    """

    SAVED: ClassVar[SavedNames] = ()

    stream: RewardStream | None = None
    is_fresh: bool = False
    extras: tuple[str, ...] = ()

    def begin(self, rows: IntArray) -> None:
        """Note that these rows [R] began an episode before the decisions of the next call."""

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """The bonus of decisions, [R]."""
        raise NotImplementedError

    def kept(self, bonus: FloatArray) -> dict[str, Array]:
        """Columns [R] that are kept with the decisions of the last call."""
        return {} if self.stream is None else {self.stream.column: bonus}

    def refreshed(self, batch: TransitionBatch) -> TransitionBatch:
        """A batch from a replay memory with the bonus added to its rewards."""
        return batch


class EpisodeBonusParameters:
    """Half of the parameters of such a bonus: how it joins an agent."""

    def build(self, context: AgentContext) -> EpisodeBonus:
        """The bonus; SpaceError where it does not fit the observations."""
        raise NotImplementedError

    def stage(self, build: StageBuild) -> "EpisodeBonusTerms":
        """The stage of an agent; ConfigurationError where it can't learn from the bonus."""
        bonus = self.build(build.context)
        owner = build.context.place.owner(build.name)
        if bonus.stream is not None and not isinstance(build.params, PPOAgentParameters):
            raise ConfigurationError(
                f"{owner} has one critic for all rewards, and its bonus a stream of its own, which "
                "PPO learns; leave the bonus' `stream` out"
            )
        if bonus.is_fresh and (reason := obstacle_to_fresh(build.params)):
            raise ConfigurationError(
                f"the bonus of {owner} is computed in batches of transitions, and {reason}; leave "
                "out fresh=True, or that"
            )
        return EpisodeBonusTerms(bonus, Bonus(bonus, build.context.signals, owner))


class EpisodeBonusTerms(RewardTerms):
    """The stage of an agent with such a bonus.

    Args:
        bonus: The bonus.
        checked: The same, as agents call it.
    """

    def __init__(self, bonus: EpisodeBonus, checked: Bonus) -> None:
        saved: Mapping[str, object] = {"bonus": checked}
        super().__init__((checked,), saved)
        self._bonus = bonus
        self.extras = bonus.extras
        self.streams = () if bonus.stream is None else (bonus.stream.learned,)

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        return {_BEGINS: np.zeros(num_rows, np.bool_)}

    def begin(self, row_state: AnyAgentRows, request: ActionRequest) -> None:
        # Where others act in its rows, an episode begins to the agent whenever it takes over.
        begins = getattr(request, "real", request.episode_start)
        row_state.filters[_BEGINS][request.rows[begins]] = True

    def reward(
        self, row_state: AnyAgentRows, outcome: Outcome, reward: FloatArray, *, learn: bool
    ) -> FloatArray:
        if not learn:
            return reward
        begins = row_state.filters[_BEGINS]
        self._bonus.begin(outcome.rows[begins[outcome.rows]])
        begins[outcome.rows] = False
        none = np.zeros(len(outcome.rows))
        bonus = super().reward(row_state, outcome, none, learn=learn)
        columns = self._bonus.kept(bonus)
        write_rows(row_state.choice, outcome.rows, columns, len(row_state.heatup))
        is_kept_apart = self._bonus.is_fresh or self._bonus.stream is not None
        return reward if is_kept_apart else reward + bonus

    def refreshed(self, batch: TransitionBatch) -> TransitionBatch:
        return self._bonus.refreshed(batch)


def obstacle_to_fresh(params: object) -> str:
    """The reason why a bonus can't be computed in batches; empty if it can.

    Args:
        params: Those of the agent.
    """
    if not isinstance(params, OffPolicyAgentParameters):
        return "the agent has no replay memory"
    if params.memory.n_step != 1:
        return f"memory.n_step={params.memory.n_step} adds up the rewards of several"
    if params.input_filter is not None:
        return "the InputFilter changes what the memory keeps"
    return ""
