"""What the rows of a batch have been told and not yet answered."""

from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ActionError
from coach_rl.core.records import Action, FloatArray, IntArray
from coach_rl.core.state import State


class Inbox:
    """Checked actions by row, each row at most one at a time.

    Args:
        action_space: Where one row's action lies.
        num_envs: N.
    """

    def __init__(self, action_space: spaces.Box, num_envs: int) -> None:
        self._space = action_space
        self._all_rows: IntArray = np.arange(num_envs)
        self._open = np.zeros(num_envs, np.bool_)
        self._sent: list[tuple[IntArray, FloatArray]] = []

    def __bool__(self) -> bool:
        return bool(self._sent)

    def put(self, action: Action, rows: IntArray | None) -> None:
        """Keep a copy of some rows' actions.

        Args:
            action: [R, A].
            rows: [R]; None: all.

        Raises:
            ActionError: An action does not fit the space, or a row is open or does not exist.
        """
        chosen = self._all_rows if rows is None else self._checked_rows(rows)
        actions = self._checked_action(action, chosen)
        if self._sent and self._open[chosen].any():
            row = int(chosen[self._open[chosen]][0])
            raise ActionError(f"row {row} still has an open decision; call recv() before sending")
        self._open[chosen] = True
        self._sent.append((chosen, actions))

    def take(self) -> tuple[IntArray, FloatArray]:
        """Rows and actions in the order of sending; leaves nothing behind."""
        rows, actions = self._joined()
        self.clear()
        return rows, actions

    def clear(self) -> None:
        """Forget what is open."""
        self._sent.clear()
        self._open[:] = False

    def state_dict(self) -> State:
        """What is open."""
        if not self._sent:
            return {"rows": self._all_rows[:0].copy(), "action": None}
        rows, actions = self._joined()
        return {"rows": rows.copy(), "action": actions.copy()}

    def load_state_dict(self, state: State) -> None:
        """Take over what `state_dict` returned."""
        self.clear()
        if state["action"] is not None:
            rows = np.array(state["rows"], np.int64)
            self._sent.append((rows, np.array(state["action"])))
            self._open[rows] = True

    def _joined(self) -> tuple[IntArray, FloatArray]:
        if len(self._sent) == 1:
            return self._sent[0]
        rows, actions = zip(*self._sent, strict=True)
        return np.concatenate(rows), np.concatenate(actions)

    def _checked_rows(self, rows: Any) -> IntArray:
        """A copy of the row numbers."""
        index: IntArray = np.array(rows)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            raise ActionError(f"rows must be a list of whole numbers, got {rows!r}")
        chosen, count = index.tolist(), len(self._all_rows)
        if chosen and not (min(chosen) >= 0 and max(chosen) < count):
            raise ActionError(f"there are rows 0 to {count - 1}, got {chosen}")
        if len(set(chosen)) < len(chosen):
            raise ActionError(f"each row can be sent one action at a time, got rows {chosen}")
        return index.astype(np.int64, copy=False)

    def _checked_action(self, action: Any, rows: IntArray) -> FloatArray:
        """A copy of the actions as floats, [R, A]."""
        if isinstance(action, dict):
            raise ActionError(f"the action must be one array, got keys {sorted(action)}")
        actions: FloatArray = np.array(action)
        if actions.dtype != np.float32 and actions.dtype != np.float64:
            actions = actions.astype(np.float64)
        shape = (len(rows), *self._space.shape)
        if actions.shape != shape:
            raise ActionError(
                f"the actions of {len(rows)} rows have shape {shape}, got {actions.shape}"
            )
        inside = (actions >= self._space.low) & (actions <= self._space.high)  # false for NaN
        if np.count_nonzero(inside) < inside.size:  # several times faster than `all`
            index = int(np.flatnonzero(~inside.all(axis=1))[0])
            raise ActionError(
                f"action {actions[index]} of row {rows[index]} lies outside {self._space}; "
                "clip it, or let an OutputFilter do so"
            )
        return actions
