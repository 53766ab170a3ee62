"""A normal squashed by tanh: the policy of soft actor-critic (Haarnoja et al. 2018, appendix C)."""

import math

import torch
from torch import Tensor
from torch.nn.functional import softplus

_LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


def squashed_sample(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Reparametrised actions in (-1, 1) and their log-probabilities.

    The density of tanh(u) is that of u divided by 1 - tanh(u)^2 (equation 21), whose logarithm is
    taken as 2 (log 2 - u - softplus(-2u)), which does not underflow.

    Args:
        mean: [B, A].
        log_std: [B, A].
        noise: Standard normal numbers, [B, A].

    Returns:
        Actions [B, A] and log-probabilities [B].
    """
    unsquashed = mean + log_std.exp() * noise
    log_normal = -0.5 * noise**2 - log_std - _LOG_SQRT_TWO_PI
    log_slope = 2 * (math.log(2) - unsquashed - softplus(-2 * unsquashed))
    return torch.tanh(unsquashed), (log_normal - log_slope).sum(dim=-1)
