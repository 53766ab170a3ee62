"""On-policy memory: transitions in the order they came, from rows that may be irregular."""

from dataclasses import dataclass

import numpy as np

from coach_rl.core.errors import RunError
from coach_rl.core.records import Array, BoolArray, IntArray, Transition
from coach_rl.core.state import State
from coach_rl.memories.trajectories import shown_as


@dataclass(frozen=True, kw_only=True)
class RowGrid:
    """Where each row's transitions lie in a memory, time-major and padded.

    T is the longest row's number of transitions, N the number of rows that have any.
    """

    index: IntArray
    """Position in the memory's columns, [T, N]; 0 where padded."""
    valid: BoolArray
    """False where padded, [T, N]."""


class RolloutMemory:
    """Preallocated columns that fill up and are cleared as a whole.

    Columns are named by flat paths: `/rows`, `/observations/<key>`, `/next_observations/<key>`,
    `/actions`, `/rewards`, `/terminated`, `/truncated`, `/durations`, `/follows`, and one per extra
    of the agent. They are allocated when their first value comes, with its dtype.

    Args:
        capacity: Transitions it can hold.
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._columns: dict[str, Array] = {}
        self._length = 0

    def __len__(self) -> int:
        return self._length

    @property
    def columns(self) -> dict[str, Array]:
        """Every column, [capacity, ...]; only the first `len(self)` rows mean anything."""
        return self._columns

    @property
    def environment_steps(self) -> int:
        """How many steps of the simulator the transitions took, over all rows."""
        return int(self._columns["/durations"][: self._length].sum()) if self._length else 0

    def add(self, transition: Transition) -> None:
        """Append R transitions; RunError when they don't fit."""
        count = len(transition.rows)
        end = self._length + count
        if end > self.capacity:
            raise RunError(
                f"rollout memory of {self.capacity} transitions is full: "
                f"{self._length} kept, {count} more came"
            )
        for path, values in _columns_of(transition).items():
            column = self._columns.get(path)
            if column is None:
                column = self._allocate(path, values)
            column[self._length : end] = values
        self._length = end

    def clear(self) -> None:
        """Forget everything; the columns stay allocated."""
        self._length = 0

    def grid(self) -> RowGrid:
        """The order of each row's transitions."""
        rows = self._columns["/rows"][: self._length]
        order = np.argsort(rows, kind="stable")
        _, begins, counts = np.unique(rows[order], return_index=True, return_counts=True)
        time = np.arange(counts.max())[:, None]  # [T, 1]
        valid = time < counts  # [T, N]
        index = order[np.where(valid, begins + time, 0)]
        return RowGrid(index=index, valid=valid)

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """By flat path, [N, T, ...] each; `/mask` [N, T] is false where a row is shorter.

        Args:
            agent: Under whose name actions and extras are shown.

        Returns:
            The paths of `memories.trajectories`; N counts the rows that have any transition.
        """
        grid = self.grid()
        index = grid.index.T
        arrays = {shown_as(path, agent): column[index] for path, column in self._columns.items()}
        return {**arrays, "/mask": grid.valid.T.copy()}

    def state_dict(self) -> State:
        """The transitions kept."""
        kept = {path: column[: self._length].copy() for path, column in self._columns.items()}
        return {"length": self._length, "columns": kept}

    def load_state_dict(self, state: State) -> None:
        """Take over the transitions."""
        self._length = state["length"]
        for path, values in state["columns"].items():
            column = self._columns.get(path)
            if column is None:
                column = self._allocate(path, values)
            column[: self._length] = values

    def _allocate(self, path: str, values: Array) -> Array:
        self._columns[path] = np.zeros((self.capacity, *values.shape[1:]), values.dtype)
        return self._columns[path]


def _columns_of(transition: Transition) -> dict[str, Array]:
    columns = {
        "/rows": transition.rows,
        "/rewards": transition.reward,
        "/terminated": transition.terminated,
        "/truncated": transition.truncated,
        "/durations": transition.duration,
        "/follows": transition.follows_or_all,
    }
    for key, values in transition.observation.items():
        columns[f"/observations/{key}"] = values
    for key, values in transition.next_observation.items():
        columns[f"/next_observations/{key}"] = values
    if isinstance(transition.action, dict):
        columns.update({f"/actions/{key}": part for key, part in transition.action.items()})
    else:
        columns["/actions"] = transition.action
    columns.update({f"/{name}": values for name, values in transition.extras.items()})
    return columns
