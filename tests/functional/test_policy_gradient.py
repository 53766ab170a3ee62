"""PPO's losses against numbers worked out by hand."""

import math

import pytest
import torch

from coach_rl.functional.kl_penalty import adapted_kl_coefficient, penalised_surrogate
from coach_rl.functional.policy_gradient import clipped_surrogate, normalised, value_loss


def test_clipped_surrogate_by_hand():
    # Ratios 1.5, 0.5, 1.1 with clip 0.2 and advantages 2, 2, -1:
    # min(1.5*2, 1.2*2) = 2.4; min(0.5*2, 0.8*2) = 1.0; min(-1.1, -1.1) = -1.1; mean 2.3 / 3.
    old = torch.zeros(3)
    new = torch.tensor([1.5, 0.5, 1.1]).log()
    loss, metrics = clipped_surrogate(new, old, torch.tensor([2.0, 2.0, -1.0]), torch.tensor(0.2))
    assert loss.item() == pytest.approx(-2.3 / 3)
    assert metrics["clip_fraction"].item() == pytest.approx(2 / 3)
    expected = (0.5 - math.log(1.5) + (-0.5) - math.log(0.5) + 0.1 - math.log(1.1)) / 3
    assert metrics["approx_kl"].item() == pytest.approx(expected)


def test_clipped_surrogate_clipped_gain_has_no_gradient():
    new = torch.tensor([1.5, 1.5]).log().requires_grad_()
    loss, _ = clipped_surrogate(new, torch.zeros(2), torch.tensor([1.0, -1.0]), torch.tensor(0.2))
    loss.backward()
    # The second advantage is negative: its ratio is too high and must still be pulled back.
    assert new.grad.tolist() == pytest.approx([0.0, 1.5 / 2])


def test_penalised_surrogate_by_hand():
    # ratio 2, advantage 3, KL 0.5, coefficient 4: -(2*3) + 4*0.5 = -4
    loss, metrics = penalised_surrogate(
        torch.tensor([2.0]).log(),
        torch.zeros(1),
        torch.tensor([3.0]),
        torch.tensor([0.5]),
        torch.tensor(4.0),
    )
    assert loss.item() == pytest.approx(-4.0)
    assert metrics["approx_kl"].item() == 0.5


@pytest.mark.parametrize(
    ("divergence", "expected"), [(0.006, 0.5), (0.007, 1.0), (0.014, 1.0), (0.016, 2.0)]
)
def test_adapted_kl_coefficient_follows_rule(divergence, expected):
    assert adapted_kl_coefficient(1.0, divergence, 0.01) == expected


def test_value_loss_by_hand():
    # errors 1 and 3: half of (1 + 9) / 2 = 2.5
    value, target = torch.tensor([1.0, 4.0]), torch.tensor([0.0, 1.0])
    assert value_loss(value, value, target, None).item() == 2.5
    # Clipped to within 0.5 of an old value of 0 both predictions are 0.5: errors 0.25 and 0.25.
    # The larger one counts: 1 and 9 stay.
    assert value_loss(value, torch.zeros(2), target, 0.5).item() == 2.5
    # Old value 9: the clipped predictions 8.5 are worse: (8.5**2 + 7.5**2) / 4
    assert value_loss(value, torch.full((2,), 9.0), target, 0.5).item() == (8.5**2 + 7.5**2) / 4


def test_normalised_has_mean_zero_std_one():
    advantage = normalised(torch.tensor([1.0, 2.0, 6.0]))
    assert advantage.mean().item() == pytest.approx(0.0, abs=1e-6)
    assert advantage.std(correction=0).item() == pytest.approx(1.0)
    assert normalised(torch.full((4,), 7.0)).tolist() == [0.0] * 4


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
