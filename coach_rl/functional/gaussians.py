"""Normal distributions of actions, as policies of Boxes have them."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import softplus

_LOG_SQRT_TWO_PI = 0.5 * math.log(2 * math.pi)


@dataclass(frozen=True)
class DiagonalGaussian:
    """Independent normals: parameters are means and log standard deviations, [B, 2A]."""

    size: int
    """A."""

    @property
    def parameter_size(self) -> int:
        """A means and A log standard deviations."""
        return 2 * self.size

    @property
    def log_std_size(self) -> int:
        return self.size

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Sum of the elements' log-densities, [B]."""
        mean, log_std = parameters.chunk(2, dim=-1)
        standardised = (action - mean) * (-log_std).exp()
        return log_normal(standardised, log_std).sum(dim=-1)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Sum of the elements' entropies, [B]."""
        return normal_entropy(parameters[..., self.size :]).sum(dim=-1)

    def kl(self, old: Tensor, new: Tensor) -> Tensor:
        return normal_kl(*old.chunk(2, dim=-1), *new.chunk(2, dim=-1)).sum(dim=-1)


def squashed_sample(mean: Tensor, log_std: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Actions in (-1, 1), reparametrised, and their log-probabilities: a normal squashed by tanh.

    The policy of soft actor-critic (Haarnoja et al. 2018, appendix C). The density of tanh(u) is
    that of u divided by 1 - tanh(u)^2 (equation 21), whose logarithm is taken as
    2 (log 2 - u - softplus(-2u)), which does not underflow.

    Args:
        mean: [B, A].
        log_std: [B, A].
        noise: Standard normal numbers, [B, A].

    Returns:
        Actions [B, A] and log-probabilities [B].
    """
    unsquashed = mean + log_std.exp() * noise
    log_slope = 2 * (math.log(2) - unsquashed - softplus(-2 * unsquashed))
    return torch.tanh(unsquashed), (log_normal(noise, log_std) - log_slope).sum(dim=-1)


def log_normal(standardised: Tensor, log_std: Tensor) -> Tensor:
    """Log-density of normals at `mean + std * standardised`, element by element."""
    return -0.5 * standardised**2 - log_std - _LOG_SQRT_TWO_PI


def normal_entropy(log_std: Tensor) -> Tensor:
    """Entropy of normals, log std + (1 + log 2 pi) / 2, element by element."""
    return log_std + 0.5 + _LOG_SQRT_TWO_PI


def normal_kl(
    old_mean: Tensor, old_log_std: Tensor, new_mean: Tensor, new_log_std: Tensor
) -> Tensor:
    """KL(old || new) of normals, element by element."""
    ratio = (2 * (old_log_std - new_log_std)).exp()
    shift = ((old_mean - new_mean) * (-new_log_std).exp()) ** 2
    return new_log_std - old_log_std + 0.5 * (ratio + shift - 1)
