"""Transitions in a ring per row: within a row time is contiguous, rows may be irregular.

A transition of step t (its absolute number in its row, never used twice) is at position
`row * C + t % C`, C the capacity of a row; it is overwritten by step t + C. A row with `count`
transitions so far holds steps [max(0, count - C), count). Episodes are intervals [begin, end) of
steps; both are stored for each position, `end` as `OPEN` until the episode is over.
"""

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np

from coach_rl.core.errors import CheckpointError, RunError
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.state import Appended, State
from coach_rl.memories.batches import (
    DURATIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    Columns,
)
from coach_rl.memories.stacked_column import StackedColumn, StackedColumnKind
from coach_rl.memories.tables import Field, Tables, entry_dtype, require_kept

LEDGER = {
    REWARDS: Field((), np.float32),
    TERMINATED: Field((), np.bool_),
    TRUNCATED: Field((), np.bool_),
    DURATIONS: Field((), np.int32),
}
"""Columns of every transition; always on the host, where n-step returns are computed."""
OPEN = 0
"""The end of an episode that continues."""
BEGINS = "/begins"
"""Saved column: the first step of each transition's episode."""
OLDEST_FRAMES = "/oldest_frames/"
"""Saved column, an observation key follows: the earliest frame of each transition's stacks."""


class RingStore:
    """N rings of C transitions each.

    Args:
        num_rows: N.
        row_capacity: C.
        tables: Makes tables where the big columns are to lie.
        fields: The big columns: observations, actions and whatever belongs to them.
        ledger: Small columns on the host beside those of `LEDGER`.
        stacks: Columns of observations that are kept in a way of their own, by key; their last
            axis is a stack of frames, oldest first.
    """

    def __init__(
        self,
        *,
        num_rows: int,
        row_capacity: int,
        tables: Tables,
        fields: Mapping[str, Field],
        ledger: Mapping[str, Field],
        stacks: Mapping[str, tuple[StackedColumnKind, Field]],
    ) -> None:
        self.num_rows = num_rows
        self.row_capacity = row_capacity
        length = num_rows * row_capacity
        self.table = tables.ring(num_rows, row_capacity, self._saved_on_host)
        for path, field in fields.items():
            self.table.allocate(path, field)
        self.ledger: dict[str, Array] = {
            path: np.zeros((length, *field.shape), field.dtype)
            for path, field in (LEDGER | dict(ledger)).items()
        }
        self.counts: IntArray = np.zeros(num_rows, np.int64)
        """Transitions ever added per row, which is the step of the next one, [N]."""
        self._length = 0
        self._generation = 0
        self._begins: IntArray = np.zeros(length, np.int64)
        self._ends: IntArray = np.zeros(length, np.int64)
        self._row_begins: IntArray = np.zeros(num_rows, np.int64)
        self._cut: list[tuple[int, int]] = []
        """Rows and steps of transitions that were truncated after they had been added."""
        self._framed: dict[str, tuple[StackedColumn, bool]] = {}
        self._rings: dict[str, StackedColumn] = {}
        for key, (kind, field) in stacks.items():
            ring = kind(
                key=key,
                field=field,
                num_rows=num_rows,
                row_capacity=row_capacity,
                tables=tables,
            )
            self._rings[key] = ring
            self._framed[f"{OBSERVATIONS}{key}"] = ring, False
            self._framed[f"{NEXT_OBSERVATIONS}{key}"] = ring, True

    def __len__(self) -> int:
        return self._length

    @property
    def fields(self) -> dict[str, Field]:
        """Every column outside the ledger that `take` can hand out."""
        return self.table.fields | {path: ring.field for path, (ring, _) in self._framed.items()}

    @property
    def sizes(self) -> IntArray:
        """Transitions kept per row, [N]; they are the row's first so many slots."""
        return np.minimum(self.counts, self.row_capacity)

    def add(self, rows: IntArray, values: Mapping[str, Array]) -> IntArray:
        """Store a transition of each of R different rows.

        Args:
            rows: [R].
            values: [R, ...] for each column, the ledger's and the framed ones as well.

        Returns:
            Their positions, [R].
        """
        steps = self.counts[rows]
        begins = self._row_begins[rows]
        positions = rows * self.row_capacity + steps % self.row_capacity
        if self._rings:
            values = self._add_frames(rows, steps, positions, steps == begins, values)
        for path, column in self.ledger.items():
            column[positions] = values[path]
        self.table.write(positions, values)
        self._begins[positions] = begins
        self._ends[positions] = OPEN
        self.counts[rows] = steps + 1
        self._length += int(np.count_nonzero(steps < self.row_capacity))
        ended = np.flatnonzero(values[TERMINATED] | values[TRUNCATED])
        for index in ended:
            self._close(int(rows[index]), int(steps[index]) + 1)
        return positions

    def truncate(self, rows: IntArray) -> None:
        """Truncate the open episodes of these rows at their newest transitions."""
        rows = rows[self.counts[rows] > self._row_begins[rows]]
        ends = self.counts[rows]
        positions = self.positions_of(rows, ends - 1)
        self.ledger[TRUNCATED][positions] = True
        for ring in self._rings.values():
            ring.truncate(rows, ends, positions)
        cut = list(zip(rows.tolist(), ends.tolist(), strict=True))
        self._cut = [*self._cut_kept(), *((row, end - 1) for row, end in cut)]
        for row, end in cut:
            self._close(row, end)

    def _cut_kept(self) -> list[tuple[int, int]]:
        """The transitions kept that `truncate` has changed."""
        oldest = self.counts - self.row_capacity
        return [(row, step) for row, step in self._cut if step >= oldest[row]]

    def extend(self, row: int, values: Mapping[str, Array]) -> IntArray:
        """Store T transitions of one row at once, T at most the row's capacity.

        Args:
            row: The row.
            values: [T, ...] for each column, in the order of time.

        Returns:
            Their positions, [T].
        """
        time = len(values[REWARDS])
        if self._rings:
            rows = np.array([row])
            single = [
                self.add(rows, {path: column[step : step + 1] for path, column in values.items()})
                for step in range(time)
            ]
            return np.concatenate(single) if single else np.zeros(0, np.int64)
        before = int(self.counts[row])
        steps: IntArray = before + np.arange(time)  # [T]
        positions = row * self.row_capacity + steps % self.row_capacity
        for path, column in self.ledger.items():
            column[positions] = values[path]
        self._ends[positions] = OPEN
        ended = np.flatnonzero(values[TERMINATED] | values[TRUNCATED])
        # Step i of the block is in episode number |{e in ended: e < i}| of those that begin below.
        begin_of = np.concatenate([[self._row_begins[row]], before + ended + 1])  # [E + 1]
        self._begins[positions] = begin_of[np.searchsorted(ended, np.arange(time), side="left")]
        self.table.write(positions, values)
        self.counts[row] += time
        self._length += min(before + time, self.row_capacity) - min(before, self.row_capacity)
        for index in ended:
            self._close(row, before + int(index) + 1)
        return positions

    def draw(self, rng: np.random.Generator, size: int) -> IntArray:
        """Positions [size], each transition kept equally likely; RunError when there is none."""
        if not self._length:
            raise RunError("the memory is empty; add transitions before sampling")
        numbers: IntArray = rng.integers(self._length, size=size)
        if self.num_rows == 1 or self._length == len(self._begins):
            return numbers
        return self._nth(numbers)

    def kept(self) -> IntArray:
        """The positions of all transitions kept, row by row, slot by slot."""
        begins = np.arange(self.num_rows) * self.row_capacity
        return np.concatenate(
            [np.arange(begin, begin + size) for begin, size in zip(begins, self.sizes, strict=True)]
        )

    def rows_of(self, positions: IntArray) -> IntArray:
        """The row of each position, [...]."""
        return positions // self.row_capacity

    def steps_of(self, positions: IntArray) -> IntArray:
        """The step at each position, [...]: the newest t <= count - 1 with t % C = slot."""
        rows, slots = np.divmod(positions, self.row_capacity)
        newest = self.counts[rows] - 1
        return newest - (newest - slots) % self.row_capacity

    def positions_of(self, rows: IntArray, steps: IntArray) -> IntArray:
        """Return the positions of the steps of rows, as long as they are kept, [...]."""
        return rows * self.row_capacity + steps % self.row_capacity

    def episodes_of(self, positions: IntArray) -> tuple[IntArray, IntArray]:
        """The kept part of the episode that each position belongs to.

        Returns:
            Its first step that is kept and the one after its last, [...] each; an episode that
            continues ends after its newest transition.
        """
        counts = self.counts[positions // self.row_capacity]
        first = np.maximum(self._begins[positions], counts - self.row_capacity)
        ends = self._ends[positions]
        return first, np.where(ends == OPEN, counts, ends)

    def first_steps_of(self, positions: IntArray) -> IntArray:
        """The first step of the episode that each position belongs to, kept or not, [...]."""
        return self._begins[positions]

    def take(self, paths: Sequence[str], positions: IntArray) -> Columns:
        """New tensors on the learner's device of columns outside the ledger, [..., *shape]."""
        if not self._framed:
            return self.table.take(paths, positions)
        batch = self.table.take([path for path in paths if path not in self._framed], positions)
        framed = [path for path in paths if path in self._framed]
        if framed:
            rows, steps = self.rows_of(positions), self.steps_of(positions)
            for path in framed:
                ring, is_next = self._framed[path]
                batch[path] = ring.take(rows, steps, positions, is_next=is_next)
        return batch

    def read(self, path: str, positions: IntArray) -> Array:
        """A copy on the host of any column at positions, [..., *shape]."""
        if path in self.ledger:
            return self.ledger[path].take(positions, axis=0)
        if path in self._framed:
            return np.asarray(self.take((path,), positions)[path].cpu().numpy())
        return self.table.read(path, positions)

    def clear(self) -> None:
        self.counts[:] = 0
        self._row_begins[:] = 0
        self._length = 0
        self._cut = []
        self._generation += 1
        self.table.clear()
        for ring in self._rings.values():
            ring.clear()

    def state_dict(self) -> State:
        """Everything kept.

        Transitions are `Appended`, as they never change but for those that `truncate` has cut.
        """
        return {
            "num_rows": self.num_rows,
            "row_capacity": self.row_capacity,
            "row_begins": self._row_begins.copy(),
            "cut": np.array(self._cut_kept(), np.int64).reshape(-1, 2),
            "transitions": Appended(
                dtype=entry_dtype(self._saved_fields()),
                first=self.counts - self.sizes,
                ends=self.counts.copy(),
                capacity=self.num_rows * self.row_capacity,
                read=partial(self._read_steps, self._generation),
                files=self.table.files(self.counts),
                generation=self._generation,
            ),
            "frames": {key: ring.state_dict(self.counts) for key, ring in self._rings.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Load a saved store; if its transitions were left out, change nothing.

        Raises:
            CheckpointError: The state is of another shape of store.
        """
        saved = state["num_rows"], state["row_capacity"]
        if saved != (self.num_rows, self.row_capacity):
            raise CheckpointError(
                f"the saved memory has {saved[0]} rows of {saved[1]} transitions, this one "
                f"{self.num_rows} of {self.row_capacity}; use the num_envs and capacity it was "
                "saved with"
            )
        transitions: Appended | None = state["transitions"]
        if transitions is None:
            return
        self._allocate_missing(transitions.dtype)
        host = self._saved_on_host()
        for positions, columns in self.table.load(transitions, self._positions):
            for path, column in host.items():
                column[positions] = columns[path]
        self._cut = [(row, step) for row, step in state["cut"].tolist()]
        for row, step in self._cut:
            self.ledger[TRUNCATED][row * self.row_capacity + step % self.row_capacity] = True
        self.counts[:] = transitions.ends
        self._row_begins[:] = state["row_begins"]
        self._length = int(self.sizes.sum())
        self._generation = transitions.generation
        kept = [
            self._positions(row, begin, end)
            for row, (begin, end) in enumerate(
                zip(self.counts - self.sizes, self.counts, strict=True)
            )
        ]
        for row, positions in enumerate(kept):
            self._restore_ends(row, positions)
        if self._rings:
            is_end = self.ledger[TERMINATED] | self.ledger[TRUNCATED]
            ended = [positions[is_end[positions]] for positions in kept]
            for key, ring in self._rings.items():
                ring.load_state_dict(state["frames"][key], transitions.ends, ended)

    def _positions(self, row: int, begin: int, end: int) -> IntArray:
        return row * self.row_capacity + np.arange(begin, end) % self.row_capacity

    def _saved_on_host(self) -> dict[str, Array]:
        """The saved columns that are not in the table, [N * C, ...] each."""
        oldest = {f"{OLDEST_FRAMES}{key}": ring.oldest for key, ring in self._rings.items()}
        return {**self.ledger, BEGINS: self._begins, **oldest}

    def _saved_fields(self) -> dict[str, Field]:
        """Every saved column."""
        host = self._saved_on_host().items()
        fields = {path: Field(column.shape[1:], column.dtype) for path, column in host}
        return fields | self.table.fields

    def _read_steps(self, generation: int, row: int, begin: int, end: int) -> dict[str, Array]:
        """The saved columns of the steps [begin, end) of a row, [T, ...] each."""
        require_kept(
            generation == self._generation and begin >= self.counts[row] - self.row_capacity
        )
        positions = self._positions(row, begin, end)
        host = {path: column[positions] for path, column in self._saved_on_host().items()}
        return host | {path: self.table.read(path, positions) for path in self.table.fields}

    def _allocate_missing(self, dtype: np.dtype[np.void]) -> None:
        """Allocate the columns that are otherwise allocated with the first transition."""
        known = self._saved_fields()
        for path in dtype.names or ():
            if path not in known:
                self.table.allocate(path, Field(dtype[path].shape, dtype[path].base))

    def _restore_ends(self, row: int, positions: IntArray) -> None:
        """Set the ends of the episodes at a row's positions, in order: the next one's begin."""
        count = int(self.counts[row])
        begins, episodes = np.unique(self._begins[positions], return_inverse=True)
        is_open = count > self._row_begins[row]
        ends = np.append(begins[1:], OPEN if is_open else count)
        self._ends[positions] = ends[episodes]

    def _nth(self, numbers: IntArray) -> IntArray:
        """Positions of the transitions with these numbers, counted row by row, [...].

        Number m is in the first row whose cumulative size exceeds m, in slot m - sum(sizes before).
        """
        sizes = self.sizes
        passed = np.cumsum(sizes)
        rows = np.searchsorted(passed, numbers, side="right")
        return rows * self.row_capacity + numbers - (passed - sizes)[rows]

    def _close(self, row: int, end: int) -> None:
        """End the row's open episode before step `end`, where the next begins."""
        oldest = max(int(self._row_begins[row]), int(self.counts[row]) - self.row_capacity)
        # Steps [oldest, end) are slots [slot, stop) modulo the capacity: one or two slices.
        base = row * self.row_capacity
        slot = oldest % self.row_capacity
        stop = slot + end - oldest
        self._ends[base + slot : base + min(stop, self.row_capacity)] = end
        if stop > self.row_capacity:
            self._ends[base : base + stop - self.row_capacity] = end
        self._row_begins[row] = end

    def _add_frames(
        self,
        rows: IntArray,
        steps: IntArray,
        positions: IntArray,
        starts: BoolArray,
        values: Mapping[str, Array],
    ) -> dict[str, Array]:
        """Store the frames; return the values without them."""
        ended = values[TERMINATED] | values[TRUNCATED]
        for key, ring in self._rings.items():
            ring.add(
                rows,
                steps,
                positions,
                starts=starts,
                ended=ended,
                stacks=values[f"{OBSERVATIONS}{key}"],
                next_stacks=values[f"{NEXT_OBSERVATIONS}{key}"],
            )
        return {path: column for path, column in values.items() if path not in self._framed}
