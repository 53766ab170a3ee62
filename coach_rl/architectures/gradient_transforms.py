"""Transforms of a flat gradient, between a loss and its optimiser: clipping is one of them.

    @parameter_class
    class SignParameters(GradientTransformParameters):
        def build(self, network, *, name, seed):
            return Sign()

    class Sign(GradientTransform):
        def __call__(self, gradient):
            return gradient.sign(), {}

    AdamParameters(transforms=(SignParameters(),))

Those of the parameters follow the clipping. `UpdateEngine.insert` puts one in front of it.
"""

from abc import ABC, abstractmethod
from typing import ClassVar

from torch import Tensor
from torch.linalg import vector_norm

from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.saved import Saved
from coach_rl.functional.adam import clipped_gradient


class GradientTransform(Saved, ABC):
    """A function from gradient to gradient, for one objective; what it saves is in `SAVED`."""

    traceable: ClassVar[bool] = True
    """False if torch's compiler cannot trace it, or a CUDA graph cannot record it: because
    it exchanges data with other processes, or draws from a generator of its own. Then the loss's
    gradient and the optimiser are compiled or captured apart; all transforms run between them."""

    @abstractmethod
    def __call__(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The transformed gradient [P], and scalars for the metrics of the objective, by name.

        The argument may be changed in place. Waiting for the device, as reading a number does,
        makes a step slower, and it cannot be captured.
        """

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that a call writes to; restored where a step is skipped or only recorded."""
        return ()


class GradientTransformParameters(ABC):
    """A frozen description of a transform, a `parameter_class`."""

    @abstractmethod
    def build(self, network: NetworkWrapper, *, name: str, seed: int) -> GradientTransform:
        """A new transform of an objective's gradients.

        Args:
            network: The network that the objective trains.
            name: The objective's name; empty for an agent's only one.
            seed: Seed of its random numbers, of its own.
        """


class L2Penalty(GradientTransform):
    """Adds the gradient of an L2 penalty: a factor times the parameters.

    Args:
        network: The network that is trained.
        factor: The factor.
    """

    def __init__(self, network: NetworkWrapper, factor: float) -> None:
        self._network = network
        self._factor = factor

    def __call__(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return gradient + self._factor * self._network.online, {}


class NormReport(GradientTransform):
    """Reports the gradient's norm, `gradient_norm`, and changes nothing."""

    def __call__(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return gradient, {"gradient_norm": vector_norm(gradient)}


class NormClipping(GradientTransform):
    """Scales the gradient down to a largest norm; reports the norm before, `gradient_norm`.

    Args:
        max_norm: Largest Euclidean norm.
    """

    def __init__(self, max_norm: float) -> None:
        self._max_norm = max_norm

    def __call__(self, gradient: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        clipped, norm = clipped_gradient(gradient, self._max_norm)
        return clipped, {"gradient_norm": norm}
