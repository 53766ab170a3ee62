"""Slowness of features (Li et al. 2021, "Learning Subgoal Representations with Slow Dynamics")."""

import torch
from torch import Tensor


def slowness(
    before: Tensor, after: Tensor, later: Tensor, has_later: Tensor, *, margin: float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The triplet loss of slow features, and its two terms.

    The mean of ||phi(s_t) - phi(s_t+1)||^2 + max(0, m - ||phi(s_t) - phi(s_t+c)||^2), the second
    term where there is a state c steps later.

    Args:
        before: phi(s_t), [B, G].
        after: phi(s_t+1), [B, G].
        later: phi(s_t+c), [B, G].
        has_later: Which of the later features count, bool [B].
        margin: m.
    """
    near = (after - before).square().sum(dim=1).mean()
    far = (later - before).square().sum(dim=1)  # [B]
    counted = has_later.to(far.dtype)
    apart = (torch.relu(margin - far) * counted).sum() / counted.sum().clamp(min=1.0)
    metrics = {"step": near.detach(), "apart": apart.detach()}
    return near + apart, metrics
