import math

import pytest
import torch

from coach_rl.extensions.distributional.losses import categorical_loss, projected, quantile_loss


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def slow_quantile_loss(quantiles, targets, huber):
    count, total = len(quantiles), 0.0
    for number, quantile in enumerate(quantiles):
        midpoint = (2 * number + 1) / (2 * count)
        for target in targets:
            error = target - quantile
            small = 0.5 * error**2 if abs(error) <= huber else huber * (abs(error) - 0.5 * huber)
            total += abs(midpoint - (error < 0)) * small / huber / len(targets)
    return total


@pytest.mark.parametrize("huber", [0.3, 1.0, 2.0])
def test_quantile_loss_equals_plain_loop(huber):
    quantiles, targets = normal(6, 5), 2 * normal(6, 7, seed=1)
    expected = [
        slow_quantile_loss(mine, other, huber)
        for mine, other in zip(quantiles.tolist(), targets.tolist(), strict=True)
    ]
    found = quantile_loss(quantiles, targets, huber)
    torch.testing.assert_close(found, torch.tensor(expected))


def slow_projection(probabilities, positions, low, high, atoms):
    """Algorithm 1 of Bellemare et al. 2017, mass by mass."""
    gap, found = (high - low) / (atoms - 1), [0.0] * atoms
    for mass, position in zip(probabilities, positions, strict=True):
        place = (min(max(position, low), high) - low) / gap
        below, above = math.floor(place), math.ceil(place)
        if below == above:
            found[below] += mass
        else:
            found[below] += mass * (above - place)
            found[above] += mass * (place - below)
    return found


@pytest.mark.parametrize(
    ("low", "high", "atoms"),
    [(-10.0, 10.0, 51), (1e4, 1e4 + 10, 51), (1e6 - 1, 1e6 + 1, 11), (-3e7, -3e7 + 100, 26)],
)
def test_projected_far_support_keeps_mass(low, high, atoms):
    probabilities, support = normal(8, 6).softmax(dim=1), torch.linspace(low, high, atoms)
    positions = (low + high) / 2 + (high - low) * normal(8, 6, seed=1)
    expected = torch.tensor(
        [
            slow_projection(mass, place, float(support[0]), float(support[-1]), atoms)
            for mass, place in zip(probabilities.tolist(), positions.tolist(), strict=True)
        ]
    )
    found = projected(probabilities, positions, support)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(8), rtol=0, atol=1e-6)
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_categorical_loss_equal_distributions_is_zero():
    logits = torch.tensor([[0.0, -200.0, 1.0]])
    target = logits.softmax(dim=1)
    assert target[0, 1] == 0
    _, divergence = categorical_loss(logits, target)
    assert divergence.item() == pytest.approx(0.0, abs=1e-6)
