"""Our Adam against PyTorch's, where numbers become too small to matter."""

import numpy as np
import torch

from coach_rl.functional.adam import adam_step, next_powers, root


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
