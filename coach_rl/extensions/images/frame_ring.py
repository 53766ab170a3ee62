"""Stacks of frames of which each frame is stored once.

A row's frames are in a ring, indexed by the step at which they were the newest: the stack of step t
is frames t - k + 1 ... t, the stack of its next observation t - k + 2 ... t + 1. Frame t is at
`row * length + t % length`. Steps before an episode's first frame are clamped to that frame, which
repeats it as stacking does. The last frame of an episode has no place in the ring, as the first
frame of the next episode has the same number; it is stored in a pool.
"""

from collections import deque
from collections.abc import Sequence
from functools import partial
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.state import Appended, State
from coach_rl.memories.tables import Field, Tables, entry_dtype, require_kept

FRAMES = "frames"
CHECKED = 1_000
"""Additions whose stacks are compared: observations that are no stacks differ in one of them."""
FIRST_POOL = 64
"""Last frames there is room for at first; the pool doubles when it is full."""


class FrameRing:
    """The frames of one observation key.

    Args:
        key: The observation key, for errors.
        field: Of a whole stack [..., k], oldest frame first.
        num_rows: N.
        row_capacity: Transitions kept per row, C.
        tables: Makes tables where the frames are to lie.
    """

    def __init__(
        self,
        *,
        key: str,
        field: Field,
        num_rows: int,
        row_capacity: int,
        tables: Tables,
    ) -> None:
        self.key = key
        self.field = field
        self._row_capacity = row_capacity
        self._size = field.shape[-1]
        self._length = frames_per_row(row_capacity, self._size)
        self._frame = Field(field.shape[:-1], field.dtype)
        self._make_table = tables.table
        self._frames = tables.ring(num_rows, self._length, dict)
        self._frames.allocate(FRAMES, self._frame)
        self._generation = 0
        self._slots: list[deque[int]] = [deque() for _ in range(num_rows)]
        """Slots in the pool of each row's last frames, oldest first."""
        self._make_pool()
        self.oldest: IntArray = np.zeros(num_rows * row_capacity, np.int64)
        """The earliest frame that the stacks of each position may reach back to."""
        self._lasts: IntArray = np.zeros(num_rows * row_capacity, np.int64)
        """1 + the slot, by position, of its episode's last frame in the pool; 0: not the last."""
        self._row_oldest: IntArray = np.zeros(num_rows, np.int64)
        self._unchecked = CHECKED
        """Additions whose stacks are still to be compared."""
        self._ended: IntArray = np.zeros(num_rows, np.int64)
        """Last frames ever kept of each row, [N]."""

    @staticmethod
    def bytes_per_row(field: Field, row_capacity: int) -> int:
        """The memory that so many transitions of a row take."""
        size = field.shape[-1]
        return frames_per_row(row_capacity, size) * field.bytes // size

    def add(
        self,
        rows: IntArray,
        steps: IntArray,
        positions: IntArray,
        *,
        starts: BoolArray,
        ended: BoolArray,
        stacks: Array,
        next_stacks: Array,
    ) -> None:
        """Store the frames of transitions; each array [R, ...].

        Raises:
            RunError: A stack does not continue the stack before it, and starts no episode by
                repeating one frame, so it could not be reconstructed.
        """
        if self._unchecked > 0:
            self._unchecked -= 1
            if not np.array_equal(next_stacks[..., :-1], stacks[..., 1:]):
                raise RunError(
                    f"a next observation under '{self.key}' is no stack of frames that continues "
                    "that of the observation; frame_stack takes keys stacked by "
                    "ObservationStackingFilter along the last axis: leave this one out"
                )
        for index in np.flatnonzero(starts):
            self._start(int(rows[index]), int(steps[index]), stacks[index])
        self._release(positions)
        self.oldest[positions] = self._row_oldest[rows]
        newest = next_stacks[..., -1]
        self._write(rows, steps + 1, newest)
        if ended.any():
            self._keep_lasts(positions[ended], newest[ended])

    def truncate(self, rows: IntArray, ends: IntArray, positions: IntArray) -> None:
        """Store the last frames of episodes that are truncated before these steps, [R].

        Args:
            rows: [R].
            ends: The steps behind their newest transitions, [R].
            positions: The positions of those transitions, [R].
        """
        frames = self._frames.read(FRAMES, rows * self._length + ends % self._length)
        self._keep_lasts(positions, frames)

    def take(
        self, rows: IntArray, steps: IntArray, positions: IntArray, *, is_next: bool
    ) -> Tensor:
        """The stacks [*B, ..., k] of observations, or of next observations, at positions [*B]."""
        # Frames t - k + 1 ... t, [*B, k].
        wanted = (steps + is_next)[..., None] + np.arange(1 - self._size, 1)
        wanted = np.maximum(wanted, self.oldest[positions][..., None])  # repeats the first frame
        index = rows[..., None] * self._length + wanted % self._length
        frames = self._frames.take((FRAMES,), index)[FRAMES]  # [*B, k, ...]
        if is_next:
            lasts = self._lasts[positions]
            ended = lasts.nonzero()
            if len(ended[0]):
                true_lasts = self._pool.take((FRAMES,), lasts[ended] - 1)[FRAMES]
                axes = [torch.from_numpy(each) for each in ended]
                newest: tuple[Tensor | int, ...] = (*axes, -1)
                frames[newest] = true_lasts
        return frames.movedim(positions.ndim, -1)

    def clear(self) -> None:
        """Remove everything."""
        self._lasts[:] = 0
        self._row_oldest[:] = 0
        self._ended[:] = 0
        self._generation += 1
        self._frames.clear()
        self._make_pool()

    def state_dict(self, counts: IntArray) -> State:
        """Every frame that a kept transition needs.

        Frames are numbered from those before a row's first step. A row's newest one is saved with
        each state, for an episode that starts there replaces it; those before never change.

        Args:
            counts: Transitions ever added per row, [N]; the store's own array.
        """
        used = np.flatnonzero(counts)
        dtype = entry_dtype({FRAMES: self._frame})
        return {
            "frames": Appended(
                dtype=dtype,
                first=np.maximum(0, counts - self._row_capacity),
                ends=np.where(counts > 0, counts + self._size - 1, 0),
                capacity=len(counts) * self._length,
                read=partial(self._read_frames, self._generation, counts),
                files=self._frames.files(counts + self._size),
                generation=self._generation,
            ),
            "newest": self._frames.read(FRAMES, used * self._length + counts[used] % self._length),
            "lasts": Appended(
                dtype=dtype,
                first=self._ended - np.array([len(slots) for slots in self._slots], np.int64),
                ends=self._ended.copy(),
                capacity=0,
                read=partial(self._read_lasts, self._generation),
                generation=self._generation,
            ),
            "row_oldest": self._row_oldest.copy(),
        }

    def load_state_dict(self, state: State, counts: IntArray, ended: Sequence[IntArray]) -> None:
        """Load a saved state; the store has loaded `oldest` before.

        Args:
            state: The frames.
            counts: Transitions ever added per row, [N].
            ended: Positions of each row's kept transitions that ended an episode, in order.
        """
        frames: Appended = state["frames"]
        lasts: Appended = state["lasts"]
        for _ in self._frames.load(frames, self._positions):
            pass
        used = np.flatnonzero(counts)
        self._write(used, counts[used], state["newest"])
        kept = list(lasts.parts())  # read before their places are given away
        self._lasts[:] = 0
        self._make_pool()
        for row, begin, columns in kept:
            index = begin - int(lasts.first[row])
            positions = ended[row][index : index + len(columns[FRAMES])]
            self._keep_lasts(positions, columns[FRAMES])
        self._ended[:] = lasts.ends
        self._row_oldest[:] = state["row_oldest"]
        self._generation = frames.generation

    def _read_frames(
        self, generation: int, counts: IntArray, row: int, begin: int, end: int
    ) -> dict[str, Array]:
        require_kept(generation == self._generation and begin >= counts[row] - self._row_capacity)
        return {FRAMES: self._frames.read(FRAMES, self._positions(row, begin, end))}

    def _positions(self, row: int, begin: int, end: int) -> IntArray:
        """Positions of the frames with these numbers, [T]."""
        steps = np.arange(begin, end) + 1 - self._size
        return row * self._length + steps % self._length

    def _read_lasts(self, generation: int, row: int, begin: int, end: int) -> dict[str, Array]:
        slots = self._slots[row]
        first = int(self._ended[row]) - len(slots)
        require_kept(generation == self._generation and begin >= first)
        index = np.array(list(islice(slots, begin - first, end - first)), np.int64)
        return {FRAMES: self._pool.read(FRAMES, index)}

    def _start(self, row: int, step: int, stack: Array) -> None:
        """Begin an episode with a stack [..., k]."""
        rows = np.full(self._size, row)
        if step == 0:  # no frame is known: the stack may hold any
            steps = np.arange(1 - self._size, 1)
            self._write(rows, steps, np.moveaxis(stack, -1, 0))
            self._row_oldest[row] = steps[0]
        elif (stack[..., :-1] == stack[..., -1:]).all():
            self._write(rows[:1], np.array([step]), stack[None, ..., -1])
            self._row_oldest[row] = step
        else:
            self._check_continues(row, step, stack)
            self._write(rows[:1], np.array([step]), stack[None, ..., -1])

    def _check_continues(self, row: int, step: int, stack: Array) -> None:
        before = np.array([step - 1])
        position = row * self._row_capacity + before % self._row_capacity
        seen = self.take(np.array([row]), before, position, is_next=True)
        if not np.array_equal(seen[0].cpu().numpy(), stack):
            raise RunError(
                f"an episode of row {row} starts with a stack under '{self.key}' that neither "
                "repeats one frame nor continues the stack before it; frame_stack takes keys "
                "stacked by ObservationStackingFilter along the last axis: leave this one out"
            )

    def _write(self, rows: IntArray, steps: IntArray, frames: Array) -> None:
        self._frames.write(rows * self._length + steps % self._length, {FRAMES: frames})

    def _release(self, positions: IntArray) -> None:
        """Give back the last frames of transitions that are overwritten."""
        for position in positions[self._lasts[positions] > 0].tolist():
            self._free.append(self._slots[position // self._row_capacity].popleft())
        self._lasts[positions] = 0

    def _keep_lasts(self, positions: IntArray, frames: Array) -> None:
        """Write the last frames [K, ...] of the episodes that end at positions to the pool."""
        places = []
        for position in positions.tolist():
            if not self._free:
                self._free.append(self._pool_used)
                self._pool_used += 1
            places.append(self._free.pop())
            row = position // self._row_capacity
            self._slots[row].append(places[-1])
            self._ended[row] += 1
        index = np.array(places, np.int64)
        while self._pool_length < self._pool_used:
            self._pool_length *= 2
        self._pool.grow(self._pool_length)
        self._pool.write(index, {FRAMES: frames})
        self._lasts[positions] = 1 + index

    def _make_pool(self) -> None:
        """Begin with an empty pool."""
        self._pool = self._make_table(FIRST_POOL)
        self._pool.allocate(FRAMES, self._frame)
        self._pool_length, self._pool_used = FIRST_POOL, 0
        self._free: list[int] = []
        for slots in self._slots:
            slots.clear()


def frames_per_row(row_capacity: int, stack_size: int) -> int:
    """Frames that `row_capacity` transitions in a row need, their history included."""
    return row_capacity + stack_size
