"""The clipped objective of PPO (equation 7), from which its others are derived."""

from collections.abc import Callable
from typing import ClassVar

from torch import Tensor

from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.saved import Saved, SavedNames
from coach_rl.functional.distributions import Distribution
from coach_rl.functional.policy_gradient import clipped_surrogate
from coach_rl.memories.batches import RolloutBatch


class ClippedObjective(Saved):
    """The smaller of the surrogates with and without a clipped ratio.

    Args:
        kl_coefficient: The first beta; agents save it with either objective.
        kl_target: Divergence per round that a penalty steers for.
    """

    SAVED: ClassVar[SavedNames] = ("kl_coefficient",)
    keeps_policy: bool = False
    """True if it needs the parameters of the distributions that actions were drawn from."""

    def __init__(self, kl_coefficient: float, kl_target: float) -> None:
        self.kl_coefficient, self._kl_target = kl_coefficient, kl_target

    def surrogate(
        self,
        distribution: Distribution,
        parameters: Tensor,
        log_prob: Tensor,
        batch: RolloutBatch,
        scalars: Numbers,
    ) -> tuple[Tensor, Numbers]:
        """The loss of the policy and its metrics; pure.

        Args:
            distribution: Of the policy.
            parameters: The policy's, [B, P].
            log_prob: Log-probability of the actions, [B].
            batch: What the policy learns from, with the advantages that count, [B].
            scalars: `clip` and `kl_coefficient`.
        """
        return clipped_surrogate(
            log_prob, batch.log_prob, batch.advantage, scalars["clip"], batch.mean
        )

    def end_round(self, divergence: Callable[[], float]) -> dict[str, float]:
        """Adapt to the divergence of the new policy from the old one; metrics by name."""
        return {}
