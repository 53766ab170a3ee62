"""Generalised advantage estimation."""

import torch
from torch import Tensor

from coach_rl.functional.policy_gradient import ROUNDING


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


def segment_ends(*, index: Tensor, valid: Tensor, ended: Tensor, follows: Tensor) -> Tensor:
    """The transitions after which their row's next one does not continue the same episode.

    There the value of what follows is that of the transition's own next observation, not of the
    next one stored: an episode has ended, something was left out in between, a goal has moved, or
    the memory ends.

    Args:
        index: Memory position of each row's transitions in order, [T, N]; any where padded.
        valid: False where a row is padded, [T, N] bool.
        ended: Whether an episode ended, by memory position, [C] bool.
        follows: Whether it continues its row's transition before, by memory position, [C] bool.

    Returns:
        [T, N] bool; False where padded.
    """
    continued = (
        valid[1:] & follows[index[1:]] & ~ended[index[:-1]]
    )  # [T - 1, N]: t continues to t + 1
    return valid & ~torch.cat([continued, torch.zeros_like(valid[:1])])  # the last one never does


def advantages_of_rows(
    *,
    index: Tensor,
    valid: Tensor,
    ends: Tensor,
    reward: Tensor,
    value: Tensor,
    value_after_ends: Tensor,
    terminated: Tensor,
    discount: Tensor,
    trace: float,
) -> Tensor:
    """Advantages by `gae` of transitions kept in order, from rows of any length.

    C is the memory's capacity, N the number of rows in it, T the longest row, K the number of
    segment ends.

    Args:
        index: Memory position of each row's transitions in order, [T, N]; any where padded.
        valid: False where a row is padded, [T, N] bool.
        ends: `segment_ends`, [T, N] bool.
        reward: [C].
        value: Value of the observation acted on, [C].
        value_after_ends: Value of the next observation of the transitions `index[ends]`, [K].
        terminated: [C] bool.
        discount: Discount of each transition, [T, N].
        trace: lambda, in [0, 1].

    Returns:
        Advantages [C]; 0 at positions that `index` does not show.
    """
    following = torch.cat([value[index[1:]], torch.zeros_like(value[index[:1]])])  # V(s[t + 1])
    advantage = gae(
        reward=reward[index],
        value=value[index],
        next_value=following.masked_scatter(ends, value_after_ends),  # [T, N]
        terminated=terminated[index],
        ended=ends | ~valid,
        discount=discount,
        trace=trace,
    )
    return torch.zeros_like(value).index_put((index[valid],), advantage[valid])  # [T, N] to [C]


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
    total = term
    span = 1
    while span < len(term):
        reached = total[:-span] + carry[:-span] * total[span:]
        total = torch.cat([reached, total[-span:]])
        carry = torch.cat([carry[:-span] * carry[span:], torch.zeros_like(carry[-span:])])
        span *= 2
    return total


def explained_variance(prediction: Tensor, target: Tensor) -> Tensor:
    """One minus the share of the targets' variance left in the residual, a scalar.

    1 is perfect, 0 no better than the mean; 0 as well where the targets differ by rounding alone.
    """
    variance = target.var(correction=0)
    residual = (target - prediction).var(correction=0)
    varies = variance.sqrt() > ROUNDING * target.mean().abs()
    return torch.where(varies, 1 - residual / variance.clamp(min=1e-12), variance * 0)
