"""The critic of an off-policy agent, as levels and agents around it read it."""

import numpy as np

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.agents.learner import Learner, ValuingLearner
from coach_rl.core.agents import RowState
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array, FloatArray, Observation


class CriticView:
    """Values and greedy actions for any observations of the agent's level; an `ActionCritic`.

    Args:
        agent: The agent, with its filters.
        learner: Its learner.
        owner: What reads the critic, for messages.

    Raises:
        ConfigurationError: There is no critic of actions, or observations depend on earlier ones.
    """

    def __init__(self, agent: FilteredAgent[RowState], learner: Learner, owner: str) -> None:
        if not agent.stages.is_stateless or not isinstance(learner, ValuingLearner):
            raise ConfigurationError(
                f"{owner} uses the critic of agent '{agent.name}', which must be that of TD3, DDPG "
                "or SAC, without recurrence, symmetry and filters that remember observations"
            )
        self._learner: ValuingLearner = learner
        self._stages = agent.stages
        self._output = agent.output_filter

    def values(self, observation: Observation, action: Array | None = None) -> FloatArray:
        seen = self._filtered(observation)
        if action is None:
            action = self._learner.acting.policy_actions(seen)
        else:
            action = np.asarray(self._output.inverse(action))
        return self._learner.values(seen, action)

    def greedy_actions(self, observation: Observation) -> Array:
        action = self._learner.acting.policy_actions(self._filtered(observation))
        return np.asarray(self._output.apply(action))

    def _filtered(self, observation: Observation) -> Observation:
        """Filtered observations [R, ...] each that belong to no row."""
        rows = np.arange(len(next(iter(observation.values()))))
        starts = np.ones(len(rows), np.bool_)
        return self._stages.enter({}, rows, observation, starts=starts, learn=False)
