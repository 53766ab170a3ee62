"""Several categorical choices at a time."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from coach_rl.functional.distributions import Categorical


@dataclass(frozen=True)
class MultiCategorical:
    """Independent choices; parameters are all their logits in a row, actions int64 [B, K]."""

    sizes: tuple[int, ...]
    """Number of actions of each of the K choices."""
    log_std_size: ClassVar[int] = 0

    @property
    def parameter_size(self) -> int:
        """One logit per action of each choice."""
        return sum(self.sizes)

    def split(self, parameters: Tensor) -> list[Tensor]:
        """The logits of each choice."""
        return list(torch.split_with_sizes(parameters, list(self.sizes), dim=-1))

    def _parts(self, parameters: Tensor) -> list[tuple[Categorical, Tensor]]:
        return [
            (Categorical(size), logits)
            for size, logits in zip(self.sizes, self.split(parameters), strict=True)
        ]

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Sum of the choices' log-probabilities, [B]."""
        columns = zip(self._parts(parameters), action.unbind(dim=-1), strict=True)
        terms = [part.log_prob(logits, chosen) for (part, logits), chosen in columns]
        return torch.stack(terms).sum(dim=0)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Sum of the choices' entropies, [B]."""
        terms = [part.entropy(logits) for part, logits in self._parts(parameters)]
        return torch.stack(terms).sum(dim=0)

    def kl(self, old: Tensor, new: Tensor) -> Tensor:
        """Sum of the choices' divergences, [B]."""
        columns = zip(self._parts(old), self.split(new), strict=True)
        return torch.stack([part.kl(a, b) for (part, a), b in columns]).sum(dim=0)
