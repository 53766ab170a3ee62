"""NovelD: a bonus at the border of what is known (Zhang et al. 2021, NeurIPS 34)."""

from typing import Any, ClassVar

import numpy as np

from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import UnitInterval
from coach_rl.core.records import Array, FloatArray, IntArray, Observation, Outcome
from coach_rl.core.saved import SavedNames
from coach_rl.extensions.curiosity.rnd import DistilledBonus, DistilledBonusParameters
from coach_rl.extensions.curiosity.visits import VisitedParameters, Visits, first_visits
from coach_rl.memories.transition_batch import TransitionBatch

FIRST = "bonus/first_visit"
"""The column of which decisions led to something that their episode had not visited."""


@parameter_class
class NovelD(DistilledBonusParameters, VisitedParameters):
    """max(novelty(s') - alpha novelty(s), 0) where an episode visits s' for the first time.

    Novelty is the norm of the predictor's error, equations 2 and 3 of the paper. What counts as
    visited is `key`: the full state, which the paper counts in MiniGrid, is a *given*.
    """

    alpha: UnitInterval = 0.5
    """Factor on the novelty of what the decision was made on."""

    def build(self, context: AgentContext) -> "NovelDBonus":
        """The bonus; SpaceError where nothing has the key's name."""
        return NovelDBonus(self, context)


class NovelDBonus(DistilledBonus):
    """The bonus of one agent."""

    SAVED: ClassVar[SavedNames] = ("visits",)

    def __init__(self, params: NovelD, context: AgentContext) -> None:
        super().__init__(params, context)
        self._alpha = params.alpha
        self.visits = Visits(params, context, "NovelD")
        self.extras = (FIRST,) if params.fresh else ()
        self._first = np.zeros(0, np.bool_)

    def begin(self, rows: IntArray) -> None:
        super().begin(rows)
        self.visits.begin(rows)

    def novelty(self, before: Observation, after: Observation) -> FloatArray:
        both = {key: np.concatenate([after[key], before[key]]) for key in self.distillation.keys}
        new, old = np.split(np.sqrt(self.distillation.errors(both)), 2)
        bonus: FloatArray = np.maximum(new - self._alpha * old, 0.0)
        return bonus

    def counted(self, before: Observation, outcome: Outcome) -> FloatArray:
        self._first = first_visits(self.visits.count(before, outcome))
        return self._first.astype(np.float64)

    def counted_in(self, batch: TransitionBatch) -> Any:
        return batch.extras[FIRST]

    def kept(self, bonus: FloatArray) -> dict[str, Array]:
        return super().kept(bonus) | dict.fromkeys(self.extras, self._first)
