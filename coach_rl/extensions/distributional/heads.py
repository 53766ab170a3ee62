"""Heads of DQN's network that learn the distribution of returns: quantiles, or fixed returns."""

from typing import Annotated

import numpy as np
import torch
from annotated_types import Ge
from torch import Tensor

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.extensions.distributional.losses import categorical_loss, projected, quantile_loss
from coach_rl.functional.temporal_difference import td_target


@parameter_class
class QuantileHead:
    """Quantiles of the return (QR-DQN, Dabney et al. 2018, arXiv:1710.10044)."""

    count: Positive[int] = 200
    """Quantiles per action; 200 in the paper, 10 to 50 will do for small tasks."""

    @property
    def size(self) -> int:
        """A number per quantile."""
        return self.count

    def mean(self, numbers: Tensor) -> Tensor:
        """Quantiles at the midpoints are equally likely."""
        return numbers.mean(dim=-1)

    def target(
        self, numbers: Tensor, reward: Tensor, discount: Tensor, clip: tuple[float, float] | None
    ) -> Tensor:
        """Reward plus each discounted quantile."""
        return td_target(reward[:, None], discount[:, None], numbers, clip)

    def loss(
        self, numbers: Tensor, target: Tensor, weight: Tensor, huber: float | None
    ) -> tuple[Tensor, Tensor]:
        """Quantile Huber; a sample's error is its loss."""
        losses = quantile_loss(numbers, target, huber)
        return (weight * losses).mean(), losses


@parameter_class
class CategoricalHead:
    """Probabilities of fixed returns (C51, Bellemare et al. 2017, arXiv:1707.06887)."""

    atoms: Annotated[int, Ge(2)] = 51
    """Number of atoms, i.e. possible returns."""
    low: float = -10.0
    """The smallest of them; -10 to 10 suits rewards clipped to +-1 with a discount of 0.99."""
    high: float = 10.0
    """The largest of them."""

    def __post_init__(self) -> None:
        require(
            self.low < self.high,
            f"CategoricalHead.low must lie below high, got {self.low} and {self.high}",
        )
        atoms = np.linspace(self.low, self.high, self.atoms).astype(np.float32)
        require(
            len(np.unique(atoms)) == self.atoms,
            f"CategoricalHead.low={self.low}, high={self.high} and atoms={self.atoms} make returns "
            "that float32 cannot distinguish; use fewer atoms, or returns nearer to 0",
        )

    @property
    def size(self) -> int:
        """A logit per atom."""
        return self.atoms

    def mean(self, numbers: Tensor) -> Tensor:
        """Atoms by their probabilities."""
        return numbers.softmax(dim=-1) @ self._support(numbers.device)

    def target(
        self, numbers: Tensor, reward: Tensor, discount: Tensor, clip: tuple[float, float] | None
    ) -> Tensor:
        """Probabilities of the atoms after reward and discount have moved them."""
        support = self._support(numbers.device)
        positions = td_target(reward[:, None], discount[:, None], support, clip)
        return projected(numbers.softmax(dim=-1), positions, support)

    def loss(
        self,
        numbers: Tensor,
        target: Tensor,
        weight: Tensor,
        huber: float | None,  # noqa: ARG002 - nothing to be linear in
    ) -> tuple[Tensor, Tensor]:
        """Cross-entropy, on which `huber` has no bearing; the error is the divergence."""
        losses, divergence = categorical_loss(numbers, target)
        return (weight * losses).mean(), divergence

    def _support(self, device: torch.device) -> Tensor:
        return torch.linspace(self.low, self.high, self.atoms, device=device)
