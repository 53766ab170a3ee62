"""Losses of PPO (Schulman et al. 2017, arXiv:1707.06347)."""

from collections.abc import Callable

import torch
from torch import Tensor

Metrics = dict[str, Tensor]
Mean = Callable[[Tensor], Tensor]
"""A function that returns the mean of values [B] as a scalar."""

ROUNDING = 1e-6
"""Relative spread up to which float32 numbers count as equal: the mean of equal ones is rounded."""


def clipped_surrogate(
    log_prob: Tensor,
    old_log_prob: Tensor,
    advantage: Tensor,
    clip: Tensor,
    mean: Mean = torch.mean,
) -> tuple[Tensor, Metrics]:
    """The clipped objective, equation 7, as a loss to be minimised.

    Args:
        log_prob: Log-probability of the actions under the current policy, [B].
        old_log_prob: The same under the policy that chose them, [B].
        advantage: [B].
        clip: epsilon, a scalar tensor; the ratio gains nothing outside [1 - clip, 1 + clip].
        mean: Mean of values [B] over the samples that count.

    Returns:
        The loss (a scalar) and the metrics `approx_kl` (Schulman's low-variance estimate
        mean(r - 1 - log r) of KL(old || new)) and `clip_fraction`.
    """
    log_ratio = log_prob - old_log_prob
    ratio = log_ratio.exp()
    clipped = torch.clamp(ratio, 1 - clip, 1 + clip)
    loss = -mean(torch.minimum(ratio * advantage, clipped * advantage))
    outside = ((ratio - 1).abs() > clip).to(ratio.dtype)
    metrics = {
        "approx_kl": mean(ratio - 1 - log_ratio).detach(),
        "clip_fraction": mean(outside).detach(),
    }
    return loss, metrics


def value_loss(
    value: Tensor,
    old_value: Tensor,
    target: Tensor,
    clip: float | None,
    mean: Mean = torch.mean,
) -> Tensor:
    """Half the mean squared error of the values, a scalar.

    Args:
        value: Current prediction, [B].
        old_value: Prediction before this round of updates, [B].
        target: [B].
        clip: Where given, a prediction counts no better than one that stayed within `clip` of
            `old_value` (OpenAI baselines' PPO2; not in the paper).
        mean: Mean of values [B] over the samples that count.
    """
    error = (value - target) ** 2
    if clip is not None:
        stayed = old_value + (value - old_value).clamp(-clip, clip)
        error = torch.maximum(error, (stayed - target) ** 2)
    return 0.5 * mean(error)


def normalised(
    advantage: Tensor,
    mean: Mean = torch.mean,
    valid: Tensor | None = None,
) -> Tensor:
    """Advantages with mean 0 and standard deviation 1; 0 where they differ by rounding alone.

    Args:
        advantage: [B].
        mean: Mean of values over those that count.
        valid: Those that count, bool; None: all.
    """
    middle = mean(advantage)
    std = mean((advantage - middle).pow(2)).sqrt()
    least = advantage if valid is None else advantage.masked_fill(~valid, torch.inf)
    greatest = advantage if valid is None else advantage.masked_fill(~valid, -torch.inf)
    is_constant = (std <= ROUNDING * middle.abs()) | (greatest.amax() == least.amin())
    return ((advantage - middle) / (std + 1e-8)).masked_fill(is_constant, 0.0)
