"""Optimisers, and how one is described."""

from abc import ABC, abstractmethod
from typing import Annotated, Protocol

from annotated_types import Interval
from torch import Tensor

from coach_rl.architectures.gradient_transforms import (
    GradientTransform,
    GradientTransformParameters,
    L2Penalty,
    NormClipping,
    NormReport,
)
from coach_rl.architectures.network_wrapper import NetworkWrapper
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.seeding import integer_seed
from coach_rl.core.state import Stateful


@parameter_class
class TargetSync:
    """Update rule of a target network: how it follows its online network."""

    rate: Annotated[float, Interval(gt=0, le=1)] = 1.0
    """Polyak's tau: target += rate * (online - target); 1 copies."""
    every: Positive[int] = 1
    """Gradient steps from one sync to the next."""


class Optimizer(Stateful, Protocol):
    """An optimiser of the online parameters of one network."""

    def step(self, gradient: Tensor, learning_rate: Tensor) -> None:
        """Update the parameters by a gradient [P], which was transformed already."""
        ...

    def mean_gradient(self) -> Tensor:
        """The mean of the gradients [P] of about the last ten steps; 0 before the first."""
        ...

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor that `step` writes to."""
        ...


@parameter_class
class OptimizerParameters(ABC):
    """A frozen description of an optimiser, and of what becomes of gradients before it."""

    learning_rate: Positive[float] = 1e-3
    """Learning rate; an agent may multiply it by a schedule."""
    max_gradient_norm: Positive[float] | None = None
    """Largest norm of the whole gradient; None never clips."""
    transforms: tuple[GradientTransformParameters, ...] = ()
    """Further transforms of the gradient, once it is clipped, in this order."""

    @property
    def l2(self) -> float:
        """Factor of L2 regularisation; a field of the optimisers that offer it."""
        return 0.0

    @abstractmethod
    def build(self, network: NetworkWrapper) -> Optimizer:
        """The optimiser of a network's online parameters."""

    def gradient_transforms(
        self, network: NetworkWrapper, *, name: str, seed: int
    ) -> list[GradientTransform]:
        """All transforms of an objective's gradient, in their order.

        Args:
            network: The network that the objective trains.
            name: The objective's name; empty for an agent's only one.
            seed: Seed of the agent.
        """
        largest = self.max_gradient_norm
        transforms: list[GradientTransform] = [L2Penalty(network, self.l2)] if self.l2 else []
        transforms.append(NormReport() if largest is None else NormClipping(largest))
        for number, each in enumerate(self.transforms):
            own_seed = integer_seed(seed, "gradient", name, number)
            transforms.append(each.build(network, name=name, seed=own_seed))
        return transforms
