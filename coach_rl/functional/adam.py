"""Adam's step and the clipping of gradients, on flat tensors."""

import torch
from torch import Tensor


def clipped_gradient(gradient: Tensor, max_norm: float | None) -> tuple[Tensor, Tensor]:
    """Scale a flat gradient down to `max_norm`.

    Args:
        gradient: [P].
        max_norm: Largest Euclidean norm; None leaves the gradient as it is.

    Returns:
        The gradient [P] and its norm before clipping (a scalar).
    """
    norm = torch.linalg.vector_norm(gradient)
    if max_norm is None:
        return gradient, norm
    return gradient * (max_norm / (norm + 1e-6)).clamp(max=1.0), norm


def adam_step(
    parameters: Tensor,
    gradient: Tensor,
    first: Tensor,
    second: Tensor,
    powers: Tensor,
    learning_rate: Tensor,
    *,
    betas: tuple[float, float],
    epsilon: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """One step of Adam (Kingma and Ba 2015, algorithm 1).

    Args:
        parameters: [P].
        gradient: [P].
        first: First moment before this step, [P].
        second: Second moment before this step, [P].
        powers: Both decays to the power of this step's number (from 1), [2]. Powers kept by
            multiplication cost nothing; compiled, `beta ** step` is taken anew for every parameter.
        learning_rate: A scalar tensor.
        betas: Decay of the moments.
        epsilon: Added to the root of the bias-corrected second moment, as in PyTorch.

    Returns:
        New parameters, first and second moment.
    """
    first = first.lerp(gradient, 1 - betas[0])
    second = betas[1] * second + (1 - betas[1]) * gradient * gradient
    # The bias corrections are scalars, so a parameter takes one root and one division.
    step_size = learning_rate / (1 - powers[0])
    denominator = second.sqrt() * (1 - powers[1]).rsqrt() + epsilon
    return parameters - step_size * first / denominator, first, second
