"""A latent space that is a metric of time (METRA; Park et al. 2024, arXiv:2310.08887)."""

import torch
from torch import Tensor


def directed_change(
    before: Tensor,
    after: Tensor,
    skill: Tensor,
    allowed: Tensor | None,
    multiplier: Tensor,
    *,
    slack: float,
) -> tuple[Tensor, Tensor]:
    """The loss of phi, and how far each pair of neighbouring states keeps its constraint.

    Minus the mean of (phi(s') - phi(s)) . z + lambda min(epsilon, d^2 - ||phi(s) - phi(s')||^2),
    where d is how far phi may change. The constraint's part is the derivative of the dual's
    objective by lambda.

    Args:
        before: phi(s), [B, G].
        after: phi(s'), [B, G].
        skill: z, [B, G].
        allowed: d^2, [B]; None: phi has no constraint.
        multiplier: lambda, a scalar; it has no gradient here.
        slack: epsilon.

    Returns:
        The loss; min(epsilon, d^2 - ||phi(s) - phi(s')||^2) without gradients, [B], zeros where
        there is no constraint.
    """
    change = after - before
    gained = (change * skill).sum(dim=1)  # [B]
    if allowed is None:
        return -gained.mean(), torch.zeros_like(gained).detach()
    kept = (allowed - change.square().sum(dim=1)).clamp(max=slack)  # [B]
    return -(gained + multiplier.detach() * kept).mean(), kept.detach()
