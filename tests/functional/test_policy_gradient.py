"""What plain PPO (`tests/agents`) does not show: bounds of the KL rule, and equal advantages."""

import math

import pytest
import torch

from coach_rl.functional.kl_penalty import adapted_kl_coefficient
from coach_rl.functional.policy_gradient import normalised


@pytest.mark.parametrize(
    ("divergence", "expected"), [(0.006, 0.5), (0.007, 1.0), (0.014, 1.0), (0.016, 2.0)]
)
def test_adapted_kl_coefficient_follows_rule(divergence, expected):
    assert adapted_kl_coefficient(1.0, divergence, 0.01) == expected


@pytest.mark.parametrize("value", [0.1, 1000.1, -99.9, 1e-20, 0.0])
@pytest.mark.parametrize("count", [1, 3, 64, 100, 70_000])
def test_normalised_constants_are_zero(count, value):
    """The mean of equal float32 numbers is rounded, and their spread about it isn't 0."""
    constant = torch.full((count,), value)
    nearly = torch.nextafter(constant, constant + 1)
    nearly[0] = value
    for advantage in (constant, nearly) if abs(value) > 1e-3 else (constant,):
        assert normalised(advantage).abs().max() == 0


def test_normalised_real_spread_keeps_every_bit():
    advantage = torch.randn(100, generator=torch.Generator().manual_seed(0)) * 1e-3 + 5
    centred = advantage - advantage.mean()
    expected = centred / (centred.pow(2).mean().sqrt() + 1e-8)
    assert torch.equal(normalised(advantage), expected)
    assert normalised(torch.tensor([1.0, math.nan])).isnan().all()
