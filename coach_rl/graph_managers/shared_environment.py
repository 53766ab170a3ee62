"""Environments that the processes of a run share out: each steps its own block of rows.

Rows keep their numbers, seeds and order, so levels and agents see what they would see in one
process. Processes answer together: all have the same answers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from coach_rl.core.errors import CheckpointError, CoachError, EnvironmentFault
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import (
    Action,
    Directive,
    EnvResponse,
    IntArray,
    joined_blocks,
)
from coach_rl.core.runtime import Order, ProcessGroup
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State

Value = TypeVar("Value")


class SharedEnvironment:
    """N rows, of which this process steps N / K.

    Args:
        own: This process's rows.
        group: The K processes.
    """

    def __init__(self, own: Environment, group: ProcessGroup) -> None:
        self._own, self._group = own, group
        self._rows = np.arange(own.num_envs) + group.rank * own.num_envs

    @property
    def num_envs(self) -> int:
        return self._own.num_envs * self._group.size

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self._own.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Reset all rows, each with the seed it would have in one process."""
        if isinstance(seed, int):
            seed = range(seed, seed + self.num_envs)
        seeds = None if seed is None else [seed[row] for row in self._rows.tolist()]
        return self._joined_answer(lambda: self._own.reset(seeds))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Send actions or directives to this process's rows among these."""
        sent = directive if isinstance(directive, Directive) else Directive(action=directive)
        rows = np.arange(self.num_envs) if rows is None else rows
        mine = np.isin(rows, self._rows)
        if not mine.any():
            return
        if not mine.all():
            sent = sent.rows_of(mine)
        self._own.send(sent, rows[mine] - self._rows[0])

    def recv(self) -> EnvResponse:
        """The rows of all processes that have answered."""
        return self._joined_answer(self._own.recv)

    def state_dict(self) -> State:
        """The states of all processes' rows; the leading process requests those of the others."""
        self._group.announce(Order.STATE)
        return {"processes": self._gathered(self._own.state_dict, CheckpointError)}

    def load_state_dict(self, state: State) -> None:
        """Take the part of this process, of a state saved by as many."""
        self._own.load_state_dict(state["processes"][self._group.rank])

    def close(self) -> None:
        """Close this process's environments."""
        self._own.close()

    def _joined_answer(self, answer: Callable[[], EnvResponse]) -> EnvResponse:
        """The joined answer of all processes' rows."""
        parts = []
        for rank, part in enumerate(self._gathered(answer, EnvironmentFault)):
            first = rank * self._own.num_envs
            faults = tuple(replace(each, row=each.row + first) for each in part.faults)
            parts.append(replace(part, rows=part.rows + first, faults=faults))
        return joined_blocks(parts)

    def _gathered(self, call: Callable[[], Value], kind: type[CoachError]) -> list[Value]:
        """The answers of each process's rows; an error of one is an error of all."""
        answer: Value | None = None
        error: CoachError | None = None
        try:
            answer = call()
        except CoachError as raised:
            error = raised
        text = None if error is None else str(error)
        answers: list[tuple[Any, str | None]] = self._group.gather((answer, text))
        if error is not None:
            raise error
        for rank, (_, message) in enumerate(answers):
            if message is not None:
                raise kind(f"process {rank} of {self._group.size}: {message}")
        return [value for value, _ in answers]
