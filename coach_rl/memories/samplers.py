"""Uniform one-step replay: positions drawn uniformly, their rewards, and gathering the columns."""

from collections.abc import Sequence

import numpy as np
import torch

from coach_rl.core.records import Array
from coach_rl.memories.columns import (
    DISCOUNTS,
    DURATIONS,
    ENDS,
    POSITIONS,
    REWARDS,
    TERMINATED,
    WEIGHTS,
    Columns,
)
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.sampling_chain import SamplerUnit


class UniformPositions(SamplerUnit):
    """Each transition kept is equally likely; drawn with replacement."""

    name = "positions"
    outputs = (POSITIONS, WEIGHTS)

    def __init__(self, store: RingStore, rng: np.random.Generator) -> None:
        self._store, self._rng = store, rng

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Positions [B], weights of 1."""
        positions = self._store.draw(self._rng, size)
        return {POSITIONS: torch.from_numpy(positions), WEIGHTS: torch.ones(size)}


class OneStep(SamplerUnit):
    """Reward and discount of single transitions.

    Args:
        store: Where they are kept.
        discount: Gamma, per decision or per simulator step.
        by_duration: Whether gamma counts per simulator step.
    """

    name = "n_step"
    inputs = (POSITIONS,)
    outputs = (REWARDS, DISCOUNTS, ENDS)

    def __init__(self, store: RingStore, *, discount: float, by_duration: bool) -> None:
        self._ledger, self._by_duration = store.ledger, by_duration
        self._discount = np.float32(discount)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Rewards, discounts and ends, [B] each."""
        positions = batch[POSITIONS].numpy()
        discounts = ~self._ledger[TERMINATED].take(positions) * self._discount
        if self._by_duration:
            discounts = np.where(
                discounts > 0, discounts ** self._ledger[DURATIONS].take(positions), 0
            ).astype(np.float32)
        return {
            REWARDS: torch.from_numpy(self._ledger[REWARDS].take(positions)),
            DISCOUNTS: torch.from_numpy(discounts),
            ENDS: batch[POSITIONS],
        }


class Gather(SamplerUnit):
    """Takes observations, actions and whatever else is kept out of the store.

    Args:
        store: Where they are kept.
        paths: The columns taken at the positions themselves.
        next_paths: The columns taken at the ends of the n-step returns.
    """

    name = "gather"
    inputs = (POSITIONS, ENDS)

    def __init__(self, store: RingStore, paths: Sequence[str], next_paths: Sequence[str]) -> None:
        self._store, self._paths, self._next_paths = store, tuple(paths), tuple(next_paths)
        self.outputs = (*self._paths, *self._next_paths)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """The columns, [B, ...] each, on the learner's device."""
        here, ends = _numpy(batch, POSITIONS), _numpy(batch, ENDS)
        return self._store.take(self._paths, here) | self._store.take(self._next_paths, ends)


def _numpy(batch: Columns, path: str) -> Array:
    return np.asarray(batch[path].numpy())
