"""Sequences of transitions for recurrent networks, drawn from a replay memory.

Replay follows R2D2 (Kapturowski et al. 2019): sequences of fixed length that overlap by half. They
begin in the hidden state stored with their first transition, which may be brought up to date by
passing over the transitions before it.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive, UnitInterval
from coach_rl.core.records import HIDDEN_STATE, BoolArray, FloatArray, IntArray
from coach_rl.memories.batches import (
    ENDS,
    FOLLOWS,
    INTERNAL,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    WEIGHTS,
    Columns,
    extra,
)
from coach_rl.memories.parts import ReplaySettings
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.rollout_memory import RowGrid
from coach_rl.memories.samplers import Gather, SamplerUnit

BURN_IN = "burn_in/"
"""Prefix of the observations [S * K, ...] before each of S sequences, by key."""
BURN_IN_MASK = f"{BURN_IN}mask"
"""True where there is one, [S * K]; sequences that begin early have fewer, the last of the K."""
BEFORE = f"{INTERNAL}sequences/before"
BEFORE_MASK = f"{INTERNAL}sequences/before_mask"
"""Positions of the K transitions before each sequence, the newest last, and whether they are part
of it, [S * K]."""
BEGINS = f"{INTERNAL}sequences/begins"
"""Position whose stored hidden state a sequence, or what is before it, begins in, [S]."""


@parameter_class
class SequenceParameters:
    """Sequences that recurrent networks learn from."""

    is_single: ClassVar[bool] = False
    states: ClassVar[tuple[str, ...]] = (HIDDEN_STATE,)

    length: Positive[int] = 32
    """Transitions of a sequence. The first begins with the (sub-)episode, the next half of this
    later, and so on; they end with the (sub-)episode."""
    burn_in: NonNegative[int] = 0
    """Transitions before a sequence that networks pass over without learning, which brings a stored
    hidden state up to date; fewer near the start of an episode, where the state is right."""
    peak: UnitInterval = 0.9
    """Prioritised memories: the share of the largest error in a sequence's priority, beside that of
    the mean error (eta of R2D2)."""

    @property
    def stride(self) -> int:
        """Transitions from the begin of a sequence to that of the next."""
        return max(1, self.length // 2)

    def check(self, memory: ReplaySettings) -> None:
        n_step = f"n_step={memory.n_step}" if memory.n_step > 1 else None
        relabelled = memory.relabelling and f"relabelling={memory.relabelling}"
        other = n_step or relabelled
        require(
            other is None,
            "ReplayMemoryParameters.draws=SequenceParameters are of one-step returns, of "
            f"transitions as an agent stored them, which {other} is not; leave out one of them",
        )

    def check_space(self, observation_space: spaces.Dict, row_capacity: int) -> None:
        if HIDDEN_STATE not in observation_space.spaces:
            raise ConfigurationError(
                "SequenceParameters are for recurrent networks, and this agent has none; set "
                "TorsoParameters.recurrence, or leave out ReplayMemoryParameters.draws"
            )
        length = self.length + self.burn_in
        if length > row_capacity:
            raise ConfigurationError(
                f"a sequence of {length} transitions (length and burn_in) does not fit into the "
                f"{row_capacity} that are kept of each environment; raise memory.capacity, or "
                "lower SequenceParameters.length"
            )

    def check_batch(self, batch: int, owner: str) -> None:
        if batch % self.length:
            raise ConfigurationError(
                f"{owner} learns from whole sequences of {self.length} transitions, and "
                f"learning.batch={batch} is no multiple of it; use "
                f"{-(-batch // self.length) * self.length}, or change SequenceParameters.length"
            )

    def units(self, returns: Sequence[SamplerUnit], gather: Gather) -> list[SamplerUnit]:
        drawn = Sequences(gather.store, self)
        return [drawn, *returns, GatherSequences(gather, burn_in=self.burn_in)]

    def count(self, batch: int) -> int:
        return batch // self.length

    def priorities(
        self, positions: IntArray, errors: FloatArray, count: int
    ) -> tuple[IntArray, FloatArray]:
        """The errors by which transitions are drawn: each has that of its sequence.

        Args:
            positions: Of the transitions of S sequences, [S * W]; padding repeats the last one.
            errors: Of the transitions, [S * W].
            count: S.

        Returns:
            Positions and their errors, [P] each: every transition drawn as part of such a sequence.
        """
        positions = positions.reshape(count, -1)
        errors = errors.reshape(count, -1)
        mask = np.ones(positions.shape, np.bool_)
        mask[:, 1:] = positions[:, 1:] != positions[:, :-1]
        sizes = np.where(mask, np.abs(errors), 0.0)
        mean = sizes.sum(axis=1) / mask.sum(axis=1)
        error = self.peak * sizes.max(axis=1) + (1 - self.peak) * mean
        own = mask[:, : self.stride]
        return positions[:, : self.stride][own], np.broadcast_to(error[:, None], own.shape)[own]


class Sequences(SamplerUnit):
    """Extends each position drawn to the sequence it belongs to.

    Of the sequences a transition is in, the one that began last.

    Args:
        store: Where transitions are kept, with `FOLLOWS` in its ledger.
        params: How long sequences are.
    """

    name = "sequences"
    inputs = (POSITIONS, WEIGHTS)
    outputs = (POSITIONS, WEIGHTS, MASK, BEGINS, BEFORE, BEFORE_MASK)

    def __init__(self, store: RingStore, params: SequenceParameters) -> None:
        self._store = store
        self._params = params

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Columns of S sequences, transitions [S * W] in the order of their sequences.

        W is the power of two that has room for the longest, L at most. Weights are 0 in padding,
        and 1 on average over all positions where they were 1 before.
        """
        store = self._store
        params = self._params
        drawn = batch[POSITIONS].numpy()
        rows = store.rows_of(drawn)[:, None]
        oldest, ends = (each[:, None] for each in store.episodes_of(drawn))
        start = self._starts(rows, store.steps_of(drawn)[:, None], oldest, drawn)  # [S, 1]

        # A sequence of W = 4 with K = 2 steps before it, of an episode that ends at step 9:
        #
        #     before   | steps             step 4 is missing in `earlier` if step 5 doesn't follow
        #     4    5   | 6   7   8   8     on it; the last step is padding, which repeats step 8
        #     earlier  | mask: 1 1 1 0
        #
        steps = start + np.arange(params.length)
        mask = steps < ends
        follows = self._follows(rows, np.minimum(steps, ends - 1))
        mask[:, 1:] &= np.logical_and.accumulate(follows[:, 1:], axis=1)
        counts = mask.sum(axis=1, keepdims=True)
        width = min(params.length, power_of_two(int(counts.max())))
        steps = np.minimum(steps, start + counts - 1)[:, :width]
        mask = mask[:, :width]

        # Backwards from the sequence, steps count for as long as each is followed by the next.
        before = start - np.arange(params.burn_in, 0, -1)
        earlier = before >= oldest
        follows = self._follows(rows, np.maximum(before + 1, oldest))
        earlier &= np.logical_and.accumulate(follows[:, ::-1], axis=1)[:, ::-1]
        begins = start[:, 0] - earlier.sum(axis=1)
        before = np.where(earlier, before, start)

        # Padding has no weight; the rest is scaled so that the mean over all positions stays.
        weights = np.where(mask, batch[WEIGHTS].numpy()[:, None], 0) * (mask.size / mask.sum())
        columns = {
            POSITIONS: store.positions_of(rows, steps),
            WEIGHTS: weights.astype(np.float32),
            MASK: mask,
            BEGINS: store.positions_of(rows[:, 0], begins),
            BEFORE: store.positions_of(rows, before),
            BEFORE_MASK: earlier,
        }
        return {path: torch.from_numpy(column.reshape(-1)) for path, column in columns.items()}

    def _starts(
        self, rows: IntArray, steps: IntArray, oldest: IntArray, drawn: IntArray
    ) -> IntArray:
        """The first step of the sequences, [S, 1]."""
        stride = self._params.stride
        first = self._store.first_steps_of(drawn)[:, None]
        start: IntArray = np.maximum(first + (steps - first) // stride * stride, oldest)
        # Where a step up to the drawn one doesn't follow on its predecessor, begin there instead.
        later = np.minimum(start + np.arange(1, stride), steps)  # [S, stride - 1]
        cut = (later > start) & ~self._follows(rows, later)
        start = np.maximum(start, np.where(cut, later, 0).max(axis=1, keepdims=True, initial=0))
        return start

    def _follows(self, rows: IntArray, steps: IntArray) -> BoolArray:
        """Return whether the steps [S, ...] of rows follow the ones before them."""
        follows: BoolArray = self._store.ledger[FOLLOWS].take(self._store.positions_of(rows, steps))
        return follows


class GatherSequences(SamplerUnit):
    """Reads the columns of sequences, the hidden states they begin in, and what is before them.

    The next observations of a sequence are a sequence too: it begins in the same state, with the
    first observation before it.

    Args:
        gather: Reads the columns.
        burn_in: K.
    """

    name = "gather"
    inputs = (POSITIONS, ENDS, BEGINS, BEFORE, BEFORE_MASK)

    def __init__(self, gather: Gather, *, burn_in: int) -> None:
        self._gather = gather
        self._store = gather.store
        self._burn_in = burn_in
        self._seen = [path for path in gather.outputs if path.startswith(OBSERVATIONS)]
        burnt = [f"{BURN_IN}{path.removeprefix(OBSERVATIONS)}" for path in self._seen]
        later = [HIDDEN_STATE, BURN_IN_MASK, *burnt]
        now = later if burn_in else [HIDDEN_STATE]
        self.outputs = (
            *self._gather.outputs,
            *(f"{OBSERVATIONS}{key}" for key in now),
            *(f"{NEXT_OBSERVATIONS}{key}" for key in later),
        )

    def __call__(self, batch: Columns, size: int) -> Columns:
        """The columns, on the learner's device."""
        begins = batch[BEGINS].numpy()
        shape = len(begins), self._burn_in
        first = batch[POSITIONS].numpy().reshape(len(begins), -1)[:, :1]
        positions = np.concatenate([batch[BEFORE].numpy().reshape(shape), first], axis=1)
        mask = torch.ones(positions.shape, dtype=torch.bool)
        mask[:, :-1] = batch[BEFORE_MASK].view(shape)
        path = extra(HIDDEN_STATE)
        states = self._store.take((path,), begins)[path]
        columns = self._gather(batch, size)
        columns[f"{OBSERVATIONS}{HIDDEN_STATE}"] = states
        columns[f"{NEXT_OBSERVATIONS}{HIDDEN_STATE}"] = states
        columns[f"{NEXT_OBSERVATIONS}{BURN_IN_MASK}"] = mask.view(-1)
        if self._burn_in:
            columns[f"{OBSERVATIONS}{BURN_IN_MASK}"] = batch[BEFORE_MASK]
        for path, values in self._store.take(self._seen, positions).items():
            key = f"{BURN_IN}{path.removeprefix(OBSERVATIONS)}"
            columns[f"{NEXT_OBSERVATIONS}{key}"] = values.flatten(0, 1)
            if self._burn_in:
                columns[f"{OBSERVATIONS}{key}"] = values[:, :-1].flatten(0, 1)
        return columns


def rollout_sequences(
    grid: RowGrid, *, ended: BoolArray, follows: BoolArray, length: int, padding: int
) -> IntArray:
    """Positions of the transitions of each sequence of a rollout in order, [S, W].

    Every transition is in one sequence. A row is cut where an episode ends or a transition does
    not follow the one before it, then every L transitions. W is the power of two that has room
    for the longest, L at most: few shapes are worth recording as CUDA graphs.

    Args:
        grid: The order of each row's transitions.
        ended: Whether an episode ended, by position, [C].
        follows: Whether it continues its row's transition before, by position, [C].
        length: L.
        padding: Position that fills sequences that are shorter.
    """
    # A row of T = 7 whose episode ends behind its third transition, with L = 2:
    #
    #     time      0  1  2  3  4  5  6
    #     first     0  0  0  3  3  3  3    where its segment begins
    #     place     0  1  0  0  1  0  1    in its sequence
    #     number    0  0  1  2  2  3  3    of its sequence
    #
    index = grid.index.T  # [N, T]
    valid = grid.valid.T
    time = np.arange(index.shape[1])
    begins = np.ones(index.shape, np.bool_)
    begins[:, 1:] = ended[index[:, :-1]] | ~follows[index[:, 1:]]
    first = np.maximum.accumulate(np.where(begins, time, 0), axis=1)  # [N, T] of its segment
    place = (time - first) % length
    number = np.cumsum(valid & (place == 0)).reshape(index.shape) - 1  # of its sequence
    width = min(length, power_of_two(int(place[valid].max()) + 1))
    sequences = np.full((number[-1, -1] + 1, width), padding, np.int64)
    sequences[number[valid], place[valid]] = index[valid]
    return sequences


def power_of_two(number: int) -> int:
    """The least power of two that is not below a number, 1 or more."""
    return 1 << (number - 1).bit_length()
