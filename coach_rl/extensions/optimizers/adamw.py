"""AdamW, with torch's names of its settings."""

from torch import Tensor

from coach_rl.architectures.gradient_step import Adam, AdamParameters, Decay
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.architectures.optimizers import OptimizerParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive


@parameter_class
class AdamWParameters(OptimizerParameters):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019). Defaults: PyTorch's."""

    betas: tuple[Decay, Decay] = (0.9, 0.999)
    """Decay of the two moments."""
    epsilon: Positive[float] = 1e-8
    """Added to the root of the second moment."""
    weight_decay: NonNegative[float] = 1e-2
    """Decay per step: all parameters, biases too, are multiplied by 1 - learning rate * this."""

    def build(self, network: NetworkWrapper) -> "AdamW":
        return AdamW(network, self)


class AdamW(Adam):
    """Adam whose weight decay is no part of the gradient.

    Args:
        network: The network whose parameters are updated in place.
        params: The optimiser's settings.
    """

    def __init__(self, network: NetworkWrapper, params: AdamWParameters) -> None:
        adam = AdamParameters(
            learning_rate=params.learning_rate,
            betas=params.betas,
            epsilon=params.epsilon,
        )
        super().__init__(network, adam)
        self._weight_decay = params.weight_decay

    def step(self, gradient: Tensor, learning_rate: Tensor) -> None:
        self.network.online.mul_(1 - learning_rate * self._weight_decay)
        super().step(gradient, learning_rate)
