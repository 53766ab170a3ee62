"""Symmetries of a body: what an agent learns in one situation holds in all equivalent ones.

An agent with a symmetry sees each situation turned and mirrored into the one that stands for all of
its kind, and its actions are turned and mirrored back. Its policy is then exactly as symmetric as
the body is, whatever its networks are (canonicalisation: Kaba et al. 2023, arXiv:2211.06489).
"""

from typing import Protocol

from gymnasium import spaces

from coach_rl.core.agents import AgentContext
from coach_rl.core.records import Action, Observation


class Symmetry(Protocol):
    """Finds the situation that stands for all of its kind, row by row; it remembers nothing."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The space of the observations that `canonical` returns."""
        ...

    @property
    def description(self) -> str:
        """Kept with what was learned under it, which means nothing under another."""
        ...

    def canonical(self, observation: Observation) -> Observation:
        """The observations that stand for these, [R, ...] each; the agent's goal is among them."""
        ...

    def restored(self, action: Action, observation: Observation) -> Action:
        """Actions [R, ...] chosen for what stands for these observations, as the body takes them.

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
