"""Several choices at once, whose values or logits stand side by side: M columns in all."""

import torch
from torch import Tensor

Sizes = tuple[int, ...]
"""Number of actions of each of the D choices; their sum is M."""


def split_choices(values: Tensor, sizes: Sizes) -> list[Tensor]:
    """The columns [..., n] of each choice, from values [..., M]."""
    return list(torch.split_with_sizes(values, list(sizes), dim=-1))


def greedy_choices(values: Tensor, sizes: Sizes) -> Tensor:
    """The action of each choice with the largest value, counted from 0, int64 [..., D].

    Args:
        values: [..., M].
        sizes: Of the choices.
    """
    return torch.stack([part.argmax(dim=-1) for part in split_choices(values, sizes)], dim=-1)


def of_choices(values: Tensor, choice: Tensor, sizes: Sizes) -> Tensor:
    """The values of one action of each choice, [..., D].

    Args:
        values: [..., M].
        choice: Counted from 0 in each choice, int64 [..., D].
        sizes: Of the choices.
    """
    columns = zip(split_choices(values, sizes), choice.unbind(dim=-1), strict=True)
    return torch.cat([part.gather(-1, chosen.unsqueeze(-1)) for part, chosen in columns], dim=-1)


def log_probabilities(logits: Tensor, sizes: Sizes) -> Tensor:
    """Log-probabilities of every action of independent choices, [..., M], from their logits."""
    return torch.cat([part.log_softmax(dim=-1) for part in split_choices(logits, sizes)], dim=-1)
