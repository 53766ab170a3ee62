"""PPO's objective with an adaptive KL penalty (Schulman et al. 2017, section 4)."""

import torch
from torch import Tensor

from coach_rl.functional.policy_gradient import Mean, Metrics


def penalised_surrogate(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantage: Tensor,
    kl: Tensor,
    coefficient: Tensor,
    mean: Mean = torch.mean,
) -> tuple[Tensor, Metrics]:
    """The objective with a KL penalty, equation 8, as a loss to be minimised.

    Args:
        log_prob: Log-probability of the actions under the current policy, [B].
        old_log_prob: The same under the policy that chose them, [B].
        advantage: [B].
        kl: KL(old || new) of each row's full distribution, [B].
        coefficient: beta, a scalar.
        mean: Mean of values [B] over the samples that count.

    Returns:
        The loss (a scalar) and the metrics `approx_kl` (here the exact mean divergence) and
        `clip_fraction` (0: nothing is clipped).
    """
    ratio = (log_prob - old_log_prob).exp()
    divergence = mean(kl)
    loss = -mean(ratio * advantage) + coefficient * divergence
    return loss, {"approx_kl": divergence.detach(), "clip_fraction": divergence.detach() * 0}


def adapted_kl_coefficient(coefficient: float, divergence: float, target: float) -> float:
    """The rule of section 4: halve beta below target / 1.5, double it above 1.5 * target."""
    if divergence < target / 1.5:
        return coefficient / 2
    if divergence > target * 1.5:
        return coefficient * 2
    return coefficient
