"""Distributions against torch.distributions, which we do not use ourselves."""

import math

import pytest
import torch
from torch import distributions as reference

from coach_rl.functional.distributions import Categorical
from coach_rl.functional.gaussians import DiagonalGaussian, squashed_sample
from coach_rl.functional.multi_categorical import MultiCategorical

SIZES = (3, 2)


def parameters(size, seed=0):
    return torch.randn(5, size, generator=torch.Generator().manual_seed(seed))


def gaussian(parameters):
    mean, log_std = parameters.chunk(2, dim=-1)
    return reference.Independent(reference.Normal(mean, log_std.exp()), 1)


def categorical(parameters):
    return reference.Categorical(logits=parameters)


@pytest.mark.parametrize(
    ("distribution", "of_torch"), [(DiagonalGaussian(2), gaussian), (Categorical(4), categorical)]
)
def test_divergence_equals_torch(distribution, of_torch):
    """Of distributions that are far apart: near ones have nearly the same in both directions."""
    old, new = parameters(4), parameters(4, 1)
    expected = reference.kl_divergence(of_torch(old), of_torch(new))
    torch.testing.assert_close(distribution.kl(old, new), expected)


@pytest.mark.parametrize(
    ("distribution", "size"),
    [(DiagonalGaussian(2), 4), (Categorical(4), 4), (MultiCategorical(SIZES), 5)],
)
def test_distribution_parameter_sizes_agree(distribution, size):
    given = parameters(distribution.parameter_size)
    assert distribution.parameter_size == size
    torch.testing.assert_close(distribution.kl(given, given), torch.zeros(5))


def test_squashed_sample_extreme_log_prob_is_finite():
    # u = 30: log(1 - tanh^2) = log 4 - 60 to rounding; naive formulas give -inf.
    action, log_prob = squashed_sample(torch.tensor([[30.0]]), torch.zeros(1, 1), torch.zeros(1, 1))
    assert action.item() == 1.0
    expected = -0.5 * math.log(2 * math.pi) - (math.log(4) - 60)
    assert log_prob.item() == pytest.approx(expected, rel=1e-5)
