"""Action values, their targets and losses."""

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import huber_loss


def td_target(
    reward: Tensor,
    discount: Tensor,
    next_value: Tensor,
    clip: tuple[float, float] | None = None,
) -> Tensor:
    """The value an action had in hindsight: reward + discount * value of the next observation.

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


def summary(values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Mean, lowest and highest of values."""
    return values.mean(), values.amin(), values.amax()


def critic_loss(
    values: Tensor,
    target: Tensor,
    weight: Tensor,
    huber: float | None = None,
    summary: Callable[[Tensor], tuple[Tensor, Tensor, Tensor]] = summary,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of critics that learn the same target, and its metrics.

    Args:
        values: Of the batch's actions, [K, B].
        target: [B].
        weight: Of each sample, [B].
        huber: See `regression_loss`.
        summary: Mean, lowest and highest of values [K, B], for metrics.

    Returns:
        The loss, and metrics. `td_error`, [B], is the error of one critic, or the mean size of
        several critics' errors.
    """
    error = values - target
    loss = regression_loss(error, weight, huber)
    mean, lowest, highest = summary(values)
    return loss, {
        "critic_loss": loss,
        "q_value": mean,
        "q_lowest": lowest,
        "q_highest": highest,
        "td_error": error[0] if len(error) == 1 else error.abs().mean(dim=0),
    }


def dueling_values(value: Tensor, advantage: Tensor) -> Tensor:
    """Value plus advantage, less the mean advantage (Wang et al. 2016, arXiv:1511.06581, eq. 9).

    Args:
        value: Of the state, [B, 1, K].
        advantage: Of the actions, [B, n, K].

    Returns:
        [B, n, K].
    """
    return value + advantage - advantage.mean(dim=1, keepdim=True)


def of_actions(values: Tensor, action: Tensor) -> Tensor:
    """Select the entries of one action each, [B, K].

    Args:
        values: [B, n, K].
        action: Counted from 0, int64 [B].
    """
    index = action.view(-1, 1, 1).expand(-1, 1, values.shape[-1])
    return values.gather(1, index).squeeze(1)
