import math

import pytest
import torch

from coach_rl.extensions.distributional.losses import categorical_loss, projected, quantile_loss


def normal(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_quantile_loss_by_hand():
    # Midpoints 1/4 and 3/4. Errors (target - quantile): first quantile 0: 3 and -0.5, second 2: 1
    # and -2.5. Huber with 1: 2.5, 0.125, 0.5, 2.0. Asymmetries: 1/4, 3/4; 3/4, 1/4.
    # First (0.625 + 0.09375) / 2 = 0.359375, second (0.375 + 0.5) / 2 = 0.4375.
    loss = quantile_loss(torch.tensor([[0.0, 2.0]]), torch.tensor([[3.0, -0.5]]))
    assert loss.tolist() == [pytest.approx(0.796875)]


def test_quantile_loss_without_huber_is_linear():
    # The errors above: (3/4 + 3/8) / 2 + (3/4 + 2.5/4) / 2 = 0.5625 + 0.6875.
    loss = quantile_loss(torch.tensor([[0.0, 2.0]]), torch.tensor([[3.0, -0.5]]), huber=None)
    assert loss.tolist() == [pytest.approx(1.25)]


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


def test_quantile_loss_small_huber_approaches_plain():
    quantiles, targets = normal(3, 4), normal(3, 4, seed=1)
    limit = quantile_loss(quantiles, targets, huber=1e-4)
    torch.testing.assert_close(quantile_loss(quantiles, targets, None), limit, rtol=0, atol=1e-3)


def test_quantile_loss_minimum_is_target_quantiles():
    samples = normal(1, 400) ** 2
    quantiles = torch.zeros(1, 5, requires_grad=True)
    for _ in range(400):
        (gradient,) = torch.autograd.grad(quantile_loss(quantiles, samples, 0.01).sum(), quantiles)
        quantiles = (quantiles - 0.2 * gradient).detach().requires_grad_()
    expected = torch.quantile(samples[0], torch.tensor([0.1, 0.3, 0.5, 0.7, 0.9]))
    torch.testing.assert_close(quantiles[0].detach(), expected, rtol=0, atol=0.05)


def test_projected_by_hand():
    # Support -1, 0, 1. A mass at 0.25 gives 3/4 to 0 and 1/4 to 1; one at 5 all to 1, one on an
    # atom all to it.
    support = torch.tensor([-1.0, 0.0, 1.0])
    found = projected(torch.tensor([[0.4, 0.5, 0.1]]), torch.tensor([[0.25, 5.0, -1.0]]), support)
    torch.testing.assert_close(found, torch.tensor([[0.1, 0.3, 0.6]]))


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


def test_projected_equals_plain_loop():
    low, high, atoms = -2.0, 3.0, 11
    probabilities, positions = normal(8, 6).softmax(dim=1), 3 * normal(8, 6, seed=1)
    expected = [
        slow_projection(mass, place, low, high, atoms)
        for mass, place in zip(probabilities.tolist(), positions.tolist(), strict=True)
    ]
    found = projected(probabilities, positions, torch.linspace(low, high, atoms))
    torch.testing.assert_close(found, torch.tensor(expected), rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(found.sum(dim=1), torch.ones(8))


def test_projected_same_support_is_identity():
    support, probabilities = torch.linspace(-10, 10, 51), normal(3, 51).softmax(dim=1)
    found = projected(probabilities, support.expand(3, -1), support)
    torch.testing.assert_close(found, probabilities, rtol=1e-4, atol=1e-6)


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


def test_categorical_loss_by_hand():
    # Predicted 1/4, 3/4; target 1/2, 1/2: cross-entropy (log 4 + log 4/3) / 2, entropy log 2.
    logits = torch.tensor([[0.0, math.log(3.0)]])
    loss, divergence = categorical_loss(logits, torch.tensor([[0.5, 0.5]]))
    assert loss.item() == pytest.approx((math.log(4) + math.log(4 / 3)) / 2)
    assert divergence.item() == pytest.approx(loss.item() - math.log(2), rel=1e-5)


def test_categorical_loss_equal_distributions_is_zero():
    logits = torch.tensor([[0.0, -200.0, 1.0]])
    target = logits.softmax(dim=1)
    assert target[0, 1] == 0
    _, divergence = categorical_loss(logits, target)
    assert divergence.item() == pytest.approx(0.0, abs=1e-6)
