"""Values of goals, according to the critic of the level below.

HIGL's landmarks and graphs of way-points plan with it.
"""

from typing import Any

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.hidden_states import require_memoryless
from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.records import FloatArray, Observation


class CriticBelow:
    """Values of goals, according to the critic of the level below.

    Args:
        goal: The goals of the level below.
        agent: The agent of that level, whose learner has critics.
    """

    def __init__(self, goal: GoalSpace, agent: OffPolicyAgent) -> None:
        self._goal = goal
        self._agent = agent

    def states(self, observation: Observation) -> Observation:
        """Observations [R, ...] each of the environment as the agent below sees them, without goal.

        Goals among them are left out.
        """
        rest = {key: values for key, values in observation.items() if key != GOAL_KEY}
        count = len(next(iter(observation.values())))
        starts = np.ones(count, np.bool_)
        rows = np.arange(count)
        return self._agent.stages.enter({}, rows, rest, starts=starts, learn=False)

    def values(self, states: Observation, goals: FloatArray) -> FloatArray:
        """The lower critic's values of the greedy actions for goals [R, G], float64 [R].

        Args:
            states: As `states` returns them or the memory of the agent below keeps them, [R, ...].
            goals: [R, G].
        """
        seen = {**states, **self._goal.show(goals, states)}
        learner: Any = self._agent.learner
        values: FloatArray = learner.values(seen, self._agent.policy_actions(seen))
        return values.astype(np.float64)


def require_critic_below(owner: str, place: LevelPlace) -> OffPolicyAgent:
    """The agent below, whose critic can evaluate observations made above.

    Args:
        owner: The planning agent, for messages.
        place: Its place in the stack.

    Raises:
        ConfigurationError: It has no critic, or its filters cannot take observations out of turn.
    """
    low = place.agent_below
    if not isinstance(low, OffPolicyAgent) or not hasattr(low.learner, "values"):
        raise ConfigurationError(
            f"{owner} plans by the critic of the agent below, which must be TD3, DDPG or SAC; "
            f"got {type(low).__name__}"
            + (f" '{low.name}', which has none" if isinstance(low, OffPolicyAgent) else "")
        )
    require_timeless_states(owner, place, low)
    return low


def require_timeless_states(owner: str, place: LevelPlace, low: OffPolicyAgent) -> None:
    """Raise `ConfigurationError` where the networks below need earlier observations, or goals.

    Args:
        owner: The planning agent, for messages.
        place: Its place in the stack.
        low: The agent below, whose networks evaluate observations made above.
    """
    require_memoryless(
        (network.module for network in low.learner.networks.values()),
        f"{owner} plans by agent '{low.name}', which",
    )
    assert place.sub_goal is not None
    changed = low.input_filter.changed_keys & {GOAL_KEY, place.sub_goal.key}
    if changed or low.input_filter.new_rows(1):
        raise ConfigurationError(
            f"{owner} shows its observations to the critic of agent '{low.name}', so that one's "
            "InputFilter must neither remember them nor change goals; got filters for "
            f"{', '.join(sorted(changed)) or 'earlier observations'}"
        )
