"""Sub-goals in a space of slow features (LESSON, Li et al. 2021, ICLR, openreview wxRwhSdORKG).

The achieved goal is the output of a network that changes little within a step, and enough within a
decision of the level above. docs/algorithms/lesson.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from torch import Tensor

from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import AnyTorsoParameters, relu_torso
from coach_rl.core.goals import GoalContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.extensions.learned_goals.learned_goals import (
    GoalBatch,
    LearnedGoals,
    LearnedGoalSpace,
)
from coach_rl.extensions.learned_goals.slow_features import slowness


@parameter_class
class LESSONGoalSpace(LearnedGoalSpace):
    """Goals in a space of slow features, learned from what the level does."""

    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(100, 100))
    """Hidden layers of the network."""
    optimizer: OptimizerParameters = field(
        default_factory=lambda: AdamParameters(learning_rate=1e-4)
    )
    """Optimiser of the network."""
    margin: Positive[float] = 2.0
    """Squared distance beyond which features of observations `ahead` decisions apart are not pushed
    further."""
    ahead: Positive[int] = 10
    """Decisions between the observations that are pushed apart: those of a sub-episode."""
    every: Positive[int] = 10
    """Gradient steps of the level's agent for each one of the network."""
    learns_until: NonNegative[int] | None = None
    """Gradient steps of the network, after which it stays as it is; 0: it never learns, and is the
    random network of the ablation. None: it always learns."""

    def build(self, context: GoalContext) -> "LESSONGoals":
        return LESSONGoals(self, context)


class LESSONGoals(LearnedGoals):
    """Goals in a space of slow features.

    Args:
        params: The description.
        context: What is known when the goals are built.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("features", policy=True),
        SavedAttribute("features_engine", policy=False),
        SavedAttribute("calls", policy=False),
    )

    def __init__(self, params: LESSONGoalSpace, context: GoalContext) -> None:
        super().__init__(params, context)
        self.settings = params
        self.ahead = params.ahead
        self.features = self.new_network(params.torso, "features")
        self.features_engine = self.new_engine(
            Objective(network=self.features, loss=self._loss, optimizer=params.optimizer)
        )
        self.calls = 0
        """Gradient steps of the level's agent so far."""

    def latents(self, observation: Mapping[str, Tensor]) -> Tensor:
        features: Tensor = self.features.module(observation)
        return features

    def learn(self, batch: GoalBatch) -> bool:
        until = self.settings.learns_until
        self.calls = self.calls + 1
        is_over = until is not None and self.version >= until
        if is_over or self.calls % self.settings.every or not batch.has_later.any():
            return False
        self.features_engine.step(batch)
        return True

    def metrics(self) -> dict[str, float]:
        return self.features_engine.drain_metrics()

    def _loss(self, flat: Tensor, batch: GoalBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """Slowness of the features of a batch."""
        before, after, later = (
            self.features.call(flat, each) for each in (batch.before, batch.after, batch.later)
        )
        return slowness(before, after, later, batch.has_later, margin=self.settings.margin)
