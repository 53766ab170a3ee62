"""Rollout memory of on-policy agents: transitions in order, from rows that may be irregular."""

from dataclasses import dataclass

import numpy as np
import torch

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array, BoolArray, IntArray, Transition
from coach_rl.core.state import State
from coach_rl.memories.batches import (
    ACTIONS,
    DURATIONS,
    FOLLOWS,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    TERMINATED,
    TRUNCATED,
    Rollout,
    columns_of,
    extras_of,
    shown_as,
    under,
)


@dataclass(frozen=True, kw_only=True)
class RowGrid:
    """Positions of each row's transitions in a memory, time-major and padded.

    T is the longest row's number of transitions, N the number of rows that have any.
    """

    index: IntArray
    """Position in the memory's columns, [T, N]; 0 where padded."""
    valid: BoolArray
    """False where padded, [T, N]."""


class RolloutMemory:
    """Preallocated columns that fill up and are cleared as a whole.

    A column is allocated with its first value, in that value's dtype. Slots that hold no transition
    repeat an earlier value: networks are evaluated on whole columns, whose size never changes, and
    zeros may lie outside an observation space.

    Args:
        capacity: Transitions it can hold.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.columns: dict[str, Array] = {}
        """[capacity, ...] each, by path; only the first `len(self)` entries are valid."""
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def rollout(self, device: torch.device) -> Rollout:
        """All columns as tensors; their first `len(self)` entries are valid."""
        columns = {path: torch.from_numpy(each).to(device) for path, each in self.columns.items()}
        return Rollout(
            observation=under(OBSERVATIONS, columns),
            action=columns[ACTIONS],
            reward=columns[REWARDS],
            next_observation=under(NEXT_OBSERVATIONS, columns),
            terminated=columns[TERMINATED],
            truncated=columns[TRUNCATED],
            duration=columns[DURATIONS],
            follows=columns[FOLLOWS],
            extras=extras_of(columns),
        )

    @property
    def environment_steps(self) -> int:
        """Number of simulator steps that the transitions took, over all rows."""
        return int(self.columns[DURATIONS][: self._length].sum()) if self._length else 0

    def add(self, transition: Transition) -> None:
        """Append R transitions; RunError when they don't fit."""
        count = len(transition.rows)
        if not count:
            return
        end = self._length + count
        if end > self.capacity:
            raise RunError(
                f"rollout memory of {self.capacity} transitions is full: "
                f"{self._length} kept, {count} more came"
            )
        columns = columns_of(transition)
        columns[ROWS] = transition.rows
        columns[FOLLOWS] = transition.follows_or_all
        for name, values in transition.extras.items():
            columns[f"/{name}"] = values
        for path, values in columns.items():
            column = self.columns.get(path)
            if column is None:
                column = self._allocate(path, values)
            column[self._length : end] = values
        self._length = end

    def truncate(self, rows: IntArray) -> None:
        """Mark the last transition of each of these rows as truncated, unless it ended anyway."""
        if not self._length:
            return
        kept = self.columns[ROWS][: self._length]
        for row in rows.tolist():
            places = np.flatnonzero(kept == row)
            if len(places) and not self.columns[TERMINATED][places[-1]]:
                self.columns[TRUNCATED][places[-1]] = True

    def clear(self) -> None:
        """Remove all transitions; the columns stay allocated."""
        self._length = 0

    def grid(self) -> RowGrid:
        """The order of each row's transitions."""
        rows = self.columns[ROWS][: self._length]
        order = np.argsort(rows, kind="stable")
        _, begins, counts = np.unique(rows[order], return_index=True, return_counts=True)
        time = np.arange(counts.max())[:, None]  # [T, 1]
        valid = time < counts  # [T, N]
        index = order[np.where(valid, begins + time, 0)]
        return RowGrid(index=index, valid=valid)

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """Return arrays [N, T, ...] by flat path; `/mask` [N, T] is false where a row is shorter.

        Args:
            agent: Under whose name actions and extras are shown.

        Returns:
            The paths of `memories.batches.shown_as`; N counts the rows that have any transition.
        """
        grid = self.grid()
        index = grid.index.T
        arrays = {shown_as(path, agent): column[index] for path, column in self.columns.items()}
        return {**arrays, MASK: grid.valid.T.copy()}

    def state_dict(self) -> State:
        kept = {path: column[: self._length].copy() for path, column in self.columns.items()}
        return {"length": self._length, "columns": kept}

    def load_state_dict(self, state: State) -> None:
        self._length = state["length"]
        if not self._length:  # the first transition allocates
            return
        for path, values in state["columns"].items():
            column = self.columns.get(path)
            if column is None:
                column = self._allocate(path, values)
            column[: self._length] = values

    def _allocate(self, path: str, values: Array) -> Array:
        column = np.zeros((self.capacity, *values.shape[1:]), values.dtype)
        column[self._length :] = values[0]
        self.columns[path] = column
        return column
