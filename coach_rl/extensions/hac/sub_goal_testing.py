"""Sub-goal testing: a level lets no level below explore during some of its decisions.

LevelParameters(parts=(SubGoalTesting(rate=0.3),), ...)

Levy et al. 2019, arXiv:1712.00948.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.level_parts import Counts, Judgement, LevelPart, RowsOfLevel
from coach_rl.core.levels import LevelDescription, LevelPartContext, LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import UnitInterval
from coach_rl.core.records import (
    BoolArray,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
    missed,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.state import State


@parameter_class
class SubGoalTesting(LevelPartParameters):
    """Tests a share of a level's decisions in training: no level below explores during one.

    A decision that the level above tests is tested as well.
    """

    rate: UnitInterval = 0.3
    """The share: lambda of the paper."""

    @property
    def acts_in_evaluations(self) -> bool:
        return False

    def settings(self) -> Iterator[str]:
        if self.rate:
            yield f"tests {self.rate:.4g} of its decisions"

    def problems(
        self, level: LevelDescription, below: Sequence[LevelDescription]
    ) -> Iterator[str | ConfigurationError]:
        if self.rate and not below:
            yield (
                f"level '{level.name}' has SubGoalTesting(rate={self.rate}) and no level below it "
                "to test; leave it out"
            )

    def build(self, context: LevelPartContext) -> "TestedDecisions":
        noise = RowNoise(
            num_rows=context.num_envs, size=1, kind="uniform", seed=context.seed, name="testing"
        )
        return TestedDecisions(
            noise,
            rate=self.rate,
            level=context.level.name,
            clock=context.clock,
            rows=context.rows,
            counts=context.counts,
        )


class TestedDecisions(LevelPart):
    """`SubGoalTesting` at a level.

    Args:
        noise: Numbers for the draws, from a stream for each row.
        rate: The share that is tested.
        level: The level's name.
        clock: The stack's.
        rows: The level's.
        counts: Sums for the log.
    """

    key = "testing"
    SAVED = (SavedAttribute("_noise", inline=True),)

    def __init__(
        self,
        noise: RowNoise,
        *,
        rate: float,
        level: str,
        clock: Clock,
        rows: RowsOfLevel,
        counts: Counts,
    ) -> None:
        self._noise = noise
        self._rate = rate
        self._level = level
        self._clock = clock
        self._rows = rows
        self._counts = counts
        counts.update(decided=0.0, tested=0.0, penalised=0.0)
        self._followed: BoolArray | None = None
        """[N] which decisions made elsewhere are tested; None where the level makes its own."""

    @property
    def is_on(self) -> bool:
        """True if the level tests some of its decisions now; random ones it doesn't.

        That a frozen level does makes no difference to it.
        """
        if not self._rate or self._clock.phase is not Phase.TRAIN:
            return False
        return self._clock.levels.get(self._level) is not Phase.HEATUP

    def decided(self, rows: IntArray, directive: Directive) -> Directive:
        if self._followed is not None:
            tested = self._followed[rows]
        elif self.is_on:
            drawn: BoolArray = self._noise.draw(rows)[:, 0] < self._rate
            tested = drawn if directive.tested is None else directive.tested | drawn
        else:
            return directive
        return Directive(action=directive.action, tested=tested, outer_goals=directive.outer_goals)

    def judged(self, judgement: Judgement, answer: EnvResponse, shown: Observation) -> Judgement:  # noqa: ARG002
        if self.is_on:
            tested = self._rows.decision_tested[answer.rows]
            self._counts["decided"] += len(tested)
            self._counts["tested"] += np.count_nonzero(tested)
            self._counts["penalised"] += np.count_nonzero(tested & missed(answer.end))
        return judgement

    def metrics(self) -> dict[str, float]:
        decided = self._counts["decided"]
        if not decided:
            return {}
        return {
            "tested_share": self._counts["tested"] / decided,
            "penalised_share": self._counts["penalised"] / decided,
        }

    def decisions(self) -> State:
        return {"tested": self._rows.decision_tested}

    def follow(self, decisions: State) -> None:
        self._followed = decisions["tested"]
