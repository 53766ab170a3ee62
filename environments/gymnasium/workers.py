"""Blocks of rows in processes of their own, driven over pipes.

A request is a method of `LocalRows` and its arguments; a worker answers each with one reply:
`("done", result)` or `("failed", error, traceback)`. It ends when it is sent None, or when the pipe
closes because this process is gone.
"""

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from coach_rl.core.errors import (
    CheckpointError,
    CoachError,
    ConfigurationError,
    EnvironmentFault,
    SpaceError,
)
from coach_rl.core.records import Action, Array, IntArray, Observation
from coach_rl.core.state import State
from coach_rl.environments.gymnasium.layout import Info, Layout
from coach_rl.environments.gymnasium.recipe import Recipe, wrapper_name
from coach_rl.environments.gymnasium.rows import LocalRows, RowsAnswer, require_one_layout
from coach_rl.environments.processors import usable_processors

T = TypeVar("T")

PATIENCE_SECONDS = 5.0
"""Time a worker may take to end by itself."""
_LEFT_TO_THE_RUN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Signals to the whole process group that the main process answers: it saves what is here first."""


class WorkerTraceback(Exception):
    """The cause of an error that came from a worker: the traceback as text."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


class Worker:
    """One process and the rows that live in it.

    Args:
        recipe: How each row's environment is made.
        rows: Their numbers.
        context: How to start the process.
        others: The workers started before.
    """

    def __init__(
        self, recipe: Recipe, rows: Sequence[int], context: Any, others: Sequence["Worker"]
    ) -> None:
        self.rows = list(rows)
        self._level = recipe.level
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        forked = context.get_start_method() == "fork"
        ours = [self._connection, *(other._connection for other in others)] if forked else []
        self._process: BaseProcess = context.Process(
            target=serve, args=(theirs, recipe, self.rows, ours), daemon=True
        )
        self._waiting = True
        """True if a reply is due; the first is the layout."""
        try:
            with _signals_held():
                self._process.start()
        except Exception as error:
            self._connection.close()
            raise ConfigurationError(
                f"'{recipe.level}' cannot be sent to a worker process: {error}; "
                "name classes as module:Class, or use vectorization='sync'"
            ) from error
        finally:
            theirs.close()

    def request(self, verb: Callable[..., object], *arguments: object) -> None:
        """Ask for a method of `LocalRows`; a reply that a Ctrl-C left behind is dropped."""
        try:
            if self._waiting:
                self._connection.recv()
            self._connection.send((verb, arguments))
        except (EOFError, OSError) as error:
            raise self._death() from error
        self._waiting = True

    def reply(self) -> Any:
        """The result of the last request; waits for it.

        Raises:
            CoachError: What went wrong in the worker, of the same class.
            EnvironmentFault: The worker died.
        """
        try:
            kind, *content = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        self._waiting = False
        if kind == "done":
            return content[0]
        failure, text = content
        raise failure from WorkerTraceback(text)

    def close(self) -> None:
        """End the process, gently first."""
        if not self._connection.closed:
            if self._process.is_alive() and not self._waiting:
                try:
                    self._connection.send(None)
                except OSError:
                    self._process.kill()
            self._connection.close()
        self._process.join(PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _death(self) -> EnvironmentFault:
        self._process.join(PATIENCE_SECONDS)
        return EnvironmentFault(
            f"the worker process with rows {self.rows} of '{self._level}' died "
            f"(exit code {self._process.exitcode}); build a new environment and load a checkpoint"
        )


class WorkerRows:
    """All rows, spread over worker processes; does what `LocalRows` does.

    Args:
        recipe: How each row's environment is made.
        num_envs: N.
        processes: How many workers; None takes one per core, at most one per row.
        start_method: How processes start: spawn, forkserver or fork.
    """

    def __init__(
        self, recipe: Recipe, *, num_envs: int, processes: int | None, start_method: str
    ) -> None:
        _require_importable(recipe, start_method)
        count = min(num_envs, processes or usable_processors())
        context = multiprocessing.get_context(start_method)
        shares = np.array_split(np.arange(num_envs), count)
        self._home = np.concatenate([np.full(len(share), w) for w, share in enumerate(shares)])
        """[N] the worker of each row."""
        self._place = np.concatenate([np.arange(len(share)) for share in shares])
        """[N] the row's place in its worker."""
        self._workers: list[Worker] = []
        try:
            for share in shares:
                self._workers.append(Worker(recipe, share.tolist(), context, self._workers))
            layouts: list[Layout] = [worker.reply() for worker in self._workers]
            for layout in layouts:
                require_one_layout(layout, layouts[0], level=recipe.level)
        except BaseException:
            self.close()
            raise
        self.layout = layouts[0]

    def reset(self, seeds: Sequence[int | None]) -> tuple[Observation, list[Info]]:
        """Start every row anew; its observations [N, ...] and infos."""
        replies = self._ask_all(LocalRows.reset, seeds)
        infos = [info for _, part in replies for info in part]
        return {
            key: np.concatenate([observation[key] for observation, _ in replies])
            for key in replies[0][0]
        }, infos

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """Step some rows, all workers at once; see `LocalRows.step`."""
        home = self._home[rows]
        asked = np.unique(home).tolist() or [0]  # somebody must say what no answer looks like
        places = {number: np.flatnonzero(home == number) for number in asked}
        answers = self._ask(
            LocalRows.step,
            {
                number: (self._place[rows[here]], _part(action, here))
                for number, here in places.items()
            },
        )
        return _merged(answers, list(places.values()))

    def snapshot(self) -> list[State]:
        """Each row's state."""
        everyone: Mapping[int, tuple[()]] = dict.fromkeys(range(len(self._workers)), ())
        return [state for part in self._ask(LocalRows.snapshot, everyone) for state in part]

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        self._ask_all(LocalRows.restore, states)

    def render(self, row: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        (frame,) = self._ask(LocalRows.render, {int(self._home[row]): (int(self._place[row]),)})
        return np.asarray(frame)

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.close()

    def _ask_all(self, verb: Callable[..., T], values: Sequence[object]) -> list[T]:
        """Ask every worker, with the values of its own rows; return one reply per worker."""
        shares = {n: ([values[r] for r in w.rows],) for n, w in enumerate(self._workers)}
        return self._ask(verb, shares)

    def _ask(self, verb: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]) -> list[T]:
        """Ask these workers and return their replies; raises an error only after the last reply."""
        asked = {
            number: _outcome(self._workers[number].request, verb, *given)
            for number, given in arguments.items()
        }
        replies = [
            failure or _outcome(self._workers[number].reply) for number, failure in asked.items()
        ]
        for reply in replies:
            if isinstance(reply, CoachError):
                raise reply
        return replies


def serve(
    connection: Connection, recipe: Recipe, rows: Sequence[int], inherited: Sequence[Connection]
) -> None:
    """Run a worker process: make its rows, then answer requests until it has to stop.

    Signals are for the main process, which wants to save what is here. A worker ends soon after it,
    even where an environment hangs.

    Args:
        connection: To the main process.
        recipe: How each row's environment is made.
        rows: Their numbers.
        inherited: The main process's ends that a fork copied; while they are open here, no worker
            would notice that the main process is gone.
    """
    for number in _LEFT_TO_THE_RUN:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_THE_RUN)
    threading.Thread(target=_end_after_main_process, daemon=True).start()
    for copied in inherited:
        copied.close()
    try:
        local = LocalRows(recipe, rows)
    except Exception as error:
        connection.send(("failed", _plain(error), traceback.format_exc()))
        return
    connection.send(("done", local.layout))
    try:
        while (request := connection.recv()) is not None:
            verb, arguments = request
            try:
                connection.send(("done", verb(local, *arguments)))
            except CoachError as error:
                connection.send(("failed", _plain(error), traceback.format_exc()))
    except (EOFError, OSError):
        return  # the main process is gone
    finally:
        local.close()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Start processes inside that hold these signals back until `serve` ignores them."""
    resource_tracker.ensure_running()  # which would let them through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _LEFT_TO_THE_RUN)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_after_main_process() -> None:
    """End this worker when it has outlived the main process for long enough to close its rows."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    time.sleep(PATIENCE_SECONDS)
    os._exit(1)


