import math

import pytest
import torch
from torch.distributions import Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from coach_rl.functional.squashed_gaussian import squashed_sample


def test_it_equals_torch_distributions():
    rng = torch.Generator().manual_seed(0)
    mean, log_std, noise = (
        0.6 * torch.randn(64, 3, generator=rng, dtype=torch.float64) for _ in "abc"
    )
    action, log_prob = squashed_sample(mean, log_std, noise)
    reference = TransformedDistribution(Normal(mean, log_std.exp()), [TanhTransform()])
    torch.testing.assert_close(action, torch.tanh(mean + log_std.exp() * noise))
    expected = reference.log_prob(action).sum(dim=-1)
    torch.testing.assert_close(log_prob, expected, rtol=1e-6, atol=1e-4)


def test_one_number_by_hand():
    # u = 0: density of the normal 1/sqrt(2 pi), slope of tanh 1.
    action, log_prob = squashed_sample(*(torch.zeros(1, 1) for _ in range(3)))
    assert action.item() == 0.0
    assert log_prob.item() == pytest.approx(-0.5 * math.log(2 * math.pi))


def test_far_out_it_stays_finite_and_right():
    # u = 30: log(1 - tanh^2) = log 4 - 60 to rounding; naive formulas give -inf.
    action, log_prob = squashed_sample(torch.tensor([[30.0]]), torch.zeros(1, 1), torch.zeros(1, 1))
    assert action.item() == 1.0
    expected = -0.5 * math.log(2 * math.pi) - (math.log(4) - 60)
    assert log_prob.item() == pytest.approx(expected, rel=1e-5)
