"""What every simulator keeps track of: which rows are open, their seeds, the answers it gives.

inbox = Inbox(action_space, num_envs=4)
inbox.start()                                   # after a reset
inbox.put(directive, rows)                      # checks everything, then marks the rows open
rows, action = inbox.take()                     # what is to be answered now
"""

from collections.abc import Mapping, Sequence

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import ActionError, CheckpointError, ParameterError
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.spaces import Space, check_actions


class Inbox:
    """The decisions that rows were sent and have not answered yet.

    Args:
        space: Where one row's action lies.
        num_envs: N.
    """

    def __init__(self, space: Space, *, num_envs: int) -> None:
        self._space = space
        self._num_envs = num_envs
        self._open = np.zeros(num_envs, np.bool_)
        self._sent: list[tuple[IntArray, Action]] = []
        self._refusal = "the environment was not reset yet; call reset first"

    def start(self) -> None:
        """Drop what is open and take decisions from now on."""
        self._open[:] = False
        self._sent.clear()
        self._refusal = ""

    def stop(self, refusal: str) -> None:
        """Drop what is open and refuse every decision with this line until the next `start`."""
        self.start()
        self._refusal = refusal

    @property
    def open(self) -> BoolArray:
        """[N] which rows have a decision they did not answer."""
        return self._open.copy()

    def hold(self, rows: IntArray) -> None:
        """Keep rows open that were taken: their answer comes later."""
        self._open[rows] = True

    def put(
        self, directive: Directive | Action, rows: IntArray | None = None
    ) -> tuple[IntArray, Action]:
        """Take a decision for these rows; nothing changes when it is refused.

        Args:
            directive: What to do, or the bare action.
            rows: [R]; None for all rows.

        Returns:
            The rows and copies of their actions in the dtype of the space, [R, ...].

        Raises:
            ActionError: The rows don't exist, repeat or are open, or an action lies outside.
        """
        if self._refusal:
            raise ActionError(self._refusal)
        index, opened = self._rows(rows)
        given = directive.action if isinstance(directive, Directive) else directive
        action = conformed(self._space, given, count=len(index))
        self._open |= opened
        self._sent.append((index, action))
        return index, action

    def take(self) -> tuple[IntArray, Action]:
        """The rows that are open with their actions, in the order sent; they are closed by this."""
        sent, self._sent = self._sent, []
        self._open[:] = False
        if len(sent) == 1:
            return sent[0]
        if not sent:
            return np.zeros(0, np.int64), no_actions(self._space)
        rows = np.concatenate([index for index, _ in sent])
        return rows, _concatenated([action for _, action in sent])

    def require_none_open(self) -> None:
        """Raise `CheckpointError` when a row has a decision it did not answer."""
        if self._open.any():
            raise CheckpointError(
                f"rows {np.flatnonzero(self._open).tolist()} have an open decision; "
                "call recv before saving the environment"
            )

    def _rows(self, rows: IntArray | None) -> tuple[IntArray, BoolArray]:
        opened = np.zeros(self._num_envs, np.bool_)
        if rows is None:
            index = np.arange(self._num_envs)
            opened[:] = True
        else:
            index = np.array(rows, np.int64)
            if index.ndim != 1 or not np.issubdtype(np.asarray(rows).dtype, np.integer):
                index = self._no_index(rows)
            if len(index) and (index.min() < 0 or index.max() >= self._num_envs):
                raise ActionError(
                    f"rows {index.tolist()} do not all exist; "
                    f"rows go from 0 to {self._num_envs - 1}"
                )
            opened[index] = True
            if opened.sum() != len(index):
                raise ActionError(f"rows {index.tolist()} name a row twice")
        if (self._open & opened).any():
            busy = np.flatnonzero(self._open & opened).tolist()
            raise ActionError(f"rows {busy} have an open decision; call recv before sending again")
        return index, opened

    @staticmethod
    def _no_index(rows: IntArray) -> IntArray:
        if np.shape(rows) == (0,):
            return np.zeros(0, np.int64)
        raise ActionError(f"rows must be a flat array of row numbers, got {rows!r}")


