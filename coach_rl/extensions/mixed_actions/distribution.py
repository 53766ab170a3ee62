"""Distribution of mixed actions: discrete choices and continuous numbers side by side."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from coach_rl.functional.gaussians import log_normal, normal_entropy, normal_kl
from coach_rl.functional.multi_categorical import MultiCategorical


@dataclass(frozen=True)
class Mixed:
    """Independent choices, and normals that may be arguments of one of their actions.

    Parameters are all logits, then means, then log standard deviations, [B, sum(sizes) + 2 G].
    Actions are the K choices, then the G numbers, in one tensor of floats [B, K + G]. Numbers that
    are arguments of an action count only where that action was chosen: the log-probability is that
    of the choices and of their own arguments, entropy and divergence are those of that
    distribution, in which an argument is weighted by the probability of its action.
    """

    sizes: tuple[int, ...]
    """Number of actions of each of the K choices."""
    numbers: tuple[tuple[int, tuple[int, int] | None], ...]
    """Groups of the G numbers: their size, and the choice and the action that they are arguments
    of; None: they count always."""

    @property
    def log_std_size(self) -> int:
        return sum(size for size, _ in self.numbers)

    @property
    def parameter_size(self) -> int:
        """The logits, G means and G log standard deviations."""
        return sum(self.sizes) + 2 * self.log_std_size

    @property
    def _choices(self) -> MultiCategorical:
        return MultiCategorical(self.sizes)

    def log_prob(self, parameters: Tensor, action: Tensor) -> Tensor:
        """Log-probability of the choices, and log-density of the numbers that count, [B]."""
        logits, mean, log_std = self._split(parameters)
        count = len(self.sizes)
        chosen = action[..., :count]
        numbers = action[..., count:]
        density = log_normal((numbers - mean) * (-log_std).exp(), log_std)

        def is_chosen(choice: int, value: int) -> Tensor:
            return (chosen[..., choice] == value).to(density.dtype)

        return self._choices.log_prob(logits, chosen.long()) + self._sum(density, is_chosen)

    def entropy(self, parameters: Tensor) -> Tensor:
        """Entropy of the choices, and expected entropy of the numbers that count, [B]."""
        logits, _, log_std = self._split(parameters)
        return self._choices.entropy(logits) + self._sum(
            normal_entropy(log_std), self._probability(logits)
        )

    def kl(self, old: Tensor, new: Tensor) -> Tensor:
        """KL(old || new) of the choices, and its expectation of the numbers that count, [B]."""
        old_logits, *old_normal = self._split(old)
        new_logits, *new_normal = self._split(new)
        return self._choices.kl(old_logits, new_logits) + self._sum(
            normal_kl(*old_normal, *new_normal), self._probability(old_logits)
        )

    def _split(self, parameters: Tensor) -> list[Tensor]:
        """Logits, means and log standard deviations."""
        sizes = [sum(self.sizes), self.log_std_size, self.log_std_size]
        return list(torch.split_with_sizes(parameters, sizes, dim=-1))

    def _probability(self, logits: Tensor) -> Callable[[int, int], Tensor]:
        probabilities = [each.softmax(dim=-1) for each in self._choices.split(logits)]
        return lambda choice, value: probabilities[choice][..., value]

    def _sum(self, terms: Tensor, weight: Callable[[int, int], Tensor]) -> Tensor:
        """Sum of terms [B, G], those of arguments weighted by a function of their action, [B]."""
        groups = torch.split_with_sizes(terms, [size for size, _ in self.numbers], dim=-1)
        sums = [
            group.sum(dim=-1) * (1.0 if action is None else weight(*action))
            for group, (_, action) in zip(groups, self.numbers, strict=True)
        ]
        return torch.stack(sums).sum(dim=0)
