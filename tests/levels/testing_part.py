"""A part of a level as another package may write it: some of its decisions are tested."""

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.level_parts import LevelPart
from coach_rl.core.levels import LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Directive, missed
from coach_rl.core.row_noise import RowNoise


@parameter_class
class DrawnTests(LevelPartParameters):
    """Tests a share of a level's decisions in training."""

    rate: float

    def settings(self):
        yield f"tests {self.rate:.4g} of its decisions"

    def build(self, context):
        return Tests(self.rate, context)


class Tests(LevelPart):
    """`DrawnTests` at a level."""

    __test__ = False
    key = "testing"
    SAVED = ("noise",)

    def __init__(self, rate, context):
        self.rate, self.context = rate, context
        self.noise = RowNoise(
            num_rows=context.num_envs, size=1, kind="uniform", seed=context.seed, name="testing"
        )
        context.counts.update(decided=0, tested=0, penalised=0)

    def is_due(self):
        clock = self.context.clock
        own = clock.levels.get(self.context.level.name)
        return clock.phase is Phase.TRAIN and own is not Phase.HEATUP

    def decided(self, rows, directive):
        if not self.is_due():
            return directive
        tested = directive.tested | (self.noise.draw(rows)[:, 0] < self.rate)
        return Directive(action=directive.action, tested=tested, outer_goals=directive.outer_goals)

    def judged(self, judgement, answer, shown):
        if self.is_due():
            tested = self.context.rows.decision_tested[answer.rows]
            self.context.counts["decided"] += len(tested)
            self.context.counts["tested"] += np.sum(tested)
            self.context.counts["penalised"] += np.sum(tested & missed(answer.end))
        return judgement

    def metrics(self):
        decided = self.context.counts["decided"]
        names = ("tested", "penalised") if decided else ()
        return {f"{name}_share": self.context.counts[name] / decided for name in names}