def conformed(space: Space, action: Action, *, count: int) -> Action:
    """A checked copy of the actions in the dtype of the space.

    Args:
        space: Where one row's action lies.
        action: [R, ...], or a dict of such arrays.
        count: R.

    Raises:
        ActionError: The action has another number of rows or lies outside the space.
    """
    given: Action
    if isinstance(action, Mapping):
        given = {key: np.asarray(part) for key, part in action.items()}
        lengths = {np.shape(part)[:1] for part in action.values()}
    else:
        given = np.asarray(action)
        lengths = {given.shape[:1]}
    if lengths - {(count,)}:
        got = sorted(length[0] if length else 0 for length in lengths)
        raise ActionError(f"{count} rows were sent {got} actions; send one action per row")
    if not count:
        return no_actions(space)
    check_actions(space, given)
    if isinstance(given, dict):
        assert isinstance(space, spaces.Dict)
        return {key: given[key].astype(part.dtype) for key, part in space.spaces.items()}
    return given.astype(space.dtype)


def no_actions(space: Space) -> Action:
    """Actions of zero rows."""
    if isinstance(space, spaces.Dict):
        return {
            key: np.zeros((0, *(part.shape or ())), part.dtype)
            for key, part in space.spaces.items()
        }
    return np.zeros((0, *(space.shape or ())), space.dtype)


def row_seeds(seed: int | Sequence[int] | None, num_envs: int) -> list[int | None]:
    """The seed of each row: `seed + i` for an integer, its own for a sequence, None to go on.

    Raises:
        ParameterError: A sequence of another length, or a negative seed.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, (int, np.integer)):
        seeds = [int(seed) + row for row in range(num_envs)]
    else:
        seeds = [int(row_seed) for row_seed in seed]
    if len(seeds) != num_envs:
        raise ParameterError(
            f"reset got {len(seeds)} seeds for {num_envs} rows; give one per row or one integer"
        )
    if min(seeds) < 0:
        raise ParameterError(f"seeds must be 0 or more, got {min(seeds)}")
    return [*seeds]


def reset_response(
    observation: Observation, *, num_envs: int, info: dict[str, Array] | None = None
) -> EnvResponse:
    """What a simulator answers to a reset: every row, duration 0, both observations equal."""
    return EnvResponse(
        rows=np.arange(num_envs),
        observation=observation,
        first_observation=dict(observation),
        reward=np.zeros(num_envs, np.float64),
        terminated=np.zeros(num_envs, np.bool_),
        truncated=np.zeros(num_envs, np.bool_),
        end=np.zeros(num_envs, np.uint8),
        duration=np.zeros(num_envs, np.int64),
        info=info or {},
    )


def step_response(
    rows: IntArray,
    *,
    observation: Observation,
    first_observation: Observation,
    reward: FloatArray,
    terminated: BoolArray,
    truncated: BoolArray,
    info: dict[str, Array],
) -> EnvResponse:
    """What a simulator answers to one step of these rows; works out `end` and `duration`."""
    return EnvResponse(
        rows=rows,
        observation=observation,
        first_observation=dict(first_observation),
        reward=reward,
        terminated=terminated,
        truncated=truncated,
        end=(terminated * np.uint8(End.TERMINATED)) | (truncated * np.uint8(End.TRUNCATED)),
        duration=np.ones(len(rows), np.int64),
        info=info,
    )


def _concatenated(actions: list[Action]) -> Action:
    dicts = [action for action in actions if isinstance(action, dict)]
    if dicts:
        return {key: np.concatenate([action[key] for action in dicts]) for key in dicts[0]}
    return np.concatenate([action for action in actions if not isinstance(action, dict)])
