"""Generalised advantage estimation."""

import torch
from torch import Tensor


def gae(
    *,
    reward: Tensor,
    value: Tensor,
    next_value: Tensor,
    terminated: Tensor,
    ended: Tensor,
    discount: Tensor,
    trace: float,
) -> Tensor:
    """Advantages by GAE, time-major (Schulman et al. 2016, equation 16).

    Two ends are kept apart, which the paper's infinite horizon does not need: `terminated` cuts the
    bootstrap (nothing comes after), `ended` cuts the trace (what comes next is another episode). A
    truncated step therefore still counts the value of its true next observation.

    Args:
        reward: [T, N].
        value: Value of the observation acted on, [T, N].
        next_value: Value of the observation the action led to, the true last one where the episode
            ended, [T, N].
        terminated: [T, N] bool.
        ended: terminated or truncated, or the last step before a gap, [T, N] bool.
        discount: Discount of each step, [T, N]; constant, or `discount ** duration`.
        trace: lambda, in [0, 1].

    Returns:
        Advantages [T, N]; value targets are these plus `value`.
    """
    keep = (~terminated).to(value.dtype)
    delta = reward + discount * keep * next_value - value
    carry = discount * trace * (~ended).to(value.dtype)
    advantage = torch.zeros_like(value[0])
    rows = []
    for step_delta, step_carry in zip(
        reversed(delta.unbind()), reversed(carry.unbind()), strict=True
    ):
        advantage = step_delta + step_carry * advantage
        rows.append(advantage)
    return torch.stack(rows[::-1])


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """One minus the share of the targets' variance left in the residual; 1 perfect, 0 no better than
    the mean. NaN-free: 0 where the targets do not vary. Scalar.
    """
    variance = target.var(correction=0)
    residual = (target - prediction).var(correction=0)
    return torch.where(variance > 0, 1 - residual / variance.clamp(min=1e-12), variance * 0)
