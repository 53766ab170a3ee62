"""A bonus for what an episode has not visited often."""

from typing import ClassVar

import numpy as np

from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Action, FloatArray, IntArray, Observation, Outcome
from coach_rl.core.saved import SavedNames
from coach_rl.extensions.curiosity.terms import EpisodeBonus, EpisodeBonusParameters
from coach_rl.extensions.curiosity.visits import VisitedParameters, Visits


@parameter_class
class EpisodicCount(VisitedParameters, EpisodeBonusParameters):
    """weight / sqrt(n) for the n-th visit in an episode.

    It is the episodic half of the bonus of RIDE (Raileanu and Rocktäschel 2020, arXiv:2002.12292,
    equation 3), by itself. A key that shows the full state, or anything else that the agent doesn't
    observe, is a *given*.
    """

    weight: NonNegative[float] = 0.1
    """The bonus of a first visit."""
    first_only: bool = False
    """True: nothing for further visits."""

    def build(self, context: AgentContext) -> "EpisodicCounts":
        """The bonus; SpaceError where nothing has the key's name."""
        return EpisodicCounts(self, context)


class EpisodicCounts(EpisodeBonus):
    """The bonus of one agent.

    Args:
        params: Its settings.
        context: That of the agent.
    """

    SAVED: ClassVar[SavedNames] = ("visits",)

    def __init__(self, params: EpisodicCount, context: AgentContext) -> None:
        self.params = params
        self.visits = Visits(params, context, "EpisodicCount")

    def begin(self, rows: IntArray) -> None:
        self.visits.begin(rows)

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """The bonus of decisions, [R]."""
        numbers = self.visits.count(before, outcome)
        bonus: FloatArray = self.params.weight / np.sqrt(numbers)
        return np.where(numbers == 1, bonus, 0.0) if self.params.first_only else bonus
