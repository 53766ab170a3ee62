"""Costs of a try to pass an edge of a graph: its length, or steps by the critic below.

GraphAgentParameters(places=FarthestPoints(), costs=CriticSteps())
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import FloatArray, IntArray, Observation, take
from coach_rl.extensions.hac.critic_below import CriticBelow, require_critic_below
from coach_rl.extensions.planning.roadmap import Roadmap
from coach_rl.extensions.planning.way_points import DETOUR

_NEVER = 1e-6
"""The smallest power of a discount that is not taken for 0."""


class EdgeCosts(Protocol):
    """Costs of edges."""

    @property
    def missed(self) -> float | None:
        """Cost of a try that misses; None: as much as one that passes."""
        ...

    def of(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        """The costs of some edges, if a try passes them; above 0.

        Args:
            roadmap: Places and edges.
            states: Observations made at the places, [M, ...] each.
            edges: Numbers of the edges, [E].
        """
        ...


class EdgeCostsParameters(Protocol):
    """A frozen description of the costs of edges."""

    @property
    def need_states(self) -> bool:
        """True if they depend on what was observed at places, which must have been visited."""
        ...

    @property
    def every(self) -> int | None:
        """Decisions after which all costs are recomputed; None: they do not change."""
        ...

    def build(self, owner: str, place: LevelPlace, fixed_goal: tuple[float, ...]) -> EdgeCosts:
        """The costs of edges at a place in a stack.

        Args:
            owner: The agent that plans, for messages.
            place: Its place in the stack.
            fixed_goal: Values of the goal's elements beyond the place.

        Raises:
            ConfigurationError: Costs are unknown at that place.
        """
        ...


@parameter_class
class EdgeLengths:
    """An edge costs its length."""

    need_states: ClassVar[bool] = False
    every: ClassVar[int | None] = None

    missed: Positive[float] | None = None
    """Cost of a try that misses: the distance that the level below could have covered instead, in
    units of the goal. None: as much as one that passes."""

    def build(self, owner: str, place: LevelPlace, fixed_goal: tuple[float, ...]) -> EdgeCosts:
        return self

    def of(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        return roadmap.lengths[edges]


@parameter_class
class CriticSteps:
    """An edge costs the steps that the critic of the level below expects it to take.

    As in SoRB (Eysenbach et al. 2019, arXiv:1906.05253) and DHRL (Lee et al. 2022). The level below
    must be paid -1 a step until it reaches its goal; SAC's values count entropy as well.
    """

    need_states: ClassVar[bool] = True

    every: Positive[int] | None = 500
    """Decisions after which all costs are recomputed; new edges' at once. None: never."""
    longest: Positive[float] | None = None
    """Steps above which an edge is taken only where there is no other way; None: the horizon of the
    level below."""

    def build(self, owner: str, place: LevelPlace, fixed_goal: tuple[float, ...]) -> EdgeCosts:
        """The critic's costs; ConfigurationError without a critic whose values are steps."""
        low = require_critic_below(f"{owner}: costs=CriticSteps()", place)
        goal = place.sub_goal
        below = place.below
        assert goal is not None
        assert below is not None
        if goal.reward != "sparse" or low.discount <= 0:
            raise ConfigurationError(
                f"{owner}: costs=CriticSteps() reads steps off values under rewards of -1 and 0 "
                f"and a discount above 0; got {goal.reward_named} and a discount of "
                f"{low.discount} at level '{below.name}'; use costs=EdgeLengths()"
            )
        return _Steps(
            critic=CriticBelow(goal, low),
            discount=low.discount,
            longest=self.longest or below.horizon or math.inf,
            fixed_goal=fixed_goal,
            missed=None if below.horizon is None else float(below.horizon),
        )


def expected_steps(values: FloatArray, discount: float) -> FloatArray:
    """Steps to a goal of that value: d with V = -(1 - discount ** (d - 1)) / (1 - discount).

    The reward of each step is -1, but 0 for the last one, which reaches the goal. Lee et al. 2022
    (DHRL) have d in the place of d - 1, since the last step's reward is -1 there.

    Args:
        values: Of states under goals.
        discount: Above 0.
    """
    lost = np.maximum(-values, 0.0)
    if discount == 1:
        return 1 + lost
    left = np.maximum(1 - (1 - discount) * lost, _NEVER)
    steps: FloatArray = 1 + np.log(left) / math.log(discount)
    return steps


@dataclass(frozen=True, kw_only=True)
class _Steps:
    """Costs that are steps."""

    critic: CriticBelow
    discount: float
    """The discount of the critic's values."""
    longest: float
    """Steps above which an edge is taken only where there is no other way."""
    fixed_goal: tuple[float, ...]
    """Values of the goal's elements beyond the place."""
    missed: float | None

    def of(self, roadmap: Roadmap, states: Observation, edges: IntArray) -> FloatArray:
        """Steps from the state that was observed where an edge begins to the place at its end."""
        if not len(edges):
            return np.zeros(0)
        seen = self.critic.states(take(states, roadmap.begins[edges]))
        rest = np.tile(self.fixed_goal, (len(edges), 1))
        goals = np.hstack([roadmap.places[roadmap.ends[edges]], rest]).astype(np.float32)
        steps = expected_steps(self.critic.values(seen, goals), self.discount)
        return steps + DETOUR * (steps > self.longest)
