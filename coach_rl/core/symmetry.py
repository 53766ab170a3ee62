"""Symmetries of a body: what an agent learns in one situation holds in all equivalent ones.

An agent with a symmetry sees each situation turned and mirrored into the canonical one of its
class, and its actions are turned and mirrored back. Its policy is then exactly as symmetric as
the body is, whatever its networks are (canonicalisation: Kaba et al. 2023, arXiv:2211.06489).
"""

from typing import Protocol

from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.records import Action, Observation


class Symmetry(Protocol):
    """Map from a situation to the canonical one of its class, row by row; stateless."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The space of the observations that `canonical` returns."""
        ...

    @property
    def description(self) -> str:
        """Identity of the symmetry, saved with the agent, whose numbers are valid only under it."""
        ...

    def canonical(self, observation: Observation) -> Observation:
        """Canonical observations, [R, ...] each, including the agent's goal."""
        ...

    def restored(self, action: Action, observation: Observation) -> Action:
        """Actions [R, ...] for the body, from those chosen for the canonical observations.

        Args:
            action: Behind the OutputFilter.
            observation: As `canonical` takes them.
        """
        ...


class SymmetryParameters(Protocol):
    """A frozen description of a Symmetry."""

    def build(self, context: AgentContext) -> Symmetry:
        """The symmetry of what an agent sees; SpaceError or ConfigurationError if it has none."""
        ...
