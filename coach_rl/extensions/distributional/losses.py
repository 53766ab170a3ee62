"""Learning the distribution of returns instead of their mean."""

import torch
from torch import Tensor
from torch.nn.functional import huber_loss


def quantile_loss(quantiles: Tensor, targets: Tensor, huber: float | None = 1.0) -> Tensor:
    """Quantile Huber loss (Dabney et al. 2018, arXiv:1710.10044, equations 9 and 10).

    Summed over the quantiles, averaged over the targets. The Huber part is divided by `huber`, as
    in Dabney et al. 2018b (arXiv:1806.06923, equation 3): with 1 both papers agree, and towards 0
    it becomes the plain quantile loss.

    Args:
        quantiles: [B, K], at the midpoints (2i - 1) / 2K.
        targets: Samples of the return, [B, J].
        huber: Errors beyond this count linearly; None: all of them.

    Returns:
        [B].
    """
    count = quantiles.shape[-1]
    midpoints = (torch.arange(count, device=quantiles.device) + 0.5) / count
    error = targets.unsqueeze(-2) - quantiles.unsqueeze(-1)  # [B, K, J]
    if huber is None:
        size = error.abs()
    else:
        size = huber_loss(error, torch.zeros_like(error), reduction="none", delta=huber) / huber
    asymmetry = (midpoints.unsqueeze(-1) - (error.detach() < 0).to(error.dtype)).abs()
    losses: Tensor = asymmetry * size
    return losses.mean(dim=-1).sum(dim=-1)


def projected(probabilities: Tensor, positions: Tensor, support: Tensor) -> Tensor:
    """A distribution over other positions, moved to the support.

    Bellemare et al. 2017 (arXiv:1707.06887), equation 7: each mass is shared by its two neighbours
    by nearness, mass beyond an end of the support moves to that end. Nearness is measured in
    atoms, whose numbers float32 holds exactly, so that no mass is lost far from 0.

    Args:
        probabilities: [B, J].
        positions: Where these masses lie, [B, J].
        support: Evenly spaced, rising, [K].

    Returns:
        Probabilities over the support, [B, K].
    """
    gap = (support[-1] - support[0]) / (len(support) - 1)
    inside = (positions.clamp(support[0], support[-1]) - support[0]) / gap  # [B, J], in atoms
    atoms = torch.arange(len(support), dtype=support.dtype, device=support.device)  # [K]
    distance = (inside.clamp(max=len(support) - 1).unsqueeze(-2) - atoms.unsqueeze(-1)).abs()
    return ((1 - distance).clamp(min=0) * probabilities.unsqueeze(-2)).sum(dim=-1)


def categorical_loss(logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of a distribution with its target, and their divergence.

    Bellemare et al. 2017, algorithm 1. The divergence KL(target || predicted) differs from the loss
    by the target's entropy, which no prediction can change (it is what Hessel et al. 2018,
    arXiv:1710.02298, prioritise by).

    Args:
        logits: [B, K].
        target: Probabilities, [B, K].

    Returns:
        Loss and divergence, [B] each.
    """
    loss = -(target * logits.log_softmax(dim=-1)).sum(dim=-1)
    return loss, loss.detach() + torch.xlogy(target, target).sum(dim=-1)
