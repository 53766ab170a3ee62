"""Stacks of frames of which each frame is kept once.

A row's frames stand in a ring by the step at which they were the newest: frame `step` is the newest
of the observation of that step, frame `step + 1` that of its next observation. Only the true last
frame of an episode has no place there, as the next episode's first frame takes it; it goes to a
pool.
"""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.state import State
from coach_rl.memories.tables import Field, Table

FRAMES = "frames"
FIRST_POOL = 64
"""Last frames there is room for at first; the pool doubles when it is full."""


class FrameRing:
    """The frames of one observation key.

    Args:
        key: The observation key, for errors.
        field: Of a whole stack [..., k], oldest frame first.
        num_rows: N.
        row_capacity: Transitions kept per row, C.
        make_table: Makes a table of so many entries, where the frames are to lie.
    """

    def __init__(
        self,
        *,
        key: str,
        field: Field,
        num_rows: int,
        row_capacity: int,
        make_table: Callable[[int], Table],
    ) -> None:
        self.key, self.field = key, field
        self._row_capacity = row_capacity
        self._size = field.shape[-1]
        self._length = frames_per_row(row_capacity, self._size)
        frame = Field(field.shape[:-1], field.dtype)
        self._frames, self._pool = make_table(num_rows * self._length), make_table(FIRST_POOL)
        self._frames.allocate(FRAMES, frame)
        self._pool.allocate(FRAMES, frame)
        self._pool_length, self._pool_used = FIRST_POOL, 0
        self._free: list[int] = []
        self._oldest: IntArray = np.zeros(num_rows * row_capacity, np.int64)
        """The earliest frame that the stacks of each position may reach back to."""
        self._lasts: IntArray = np.zeros(num_rows * row_capacity, np.int64)
        """1 + the slot, by position, of its episode's last frame in the pool; 0: not the last."""
        self._row_oldest: IntArray = np.zeros(num_rows, np.int64)

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
        """Keep the frames of transitions; each array [R, ...].

        Raises:
            RunError: An episode starts with a stack that is neither filled with one frame nor goes
                on from the stack before it, so that it could not be put together again.
        """
        for index in np.flatnonzero(starts):
            self._start(int(rows[index]), int(steps[index]), stacks[index])
        self._release(positions)
        self._oldest[positions] = self._row_oldest[rows]
        newest = next_stacks[..., -1]
        self._write(rows, steps + 1, newest)
        if ended.any():
            self._lasts[positions[ended]] = 1 + self._keep_lasts(newest[ended])

    def end_episode(self, row: int, step: int, position: int) -> None:
        """The frame of `step` in a row is the last of the episode of the transition before it."""
        last = self._frames.read(FRAMES, np.array([row * self._length + step % self._length]))
        self._lasts[position] = 1 + self._keep_lasts(last)[0]

    def take(
        self, rows: IntArray, steps: IntArray, positions: IntArray, *, is_next: bool
    ) -> Tensor:
        """The stacks [B, ..., k] of observations, or of next observations."""
        wanted = (steps + is_next)[:, None] + np.arange(1 - self._size, 1)  # [B, k]
        wanted = np.maximum(wanted, self._oldest[positions][:, None])
        index = rows[:, None] * self._length + wanted % self._length
        frames = self._frames.take((FRAMES,), index)[FRAMES]  # [B, k, ...]
        if is_next:
            lasts = self._lasts[positions]
            ended = np.flatnonzero(lasts)
            if len(ended):
                true_lasts = self._pool.take((FRAMES,), lasts[ended] - 1)[FRAMES]
                frames[torch.from_numpy(ended), -1] = true_lasts
        return frames.movedim(1, -1)

    def clear(self) -> None:
        """Forget everything."""
        self._lasts[:] = 0
        self._row_oldest[:] = 0
        self._free, self._pool_used = [], 0

    def state_dict(self, counts: IntArray, kept: IntArray) -> State:
        """Every frame that a kept transition needs, and the pool.

        Args:
            counts: Transitions ever added per row, [N].
            kept: Positions of the transitions kept.
        """
        return {
            "frames": self._frames.read(FRAMES, self._in_use(counts)),
            "pool": self._pool.read(FRAMES, np.arange(self._pool_used)),
            "free": np.array(self._free, np.int64),
            "oldest": self._oldest[kept],
            "lasts": self._lasts[kept],
            "row_oldest": self._row_oldest.copy(),
        }

    def load_state_dict(self, state: State, counts: IntArray, kept: IntArray) -> None:
        """Take over what `state_dict` returned."""
        self.clear()
        self._frames.write(self._in_use(counts), {FRAMES: state["frames"]})
        self._pool_used = len(state["pool"])
        self._make_room()
        self._pool.write(np.arange(self._pool_used), {FRAMES: state["pool"]})
        self._free = state["free"].tolist()
        self._oldest[kept], self._lasts[kept] = state["oldest"], state["lasts"]
        self._row_oldest[:] = state["row_oldest"]

    def _start(self, row: int, step: int, stack: Array) -> None:
        """Begin an episode with a stack [..., k]."""
        rows = np.full(self._size, row)
        if step == 0:  # nothing was seen before: the stack may hold anything
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
                "repeats one frame nor goes on from the stack before it; frame_stack takes keys "
                "stacked by ObservationStackingFilter along the last axis: leave this one out"
            )

    def _write(self, rows: IntArray, steps: IntArray, frames: Array) -> None:
        self._frames.write(rows * self._length + steps % self._length, {FRAMES: frames})

    def _release(self, positions: IntArray) -> None:
        """Give back the last frames of transitions that are overwritten."""
        lasts = self._lasts[positions]
        used = lasts[lasts > 0]
        if len(used):
            self._free.extend((used - 1).tolist())
        self._lasts[positions] = 0

    def _keep_lasts(self, frames: Array) -> IntArray:
        """Write frames [K, ...] to the pool and return their slots, [K]."""
        places = []
        for _ in range(len(frames)):
            if not self._free:
                self._free.append(self._pool_used)
                self._pool_used += 1
            places.append(self._free.pop())
        self._make_room()
        index = np.array(places, np.int64)
        self._pool.write(index, {FRAMES: frames})
        return index

    def _make_room(self) -> None:
        while self._pool_length < self._pool_used:
            self._pool_length *= 2
        self._pool.grow(self._pool_length)

    def _in_use(self, counts: IntArray) -> IntArray:
        """Return the slots of the frames that kept transitions need."""
        places = []
        for row, count in enumerate(counts.tolist()):
            if count:
                oldest = max(0, count - self._row_capacity) - self._size + 1
                places.append(row * self._length + np.arange(oldest, count + 1) % self._length)
        return np.concatenate(places) if places else np.zeros(0, np.int64)


def frames_per_row(row_capacity: int, stack_size: int) -> int:
    """Frames that `row_capacity` transitions in a row need, their history included."""
    return row_capacity + stack_size
