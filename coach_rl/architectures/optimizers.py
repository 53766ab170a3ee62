"""Updates of parameters: Adam with clipping, and target networks that follow."""

from typing import Annotated

import torch
from annotated_types import Interval
from torch import Tensor

from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.functional.adam import adam_step, clipped_gradient, next_powers

Decay = Annotated[float, Interval(ge=0, lt=1)]
"""Factor on a moving average, per step."""


@parameter_class
class AdamParameters:
    """Adam with gradient clipping. Defaults: PyTorch's."""

    learning_rate: Positive[float] = 1e-3
    """Learning rate; an agent may multiply it by a schedule."""
    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the two moments."""
    epsilon: float = 1e-8
    """Added to the root of the second moment."""
    max_gradient_norm: Positive[float] | None = None
    """Largest norm of the whole gradient; None never clips."""
    l2: NonNegative[float] = 0.0
    """L2 regularisation: this times the parameters, biases too, is added to their gradient."""


@parameter_class
class TargetSync:
    """Update rule of a target network: how it follows its online network."""

    rate: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Polyak's tau: target += rate * (online - target); 1 copies."""
    every: Positive[int] = 1
    """Gradient steps from one sync to the next."""


class Adam(Saved):
    """Adam on the online parameters of one network.

    Args:
        network: The network whose parameters are updated in place.
        params: Adam's settings.
    """

    SAVED = (
        SavedAttribute("_first", key="first_moment"),
        SavedAttribute("_second", key="second_moment"),
        "_powers",
    )

    def __init__(self, network: NetworkWrapper, params: AdamParameters) -> None:
        self.network, self.params = network, params
        device = network.online.device
        self._first = torch.zeros(network.size, device=device)
        self._second = torch.zeros(network.size, device=device)
        self._betas = torch.tensor(params.betas, device=device)
        self._powers = torch.ones(2, device=device)

    def step(self, gradient: Tensor, learning_rate: Tensor) -> Tensor:
        """Clip the gradient [P] and update the parameters; returns its norm before clipping."""
        params, online = self.params, self.network.online
        if params.l2:
            gradient = gradient + params.l2 * online
        gradient, norm = clipped_gradient(gradient, params.max_gradient_norm)
        self._powers.copy_(next_powers(self._powers, self._betas))
        parameters, first, second = adam_step(
            online,
            gradient,
            self._first,
            self._second,
            self._powers,
            learning_rate,
            betas=params.betas,
            epsilon=params.epsilon,
        )
        online.copy_(parameters)
        self._first.copy_(first)
        self._second.copy_(second)
        return norm

    def mean_gradient(self) -> Tensor:
        """The mean gradient [P] of about the last ten steps, after clipping; 0 before the first."""
        return self._first / (1 - self._powers[0]).clamp(min=1e-8)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that `step` writes to."""
        return self.network.online, self._first, self._second, self._powers
