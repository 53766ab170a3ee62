"""The losses of adjacency, by hand and against numpy."""

import numpy as np
import pytest
import torch

from coach_rl.extensions.hiro.adjacency_losses import (
    adjacency_penalty,
    contrastive_loss,
    embedded_distance,
)


def test_embedded_distance_at_zero_has_finite_gradient():
    one = torch.tensor([[0.0, 0.0], [1.0, 2.0]], requires_grad=True)
    other = torch.tensor([[3.0, 4.0], [1.0, 2.0]])
    distance = embedded_distance(one, other)
    assert distance.tolist() == pytest.approx([5.0, 1e-6])
    (gradient,) = torch.autograd.grad(distance.sum(), one)
    assert torch.isfinite(gradient).all()
    assert gradient[0].tolist() == pytest.approx([-0.6, -0.8])


def test_contrastive_loss_equals_plain_loop():
    rng = np.random.default_rng(0)
    distance = rng.uniform(0, 3, 50).astype(np.float32)
    adjacent = rng.random(50) < 0.4
    slow = np.mean(
        [
            max(d - 0.9, 0.0) if near else max(1.4 - d, 0.0)
            for d, near in zip(distance, adjacent, strict=True)
        ]
    )
    loss = contrastive_loss(
        torch.from_numpy(distance), torch.from_numpy(adjacent), near=0.9, far=1.4
    )
    assert loss.item() == pytest.approx(slow, rel=1e-5)


def test_adjacency_penalty_is_mean_excess_over_margin():
    # 0.6 and 1.1 are within 1.1; 2.1 exceeds it by 1.
    assert adjacency_penalty(torch.tensor([0.6, 1.1, 2.1]), 1.1).item() == pytest.approx(1 / 3)
