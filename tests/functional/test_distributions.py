"""Distributions against torch.distributions, which we do not use ourselves."""

import math

import pytest
import torch
from torch import distributions as reference

from coach_rl.functional.distributions import Categorical
from coach_rl.functional.gaussians import DiagonalGaussian, squashed_sample
from coach_rl.functional.multi_categorical import MultiCategorical

SIZES = (3, 2)


def gaussian(parameters):
    mean, log_std = parameters.chunk(2, dim=-1)
    return reference.Independent(reference.Normal(mean, log_std.exp()), 1)


def parameters(size, seed=0):
    return torch.randn(5, size, generator=torch.Generator().manual_seed(seed))


def test_diagonal_gaussian_equals_torch():
    ours, old, new = DiagonalGaussian(3), parameters(6), parameters(6, 1)
    action = parameters(3, 2)
    torch.testing.assert_close(ours.log_prob(old, action), gaussian(old).log_prob(action))
    torch.testing.assert_close(ours.entropy(old), gaussian(old).entropy())
    expected = reference.kl_divergence(gaussian(old), gaussian(new))
    torch.testing.assert_close(ours.kl(old, new), expected)


def test_categorical_equals_torch():
    ours, old, new = Categorical(4), parameters(4), parameters(4, 1)
    action = torch.tensor([0, 3, 1, 2, 2])
    torch.testing.assert_close(
        ours.log_prob(old, action), reference.Categorical(logits=old).log_prob(action)
    )
    torch.testing.assert_close(ours.entropy(old), reference.Categorical(logits=old).entropy())
    expected = reference.kl_divergence(
        reference.Categorical(logits=old), reference.Categorical(logits=new)
    )
    torch.testing.assert_close(ours.kl(old, new), expected)


def test_multi_categorical_sums_its_choices():
    ours, old, new = MultiCategorical(SIZES), parameters(5), parameters(5, 1)
    action = torch.tensor([[0, 1], [2, 0], [1, 1], [2, 1], [0, 0]])
    first, second = Categorical(3), Categorical(2)
    expected = first.log_prob(old[:, :3], action[:, 0]) + second.log_prob(old[:, 3:], action[:, 1])
    torch.testing.assert_close(ours.log_prob(old, action), expected)
    expected = first.entropy(old[:, :3]) + second.entropy(old[:, 3:])
    torch.testing.assert_close(ours.entropy(old), expected)
    expected = first.kl(old[:, :3], new[:, :3]) + second.kl(old[:, 3:], new[:, 3:])
    torch.testing.assert_close(ours.kl(old, new), expected)


@pytest.mark.parametrize(
    ("distribution", "size"),
    [(DiagonalGaussian(2), 4), (Categorical(4), 4), (MultiCategorical(SIZES), 5)],
)
def test_distribution_parameter_sizes_agree(distribution, size):
    given = parameters(distribution.parameter_size)
    assert distribution.parameter_size == size
    torch.testing.assert_close(distribution.kl(given, given), torch.zeros(5))


def test_squashed_sample_equals_torch():
    rng = torch.Generator().manual_seed(0)
    mean, log_std, noise = (
        0.6 * torch.randn(64, 3, generator=rng, dtype=torch.float64) for _ in "abc"
    )
    action, log_prob = squashed_sample(mean, log_std, noise)
    squashed = reference.TransformedDistribution(
        reference.Normal(mean, log_std.exp()), [reference.transforms.TanhTransform()]
    )
    torch.testing.assert_close(action, torch.tanh(mean + log_std.exp() * noise))
    expected = squashed.log_prob(action).sum(dim=-1)
    torch.testing.assert_close(log_prob, expected, rtol=1e-6, atol=1e-4)


def test_squashed_sample_by_hand():
    # u = 0: density of the normal 1/sqrt(2 pi), slope of tanh 1.
    action, log_prob = squashed_sample(*(torch.zeros(1, 1) for _ in range(3)))
    assert action.item() == 0.0
    assert log_prob.item() == pytest.approx(-0.5 * math.log(2 * math.pi))


def test_squashed_sample_extreme_log_prob_is_finite():
    # u = 30: log(1 - tanh^2) = log 4 - 60 to rounding; naive formulas give -inf.
    action, log_prob = squashed_sample(torch.tensor([[30.0]]), torch.zeros(1, 1), torch.zeros(1, 1))
    assert action.item() == 1.0
    expected = -0.5 * math.log(2 * math.pi) - (math.log(4) - 60)
    assert log_prob.item() == pytest.approx(expected, rel=1e-5)
