"""Our Adam against PyTorch's."""

import numpy as np
import pytest
import torch

from coach_rl.functional.adam import adam_step, clipped_gradient, next_powers, root


def test_adam_step_equals_torch_over_ten_steps():
    rng = torch.Generator().manual_seed(0)
    start = torch.randn(7, generator=rng, dtype=torch.float64)
    gradients = [torch.randn(7, generator=rng, dtype=torch.float64) for _ in range(10)]
    theirs = start.clone().requires_grad_()
    optimizer = torch.optim.Adam([theirs], lr=0.01, betas=(0.8, 0.99), eps=1e-5)
    ours, first, second = start.clone(), torch.zeros_like(start), torch.zeros_like(start)
    for step, gradient in enumerate(gradients, start=1):
        theirs.grad = gradient.clone()
        optimizer.step()
        adam_step(
            ours,
            gradient,
            first,
            second,
            torch.tensor((0.8**step, 0.99**step), dtype=torch.float64),
            torch.tensor(0.01, dtype=torch.float64),
            betas=(0.8, 0.99),
            epsilon=1e-5,
        )
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=1e-8)


def test_adam_step_moments_never_become_denormal():
    start, gradient = torch.tensor([0.5, -0.3]), torch.tensor([2.0, -1e-8])
    theirs = start.clone().requires_grad_()
    betas, betas_tensor = (0.8, 0.9), torch.tensor([0.8, 0.9])
    optimizer = torch.optim.Adam([theirs], lr=0.01, betas=betas)
    ours, first, second = start.clone(), torch.zeros(2), torch.zeros(2)
    powers = torch.ones(2)
    for step in range(1_200):
        theirs.grad = gradient if step < 10 else torch.zeros(2)
        optimizer.step()
        powers = next_powers(powers, betas_tensor)
        adam_step(
            ours,
            theirs.grad,
            first,
            second,
            powers,
            torch.tensor(0.01),
            betas=betas,
            epsilon=1e-8,
        )
        for values in (first, second, powers):
            size = values.abs()
            assert ((size == 0) | (size >= torch.finfo(torch.float32).tiny)).all()
    assert not first.any()
    assert not second.any()
    assert not powers.any()
    torch.testing.assert_close(ours, theirs.detach(), rtol=1e-6, atol=0)


def test_the_root_of_zero_is_nothing_beside_a_small_epsilon():
    second = torch.tensor([0.0, 4.0])
    assert (root(second) + 1e-11).tolist() == [np.float32(1e-11), 2.0]
    assert second.tolist() == [0.0, 4.0]


def test_clipped_gradient_has_largest_norm():
    gradient, norm = clipped_gradient(torch.tensor([3.0, 4.0]), 1.0)
    assert norm.item() == 5.0
    assert gradient.tolist() == pytest.approx([0.6, 0.8], abs=1e-6)


def test_clipped_gradient_small_is_unchanged():
    gradient, _ = clipped_gradient(torch.tensor([3.0, 4.0]), 10.0)
    assert gradient.tolist() == [3.0, 4.0]
