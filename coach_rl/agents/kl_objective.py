"""PPO's objective with an adaptive KL penalty (equation 8), and all objectives by name."""

from collections.abc import Callable

from torch import Tensor

from coach_rl.agents.ppo_objectives import ClippedObjective
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.functional.distributions import Distribution
from coach_rl.functional.kl_penalty import adapted_kl_coefficient, penalised_surrogate
from coach_rl.memories.batches import RolloutBatch


class PenalisedObjective(ClippedObjective):
    """The surrogate less beta times the KL divergence from the policy that acted."""

    keeps_policy = True

    def surrogate(
        self,
        distribution: Distribution,
        parameters: Tensor,
        log_prob: Tensor,
        batch: RolloutBatch,
        scalars: Numbers,
    ) -> tuple[Tensor, Numbers]:
        assert batch.policy is not None
        kl = distribution.kl(batch.policy, parameters)
        return penalised_surrogate(
            log_prob, batch.log_prob, batch.advantage, kl, scalars["kl_coefficient"], batch.mean
        )

    def end_round(self, divergence: Callable[[], float]) -> dict[str, float]:
        adapted = adapted_kl_coefficient(self.kl_coefficient, divergence(), self._kl_target)
        self.kl_coefficient = adapted
        return {"kl_coefficient": adapted}


OBJECTIVES = {"clip": ClippedObjective, "kl": PenalisedObjective}
"""Objectives by their names in the parameters."""
