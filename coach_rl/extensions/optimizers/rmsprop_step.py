"""RMSprop's step, on flat tensors."""

from torch import Tensor
from torch.nn.functional import hardshrink, threshold

from coach_rl.functional.adam import SMALLEST_FIRST_MOMENT, SMALLEST_SECOND_MOMENT, root


def rmsprop_step(
    parameters: Tensor,
    gradient: Tensor,
    second: Tensor,
    first: Tensor | None,
    velocity: Tensor | None,
    learning_rate: Tensor,
    *,
    alpha: float,
    epsilon: float,
    momentum: float,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
    """One step of RMSprop (Tieleman and Hinton 2012; centered: Graves 2013, arXiv:1308.0850).

    Moments that are too small to matter become 0, as in Adam's step.

    Args:
        parameters: [P].
        gradient: [P].
        second: Mean square of the gradients before this step, [P].
        first: Their mean, [P], which makes the step centered; None: it is not.
        velocity: Accumulated steps, [P]; None where there is no momentum.
        learning_rate: A scalar tensor.
        alpha: Decay of the mean square and of the mean.
        epsilon: Added to the root, as in PyTorch.
        momentum: Decay of the velocity.

    Returns:
        New parameters, mean square, mean and velocity.
    """
    second = alpha * second + (1 - alpha) * gradient * gradient
    second = threshold(second, SMALLEST_SECOND_MOMENT, 0.0)
    variance = second
    if first is not None:
        first = hardshrink(first.lerp(gradient, 1 - alpha), SMALLEST_FIRST_MOMENT)
        variance = second - first * first  # rounding may make it negative, which is as 0
    step = gradient / (root(variance) + epsilon)
    if velocity is not None:
        step = velocity = hardshrink(momentum * velocity + step, SMALLEST_FIRST_MOMENT)
    return parameters - learning_rate * step, second, first, velocity
