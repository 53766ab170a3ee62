"""The batches that replay memories draw."""

from typing import NamedTuple

import torch
from torch import Tensor

from coach_rl.memories.batches import (
    _EVERYONES_TOO,
    _OF_BATCHES,
    ACTION_PARTS,
    ACTIONS,
    DISCOUNTS,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    REWARDS,
    WEIGHTS,
    Columns,
    Tensors,
    mean_of_valid,
)

_NO_EXTRAS = frozenset((ACTIONS, *_EVERYONES_TOO, *_OF_BATCHES))
"""Paths of single columns that every batch may have."""


class TransitionBatch(NamedTuple):
    """B transitions drawn from a replay memory, on the learner's device."""

    observation: Tensors
    """[B, ...] each, by observation key."""
    action: Tensor
    """[B, ...]; [B, 0] where the action space is a Dict, see `action_parts`."""
    reward: Tensor
    """Rewards summed and discounted over the n steps of the return, float32 [B]."""
    discount: Tensor
    """Discount of the next observation's value, float32 [B]: 0 where the episode terminated,
    gamma^n otherwise.
    """
    next_observation: Tensors
    """The true observation after those steps, [B, ...] each."""
    weight: Tensor
    """Weight of each transition in the loss, float32 [B]; 1 unless prioritised or in sequences."""
    position: Tensor
    """Position of each transition in the memory, int64 [B]; pass it to `note_errors`."""
    action_parts: Tensors = {}  # noqa: RUF012 (never written to)
    """Parts of a Dict action space, [B, ...] each."""
    extras: Tensors = {}  # noqa: RUF012 (never written to)
    """Arrays the agent has kept with its actions, and columns of the user's own, [B, ...] each."""
    valid: Tensor | None = None
    """False where sequences are padded, bool [B]: B transitions are S sequences of L then, and
    observations hold the hidden states [S, H]. None: transitions are drawn alone."""

    def mean(self, values: Tensor) -> Tensor:
        """The mean of values [..., B] over the transitions, without padding."""
        return mean_of_valid(values, self.valid)

    def summary(self, values: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Mean, lowest and highest of values [..., B] over the transitions, without padding."""
        if self.valid is None:
            return values.mean(), values.amin(), values.amax()
        lowest = values.masked_fill(~self.valid, torch.inf).amin()
        highest = values.masked_fill(~self.valid, -torch.inf).amax()
        return self.mean(values), lowest, highest


def as_batch(columns: Columns) -> TransitionBatch:
    """A batch from a sampler's columns."""
    found: dict[str, Tensors] = {OBSERVATIONS: {}, NEXT_OBSERVATIONS: {}, ACTION_PARTS: {}}
    extras: Tensors = {}
    for path, column in columns.items():
        for prefix, own in found.items():
            if path.startswith(prefix):
                own[path.removeprefix(prefix)] = column
                break
        else:
            if path not in _NO_EXTRAS:
                extras[path.removeprefix("/")] = column
    weight = columns[WEIGHTS]
    return TransitionBatch(
        observation=found[OBSERVATIONS],
        action=columns[ACTIONS] if ACTIONS in columns else weight.new_zeros(len(weight), 0),
        reward=columns[REWARDS],
        discount=columns[DISCOUNTS],
        next_observation=found[NEXT_OBSERVATIONS],
        weight=weight,
        position=columns[POSITIONS],
        action_parts=found[ACTION_PARTS],
        extras=extras,
        valid=columns.get(MASK),
    )
