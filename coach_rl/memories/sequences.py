"""Sequences of transitions for recurrent networks: of a rollout, and drawn from a replay memory."""

import numpy as np

from coach_rl.core.records import BoolArray, IntArray
from coach_rl.memories.rollout_memory import RowGrid


def rollout_sequences(
    grid: RowGrid, *, ended: BoolArray, follows: BoolArray, length: int, padding: int
) -> IntArray:
    """Positions of the transitions of each sequence in order, [S, L].

    Every transition is in one sequence. A row is cut where an episode ends or a transition does not
    follow the one before it, then every L transitions.

    Args:
        grid: Order of each row's transitions.
        ended: Whether an episode ended, by position, [C].
        follows: Whether it continues its row's transition before, by position, [C].
        length: L.
        padding: Position that fills sequences that are shorter.
    """
    index, valid = grid.index.T, grid.valid.T  # [N, T]
    time = np.arange(index.shape[1])
    begins = np.ones(index.shape, np.bool_)
    begins[:, 1:] = ended[index[:, :-1]] | ~follows[index[:, 1:]]
    first = np.maximum.accumulate(np.where(begins, time, 0), axis=1)  # [N, T] of its segment
    place = (time - first) % length
    number = np.cumsum(valid & (place == 0)).reshape(index.shape) - 1  # of its sequence
    sequences = np.full((number[-1, -1] + 1, length), padding, np.int64)
    sequences[number[valid], place[valid]] = index[valid]
    return sequences
