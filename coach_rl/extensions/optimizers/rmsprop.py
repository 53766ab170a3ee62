"""RMSprop, with torch's names of its settings."""

import torch
from torch import Tensor
from torch.nn.functional import hardshrink, threshold

from coach_rl.architectures.gradient_step import Decay
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.extensions.optimizers.rmsprop_step import rmsprop_step
from coach_rl.functional.adam import SMALLEST_FIRST_MOMENT, SMALLEST_POWER

MEAN_DECAY = 0.9
"""Decay of the mean of the gradients that RMSprop keeps for inspection."""


@parameter_class
class RMSpropParameters(OptimizerParameters):
    """RMSprop with gradient clipping. Defaults: PyTorch's."""

    learning_rate: Positive[float] = 1e-2
    """Learning rate; an agent may multiply it by a schedule."""
    alpha: Decay = 0.99
    """Decay of the mean square of the gradients, and of their mean where it is centered."""
    epsilon: Positive[float] = 1e-8
    """Added to the root of the mean square."""
    momentum: Decay = 0.0
    """Decay of accumulated steps; 0: each step is that of its gradient alone."""
    centered: bool = False
    """Gradients are divided by their standard deviation instead of the root of the mean square."""
    l2: NonNegative[float] = 0.0
    """L2 regularisation: this times the parameters, biases too, is added to their gradient."""

    def build(self, network: NetworkWrapper) -> "RMSprop":
        return RMSprop(network, self)


class RMSprop(Saved):
    """RMSprop on the online parameters of one network.

    Args:
        network: The network whose parameters are updated in place.
        params: The optimiser's settings.
    """

    SAVED = (
        SavedAttribute("_second", key="second_moment"),
        SavedAttribute("_first", key="first_moment", optional=True),
        SavedAttribute("_velocity", key="velocity", optional=True),
        SavedAttribute("_mean", key="mean_gradient"),
        "_power",
    )

    def __init__(self, network: NetworkWrapper, params: RMSpropParameters) -> None:
        self.network = network
        self.params = params
        self._second = torch.zeros_like(network.online)
        self._first = torch.zeros_like(network.online) if params.centered else None
        self._velocity = torch.zeros_like(network.online) if params.momentum else None
        self._mean = torch.zeros_like(network.online)
        self._power = torch.ones((), dtype=self._mean.dtype, device=self._mean.device)

    def step(self, gradient: Tensor, learning_rate: Tensor) -> None:
        params = self.params
        online = self.network.online
        parameters, *moments = rmsprop_step(
            online,
            gradient,
            self._second,
            self._first,
            self._velocity,
            learning_rate,
            alpha=params.alpha,
            epsilon=params.epsilon,
            momentum=params.momentum,
        )
        online.copy_(parameters)
        for tensor, value in zip((self._second, self._first, self._velocity), moments, strict=True):
            if tensor is not None and value is not None:
                tensor.copy_(value)
        mean = self._mean.lerp(gradient, 1 - MEAN_DECAY)
        self._mean.copy_(hardshrink(mean, SMALLEST_FIRST_MOMENT))
        self._power.copy_(threshold(self._power * MEAN_DECAY, SMALLEST_POWER, 0.0))

    def mean_gradient(self) -> Tensor:
        return self._mean / (1 - self._power).clamp(min=1e-8)

    def tensors(self) -> tuple[Tensor, ...]:
        optional = (self._first, self._velocity)
        given = [tensor for tensor in optional if tensor is not None]
        return self.network.online, self._second, *given, self._mean, self._power
