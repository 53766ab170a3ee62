"""Adam's step and the clipping of gradients, on flat tensors."""

import torch
from torch import Tensor
from torch.nn.functional import threshold

# Decaying numbers too small to matter become 0. Left alone they end as denormal numbers, on which
# a processor is some hundred times slower, and stay there: the powers of the decays, and the
# moments of weights behind a unit that has died, which were two thirds of a policy's in a long run.
SMALLEST_POWER = 1e-30
SMALLEST_FIRST_MOMENT = 1e-30  # a learning rate can be multiplied with it
SMALLEST_SECOND_MOMENT = torch.finfo(torch.float32).tiny  # its root is nothing beside epsilon


def clipped_gradient(gradient: Tensor, max_norm: float) -> tuple[Tensor, Tensor]:
    """Scale a flat gradient down to `max_norm`.

    Args:
        gradient: [P].
        max_norm: Largest Euclidean norm.

    Returns:
        The gradient [P] and its norm before clipping (a scalar).
    """
    norm = torch.linalg.vector_norm(gradient)
    return gradient * (max_norm / (norm + 1e-6)).clamp(max=1.0), norm


def next_powers(powers: Tensor, betas: Tensor) -> Tensor:
    """Both decays to the power of the next step's number, [2]; before the first step they are 1."""
    return threshold(powers * betas, SMALLEST_POWER, 0.0)


def root(second: Tensor) -> Tensor:
    """The roots of second moments [P], of 0 as of the smallest normal number.

    MKL takes fifteen times as long for the root of 0, which is the moment of most weights behind
    rectified units; beside an epsilon of 1e-10 or more there is no difference.
    """
    return second.clamp(min=SMALLEST_SECOND_MOMENT).sqrt_()


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
) -> None:
    """Make one step of Adam (Kingma and Ba 2015, algorithm 1), in place.

    Args:
        parameters: [P], written.
        gradient: [P].
        first: First moment, [P], written.
        second: Second moment, [P], written.
        powers: `next_powers` of the step before, [2]. Kept by multiplication they cost nothing;
            compiled, `beta ** step` is computed again for every parameter.
        learning_rate: A scalar tensor.
        betas: Decay of the moments.
        epsilon: Added to the root of the bias-corrected second moment, as in PyTorch.
    """
    # New memory for a million numbers costs several times the arithmetic, so little is taken.
    first.lerp_(gradient, 1 - betas[0])
    torch.ops.aten.hardshrink.out(first, SMALLEST_FIRST_MOMENT, out=first)
    second.mul_(betas[1]).add_(((1 - betas[1]) * gradient).mul_(gradient))
    threshold(second, SMALLEST_SECOND_MOMENT, 0.0, inplace=True)
    # The bias corrections are scalars, so a parameter takes one root and one division.
    corrected_rate = learning_rate / (1 - powers[0])
    denominator = root(second).mul_((1 - powers[1]).rsqrt()).add_(epsilon)
    parameters.sub_((corrected_rate * first).div_(denominator))
