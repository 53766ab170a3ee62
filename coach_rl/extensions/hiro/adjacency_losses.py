"""Losses of an embedding of places whose distances predict which are reachable from one another."""

import torch
from torch import Tensor

_SMALLEST_SQUARE = 1e-12
"""Keeps the gradient of the distance between equal places finite."""


def embedded_distance(one: Tensor, other: Tensor) -> Tensor:
    """Euclidean distance [B] of embeddings [B, E]."""
    return torch.sqrt(((one - other) ** 2).sum(dim=-1) + _SMALLEST_SQUARE)


def contrastive_loss(distance: Tensor, adjacent: Tensor, *, near: float, far: float) -> Tensor:
    """Draw adjacent places nearer than `near`, push others farther apart than `far`.

    Zhang et al. 2020, arXiv:2006.11485, section 4.1, where `near` is epsilon_k and `far` is
    epsilon_k + delta.

    Args:
        distance: Of the embeddings of two places, [B].
        adjacent: Whether they are adjacent, bool [B].
        near: Adjacent places that are at most this far apart cost nothing.
        far: Nor do others that are at least this far apart.
    """
    too_far, too_near = (distance - near).clamp(min=0), (far - distance).clamp(min=0)
    return torch.where(adjacent, too_far, too_near).mean()


def adjacency_penalty(distance: Tensor, margin: float) -> Tensor:
    """Mean excess of distances [B] over the margin, section 4.2 of the same paper."""
    return (distance - margin).clamp(min=0).mean()
