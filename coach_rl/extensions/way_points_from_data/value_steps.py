"""Costs of edges: the steps that the value of the level below, learned from data, expects.

    DataGraphAgentParameters(costs=ValueSteps())

V(s, g) counts the discounted steps from s to g where each is rewarded by -1 until g is reached.
With HIQL below it is the mean of two values, with GCIQL the value function of states.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.output_rules import Forward
from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray, IntArray, Observation, take
from coach_rl.extensions.goals_from_data.hiql import GoalValues
from coach_rl.extensions.hac.critic_below import CriticBelow, require_timeless_states
from coach_rl.extensions.planning.edge_costs import EdgeCosts, expected_steps
from coach_rl.extensions.planning.roadmap import Roadmap

_AT_ONCE = 1 << 12
"""Edges whose values are computed together, which fit into a cache."""


@parameter_class
class ValueSteps:
    """An edge costs the steps that the value of states and goals below expects it to take.

    d = 1 + log(1 + (1 - gamma) V) / log(gamma), as in SoRB (Eysenbach et al. 2019,
    arXiv:1906.05253, section 2.2), which reads it off a critic of actions with gamma = 1.
    """

    need_states: ClassVar[bool] = True

    every: Positive[int] | None = 500
    """Decisions in the world after which all costs are recomputed; None: never."""

    def build(self, owner: str, place: LevelPlace, fixed_goal: tuple[float, ...]) -> EdgeCosts:
        """The value's costs; ConfigurationError without a value of goals that counts steps."""
        low, values = require_values_below(f"{owner}: costs=ValueSteps()", place)
        goal = place.sub_goal
        below = place.below
        assert goal is not None
        assert below is not None
        if goal.reward != "sparse" or not 0 < low.discount < 1:
            raise ConfigurationError(
                f"{owner}: costs=ValueSteps() reads steps off values under rewards of -1 and 0 and "
                f"a discount between 0 and 1; got {goal.reward_named} and a discount of "
                f"{low.discount} at level '{below.name}'; use costs=EdgeLengths()"
            )
        return _Steps(
            states=CriticBelow(goal, low),
            goal=goal,
            values=torch_forward(values.goal_values, low.device),
            discount=low.discount,
            fixed_goal=fixed_goal,
            missed=None if below.horizon is None else float(below.horizon),
        )


def require_values_below(owner: str, place: LevelPlace) -> tuple[OffPolicyAgent, GoalValues]:
    """The agent below and its values, which can evaluate observations made above.

    Args:
        owner: The planning agent, for messages.
        place: Its place in the stack.

    Raises:
        ConfigurationError: It has no value of goals, or its filters cannot take observations out
            of turn.
    """
    low = place.agent_below
    learner = getattr(low, "learner", None)
    if not isinstance(low, OffPolicyAgent) or not isinstance(learner, GoalValues):
        raise ConfigurationError(
            f"{owner} plans by the value of states and goals of the level below; give that level "
            f"HIQLAgentParameters or GCIQLAgentParameters, got {type(low).__name__}"
            + ("" if learner is None else f" with {type(learner).__name__}")
        )
    require_timeless_states(owner, place, low)
    return low, learner


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """Costs that are steps."""

    states: CriticBelow
    """Shows observations as the agent below sees them."""
    goal: GoalSpace
    """Goals of the level below."""
    values: Forward
    """Values [B] of observations with goals, [B, ...] each."""
    discount: float
    """The discount of the values."""
    fixed_goal: tuple[float, ...]
    """Values of the goal's elements beyond the place."""
    missed: float | None

    def of(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        """Steps from the state that was observed where an edge begins to the place at its end."""
        parts = [edges[first : first + _AT_ONCE] for first in range(0, len(edges), _AT_ONCE)]
        steps = [self._steps(roadmap, states, part) for part in parts]
        return np.concatenate(steps) if steps else np.zeros(0)

    def _steps(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        seen = self.states.states(take(states, roadmap.begins[edges]))
        rest = np.tile(self.fixed_goal, (len(edges), 1))
        goals = np.hstack([roadmap.places[roadmap.ends[edges]], rest]).astype(np.float32)
        values = self.values({**seen, **self.goal.show(goals, seen)})
        return expected_steps(values.astype(np.float64), self.discount)