def _plain(error: Exception) -> CoachError:
    """The error as one that can be sent: a class that is made from its message alone."""
    for kind in (SpaceError, ConfigurationError, CheckpointError):
        if isinstance(error, kind):
            return kind(str(error))
    return EnvironmentFault(str(error))


def _outcome(call: Callable[..., object], *arguments: object) -> Any:
    """Return the call's result, or the error it raises."""
    try:
        return call(*arguments)
    except CoachError as error:
        return error


def _part(action: Action, index: IntArray) -> Action:
    if isinstance(action, dict):
        return {key: values[index] for key, values in action.items()}
    return action[index]


def _merged(answers: list[RowsAnswer], places: list[IntArray]) -> RowsAnswer:
    """The workers' answers as one, each at its places."""
    order = np.argsort(np.concatenate(places))

    def whole(parts: list[Array]) -> Array:
        return np.concatenate(parts)[order]

    infos = [info for answer in answers for info in answer.infos]
    keys = answers[0].observation
    return RowsAnswer(
        observation={key: whole([answer.observation[key] for answer in answers]) for key in keys},
        first_observation={
            key: whole([answer.first_observation[key] for answer in answers]) for key in keys
        },
        reward=whole([answer.reward for answer in answers]),
        terminated=whole([answer.terminated for answer in answers]),
        truncated=whole([answer.truncated for answer in answers]),
        infos=[infos[index] for index in order.tolist()],
    )


def _require_importable(recipe: Recipe, start_method: str) -> None:
    """Raise `ConfigurationError` where a class stands in a file that a new process cannot import.

    A preset is loaded by its path, under a name that no import finds.
    """
    for name in (recipe.level, *map(wrapper_name, recipe.wrappers)):
        module = name.rpartition(":")[0]
        file = getattr(sys.modules.get(module), "__file__", None)
        if start_method == "fork" or module == "__main__" or file is None:
            continue
        if Path(file).stem not in (module.rpartition(".")[2], "__init__"):
            raise ConfigurationError(
                f"'{name.rpartition(':')[2]}' is defined in the preset {Path(file).name}, which "
                "worker processes cannot import; move it to a module that they can, or use "
                "vectorization='sync' or start_method='fork'"
            )
