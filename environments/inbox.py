"""Bookkeeping of simulators: open decisions of rows, and the seeds of rows.

inbox = Inbox(action_space, num_envs=4)
inbox.start()                                   # after a reset
inbox.put(directive, rows)                      # checks, then stores a copy
rows, action = inbox.take()                     # the decisions to answer now
"""

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ActionError, CheckpointError, ParameterError
from coach_rl.core.records import Action, Array, BoolArray, Directive, FloatArray, IntArray
from coach_rl.core.shown_text import shown_value
from coach_rl.core.spaces import Space, check_actions, check_counts
from coach_rl.core.state import State


class Inbox:
    """Decisions that were sent to rows and not answered yet, at most one per row.

    A simulator processes decisions in `recv` only, so an open decision is a row number and an
    action. It is saved with the simulator and still open when the state is loaded.

    Args:
        space: The space of one row's action.
        num_envs: N.
    """

    def __init__(self, space: Space, *, num_envs: int) -> None:
        self._space = space
        self._all_rows: IntArray = np.arange(num_envs)
        self._open = np.zeros(num_envs, np.bool_)
        self._sent: list[tuple[IntArray, Action]] = []
        self._refusal = "the environment was not reset yet; call reset first"

    @property
    def is_started(self) -> bool:
        """True if decisions are accepted."""
        return not self._refusal

    @property
    def open(self) -> BoolArray:
        """[N] whether each row has an open decision."""
        return self._open.copy()

    def start(self) -> None:
        """Drop open decisions and accept new ones."""
        self._open[:] = False
        self._sent.clear()
        self._refusal = ""

    def stop(self, refusal: str) -> None:
        """Drop open decisions, and refuse new ones with this message until the next `start`."""
        self.start()
        self._refusal = refusal

    def stop_after(self, error: BaseException) -> None:
        """Refuse decisions until the next reset, as only some rows may have stepped."""
        self.stop(f"the environment failed ({shown_value(error, form=str)}); call reset first")

    def put(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Store a copy of a decision for these rows; nothing changes if it is refused.

        Args:
            directive: The directive, or its action alone.
            rows: [R]; None for all rows.

        Raises:
            ActionError: The rows don't exist, repeat or are open, or an action lies outside.
        """
        if self._refusal:
            raise ActionError(self._refusal)
        index = self._all_rows.copy() if rows is None else self._checked_rows(rows)
        action = directive.action if isinstance(directive, Directive) else directive
        conformed = self._conformed(action, index)
        if np.count_nonzero(self._open):
            busy = index[self._open[index]].tolist()
            if busy:
                raise ActionError(
                    f"rows {busy} have an open decision; call recv before sending again"
                )
        self._open[index] = True
        self._sent.append((index, conformed))

    def take(self) -> tuple[IntArray, Action]:
        """Open rows and their actions in the order sent; they are closed."""
        taken = self._sent[0] if len(self._sent) == 1 else self._joined()
        self._sent.clear()
        self._open[:] = False
        return taken

    def hold(self, rows: IntArray) -> None:
        """Reopen rows that were taken, for a later answer."""
        self._open[rows] = True

    def state_dict(self) -> State:
        """Open decisions, and whether decisions are accepted."""
        rows, action = self._joined()
        parts = action.values() if isinstance(action, dict) else [action]
        return {
            "started": self.is_started,
            "rows": rows.copy(),
            "actions": {str(index): part.copy() for index, part in enumerate(parts)},
        }

    def load_state_dict(self, state: State) -> None:
        self.stop("the environment was saved while it had no episode; call reset first")
        if not state["started"]:
            return
        self.start()
        rows = np.array(state["rows"], np.int64)
        parts = [np.array(state["actions"][str(index)]) for index in range(len(state["actions"]))]
        action: Action = parts[0]
        if isinstance(self._space, spaces.Dict):
            action = dict(zip(self._space.spaces, parts, strict=True))
        if len(rows):
            self._sent.append((rows, action))
            self._open[rows] = True

    def _joined(self) -> tuple[IntArray, Action]:
        if len(self._sent) == 1:
            return self._sent[0]
        if not self._sent:
            return self._all_rows[:0], _no_actions(self._space)
        rows, actions = zip(*self._sent, strict=True)
        if isinstance(actions[0], dict):
            joined = {key: np.concatenate([part[key] for part in actions]) for key in actions[0]}
            return np.concatenate(rows), joined
        return np.concatenate(rows), np.concatenate(actions)

    def _checked_rows(self, rows: IntArray) -> IntArray:
        """A copy of the row numbers."""
        index: Array = np.array(rows)
        if index.ndim != 1 or index.dtype.kind not in "iu":
            if index.shape == (0,):
                return self._all_rows[:0]
            raise ActionError(f"rows must be a flat array of row numbers, got {rows!r}")
        chosen = index.tolist()
        count = len(self._all_rows)
        if chosen and (min(chosen) < 0 or max(chosen) >= count):
            raise ActionError(f"rows {chosen} do not all exist; rows go from 0 to {count - 1}")
        if len(set(chosen)) < len(chosen):
            raise ActionError(f"rows {chosen} name a row twice")
        return index if index.dtype == np.int64 else index.astype(np.int64)

    def _conformed(self, action: Action, rows: IntArray) -> Action:
        """A checked copy of the actions of these rows in the dtype of the space."""
        count = len(rows)
        if isinstance(action, dict):
            given: Action = {key: np.asarray(part) for key, part in action.items()}
        else:
            given = np.asarray(action)
        check_counts(given, count)
        if not count:
            return _no_actions(self._space)
        check_actions(self._space, given, rows)
        if isinstance(given, dict):
            assert isinstance(self._space, spaces.Dict)
            return {key: given[key].astype(part.dtype) for key, part in self._space.spaces.items()}
        return given.astype(self._space.dtype)


class FloatInbox(Inbox):
    """An inbox for a Box of floats: four times as fast, and without rounding.

    Actions keep the precision in which they are sent, as in Gymnasium's MuJoCo environments.
    """

    _space: spaces.Box

    def _conformed(self, action: Action, rows: IntArray) -> FloatArray:
        """A checked copy of the actions of these rows as float32 or float64, [R, A]."""
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
            check_actions(self._space, actions, rows)
        return actions


def row_seeds(seed: int | Sequence[int] | None, num_envs: int) -> list[int] | None:
    """The seed of each row: `seed + i` for an integer, its own for a sequence; None for None.

    Raises:
        ParameterError: The seeds are no whole numbers of 0 or more, one per row.
    """
    if seed is None:
        return None
    if isinstance(seed, int | np.integer):
        seeds = [*range(seed, seed + num_envs)]
    else:
        seeds = list(seed) if np.iterable(seed) else [seed]
    for one in seeds:
        if not isinstance(one, int | np.integer) or one < 0:
            raise ParameterError(f"a seed must be a whole number of 0 or more, got {seed!r}")
    if len(seeds) != num_envs:
        raise ParameterError(
            f"reset got {len(seeds)} seeds for {num_envs} rows; give one per row or one integer"
        )
    return [*map(int, seeds)]


def require_rows(saved: int, num_envs: int) -> None:
    """Raise `CheckpointError` unless the saved environment has as many rows as this one."""
    if saved != num_envs:
        raise CheckpointError(
            f"the saved environment has {saved} rows, this one {num_envs}; build it with as many"
        )


def _no_actions(space: Space) -> Action:
    """Actions of zero rows."""
    if isinstance(space, spaces.Dict):
        return {
            key: np.zeros((0, *(part.shape or ())), part.dtype)
            for key, part in space.spaces.items()
        }
    return np.zeros((0, *(space.shape or ())), space.dtype)
