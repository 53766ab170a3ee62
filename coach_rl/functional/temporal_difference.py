"""Targets and losses of action-value learning."""

import torch
from torch import Tensor
from torch.nn.functional import huber_loss


def td_target(
    reward: Tensor,
    discount: Tensor,
    next_value: Tensor,
    clip: tuple[float, float] | None = None,
) -> Tensor:
    """What an action was worth: reward + discount * value of where it led.

    Args:
        reward: [B].
        discount: [B]; 0 where the episode terminated.
        next_value: [B].
        clip: Bounds the target is kept within; None leaves it alone.
    """
    target = reward + discount * next_value
    return target if clip is None else target.clamp(*clip)


def regression_loss(error: Tensor, weight: Tensor, huber: float | None = None) -> Tensor:
    """Weighted mean over the batch, summed over the critics.

    Args:
        error: Value minus target, [K, B].
        weight: Of each sample, [B].
        huber: Errors beyond this count linearly (Huber 1964); None squares all of them, halved
            either way.
    """
    if huber is None:
        loss = 0.5 * error**2
    else:
        loss = huber_loss(error, torch.zeros_like(error), reduction="none", delta=huber)
    return (weight * loss).mean(dim=-1).sum()
