"""Continuous skills as directions in a space that is learned (METRA; Park et al. 2024, ICLR).

A skill is rewarded for how far a step goes its way: (phi(s') - phi(s)) . z. The network phi is
trained to make that large, while neighbouring states stay within a distance of 1 of each other
(arXiv:2310.08887). docs/skills.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
import torch
from torch import Tensor, nn

from coach_rl.agents.sac_agent import Temperature
from coach_rl.architectures.gradient_step import AdamParameters, Numbers, Objective
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.architectures.torso import AnyTorsoParameters, relu_torso
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GoalContext, KeptForGoals, Verdict
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.core.saved import SavedAttribute, SavedNames
from coach_rl.extensions.learned_goals.learned_goals import (
    GoalBatch,
    LearnedGoals,
    LearnedGoalSpace,
)
from coach_rl.extensions.learned_goals.temporal_metric import directed_change

if TYPE_CHECKING:
    from coach_rl.agents.off_policy_agent import OffPolicyAgent


def _adam() -> AdamParameters:
    return AdamParameters(learning_rate=1e-4)


@parameter_class
class METRAGoalSpace(LearnedGoalSpace):
    """Skills: directions in a learned space, which hold until the horizon. Defaults: the paper's.

    The level above acts between -1 and 1 in each element. Evenly spread actions are directions
    that are evenly spread over the unit sphere.
    """

    low: NonEmpty[tuple[float, ...]] = (-1.0, -1.0)
    """-1 for each element of a skill."""
    high: tuple[float, ...] = (1.0, 1.0)
    """1 for each element of a skill."""
    threshold: tuple[NonNegative[float], ...] = (0.0, 0.0)
    """0 for each element: a skill is never reached."""
    discrete: bool = False
    """If True, there are as many skills as elements: the largest element of an action counts, and
    z is 1 there and -1 / (elements - 1) in the others."""
    constraint: Literal["temporal", "euclidean", "none"] = "temporal"
    """Largest distance of the latents of two neighbouring states. temporal: 1, for a step.
    euclidean: their distance in the observation, as in LSD (Park et al. 2022, arXiv:2202.00914).
    none: phi has no constraint."""
    torso: AnyTorsoParameters = field(default_factory=lambda: relu_torso(1024, 1024))
    """Hidden layers of phi."""
    optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of phi."""
    multiplier: Positive[float] = 30.0
    """Lambda, the dual variable of the constraint, at the start."""
    multiplier_optimizer: OptimizerParameters = field(default_factory=_adam)
    """Optimiser of the logarithm of lambda."""
    slack: Positive[float] = 1e-3
    """Epsilon: a constraint that is kept by more counts as kept by this."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            set(self.low) == {-1.0} and set(self.high) == {1.0} and len(self.low) > 1,
            f"METRAGoalSpace has directions of two elements or more, each from -1 to 1, got low="
            f"{self.low} and high={self.high}; set them, and threshold, to as many -1, 1 and 0",
        )
        require(
            not self.relative and self.observed == "absolute" and self.bounds_rate is None,
            "METRAGoalSpace has directions, which are the same everywhere; leave out relative, "
            "observed and bounds_rate",
        )

    def build(self, context: GoalContext) -> "METRAGoals":
        return METRAGoals(self, context)


class METRAGoals(LearnedGoals):
    """Skills as directions, phi, and the dual variable of its constraint.

    Args:
        params: The description.
        context: What is known when the goals are built.
    """

    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("phi", policy=True),
        SavedAttribute("multiplier", policy=False),
        SavedAttribute("phi_engine", policy=False),
    )
    uses_before = True

    def __init__(self, params: METRAGoalSpace, context: GoalContext) -> None:
        super().__init__(params, context)
        self.settings = params
        self.phi = self.new_network(params.torso, "phi")
        self.multiplier = NetworkWrapper(Temperature(params.multiplier), device=self.device)
        objectives: tuple[Objective[GoalBatch], ...] = (
            Objective(
                name="phi", network=self.phi, loss=self._phi_loss, optimizer=params.optimizer
            ),
            Objective(
                name="multiplier",
                network=self.multiplier,
                loss=self._multiplier_loss,
                optimizer=params.multiplier_optimizer,
            ),
        )
        self.phi_engine = self.new_engine(*objectives[: 1 if params.constraint == "none" else 2])

    def attach(self, agent: "OffPolicyAgent") -> KeptForGoals:
        if getattr(agent.params.memory, "relabelling", None) is not None:
            raise ConfigurationError(
                "METRAGoalSpace has directions, and hindsight takes places that were achieved as "
                "goals; leave out memory.relabelling"
            )
        return super().attach(agent)

    def latents(self, observation: Mapping[str, Tensor]) -> Tensor:
        latents: Tensor = self.phi.module(observation)
        return latents

    def target(self, action: Array, observation: Observation) -> FloatArray:
        """Skills [R, G] that actions stand for: unit vectors, or centred one-hot ones."""
        if self.settings.discrete:
            chosen = np.arange(self.size) == np.argmax(action, axis=1, keepdims=True)
            return np.where(chosen, 1.0, -1.0 / (self.size - 1)).astype(np.float32)
        # Normal numbers of uniform ones: their directions are uniform, those of a cube's are not.
        inside = torch.from_numpy(np.asarray(action, np.float64)).clamp(-1 + 1e-7, 1 - 1e-7)
        normal = torch.erfinv(inside)
        direction = nn.functional.normalize(normal, dim=1)
        return np.asarray(direction.numpy(), np.float32)

    def judge(
        self, goal: FloatArray, achieved: FloatArray, before: FloatArray | None = None
    ) -> Verdict:
        """Rewards by how far decisions went the skills' way; a skill is never reached."""
        assert before is not None, "goals with `uses_before` are judged with it"
        change = achieved.astype(np.float64) - before
        never = np.zeros(len(goal), np.bool_)
        reward = (change * goal).sum(axis=1)
        return Verdict(self.difference_of(goal, achieved), reward, never, never)

    def learn(self, batch: GoalBatch) -> bool:
        self.phi_engine.step(batch)
        return True

    def metrics(self) -> dict[str, float]:
        return self.phi_engine.drain_metrics()

    def _phi_loss(self, flat: Tensor, batch: GoalBatch, scalars: Numbers) -> tuple[Tensor, Numbers]:
        """The loss of phi; the constraint's part for that of lambda."""
        before, after = (self.phi.call(flat, each) for each in (batch.before, batch.after))
        loss, kept = directed_change(
            before,
            after,
            batch.goal,
            self._allowed(batch),
            self.multiplier.online.exp(),
            slack=self.settings.slack,
        )
        length = (after - before).square().sum(dim=1).mean().sqrt()
        return loss, {"kept": kept, "length": length.detach()}

    def _multiplier_loss(
        self, flat: Tensor, batch: GoalBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Log lambda times how far the constraint is kept: lambda grows where it is not."""
        log_multiplier = self.multiplier.call(flat)[0]
        return log_multiplier * scalars["kept"].mean(), {"multiplier": log_multiplier.exp()}

    def _allowed(self, batch: GoalBatch) -> Tensor | None:
        """The square of how far phi may change, [B]."""
        match self.settings.constraint:
            case "temporal":
                return torch.ones(len(batch.goal), device=batch.goal.device)
            case "euclidean":
                key = self.settings.key
                moved = (batch.after[key] - batch.before[key]).flatten(1)
                return moved.square().sum(dim=1)
        return None
