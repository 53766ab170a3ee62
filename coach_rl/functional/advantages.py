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
    return discounted_sums(delta, carry)


def discounted_sums(term: Tensor, carry: Tensor) -> Tensor:
    """The recurrence `sum[t] = term[t] + carry[t] * sum[t + 1]` for all t at once.

    Doubles the span covered in each round, so T steps take log2(T) rounds of whole-array work
    rather than a loop over time.

    Args:
        term: [T, N].
        carry: [T, N]; the last row is not used.

    Returns:
        The sums, [T, N].
    """
    total, span = term, 1
    while span < len(term):
        reached = total[:-span] + carry[:-span] * total[span:]
        total = torch.cat([reached, total[-span:]])
        carry = torch.cat([carry[:-span] * carry[span:], torch.zeros_like(carry[-span:])])
        span *= 2
    return total


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """One minus the share of the targets' variance left in the residual, a scalar.

    1 is perfect, 0 no better than the mean; 0 as well where the targets do not vary.
    """
    variance = target.var(correction=0)
    residual = (target - prediction).var(correction=0)
    return torch.where(variance > 0, 1 - residual / variance.clamp(min=1e-12), variance * 0)
