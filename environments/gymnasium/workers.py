"""Blocks of rows in processes of their own, driven over pipes.

A worker answers every request with one reply: `("done", result)` or `("failed", error, traceback)`.
It ends when it is told to, or when the pipe closes because this process is gone.
"""

import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

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
from coach_rl.environments.gymnasium.block import BlockAnswer, RowBlock
from coach_rl.environments.gymnasium.infos import Info
from coach_rl.environments.gymnasium.layout import Layout
from coach_rl.environments.gymnasium.recipe import Recipe

PATIENCE_SECONDS = 5.0
"""How long a worker may take to end by itself."""


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
        """Whether a reply is due; the first is the layout."""
        try:
            self._process.start()
        except Exception as error:
            self._connection.close()
            raise ConfigurationError(
                f"'{recipe.level}' cannot be sent to a worker process: {error}; "
                "name classes as module:Class, or use vectorization='sync'"
            ) from error
        finally:
            theirs.close()

    def request(self, verb: str, *arguments: Any) -> None:
        """Ask; the previous reply must have been taken."""
        assert not self._waiting
        try:
            self._connection.send((verb, *arguments))
        except OSError as error:
            raise self._death() from error
        self._waiting = True

    def reply(self) -> Any:
        """The result of the last request; waits for it.

        Raises:
            CoachError: What went wrong in the worker, of the same class.
            EnvironmentFault: The worker died.
        """
        assert self._waiting
        try:
            kind, *content = self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._death() from error
        finally:
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
                    self._connection.send(("close",))
                except OSError:
                    self._process.terminate()
            self._connection.close()
        self._process.join(PATIENCE_SECONDS)
        if self._process.is_alive():
            self._process.terminate()
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


class WorkerPool:
    """All rows, spread over worker processes; a `Backend`.

    Args:
        recipe: How each row's environment is made.
        num_envs: N.
        processes: How many workers; None takes one per core, at most one per row.
        start_method: How processes start: spawn, forkserver or fork.
    """

    def __init__(
        self, recipe: Recipe, *, num_envs: int, processes: int | None, start_method: str
    ) -> None:
        count = min(num_envs, processes or _cores())
        context = multiprocessing.get_context(start_method)
        shares = np.array_split(np.arange(num_envs), count)
        self._home = np.concatenate([np.full(len(share), w) for w, share in enumerate(shares)])
        """[N] the worker of each row."""
        self._place = np.concatenate([np.arange(len(share)) for share in shares])
        """[N] the row's position in its worker."""
        self._asked: list[tuple[int, IntArray]] = []
        """A worker and the positions of the coming answer that it was asked for, in order."""
        self._early: dict[int, BlockAnswer | CoachError] = {}
        """Replies taken before the end, by their place in `_asked`."""
        self._workers: list[Worker] = []
        try:
            for share in shares:
                self._workers.append(Worker(recipe, share.tolist(), context, self._workers))
            layouts: list[Layout] = [worker.reply() for worker in self._workers]
            self._require_one(layouts, recipe.level)
        except BaseException:
            self.close()
            raise
        self.layout = layouts[0]

    def reset(self, seeds: Sequence[int | None]) -> tuple[Observation, list[Info]]:
        """Start every row anew; its observations [N, ...] and infos."""
        shares = [[seeds[row] for row in worker.rows] for worker in self._workers]
        replies = self._all("reset", shares)
        infos = [info for _, part in replies for info in part]
        return {
            key: np.concatenate([observation[key] for observation, _ in replies])
            for key in replies[0][0]
        }, infos

    def start(self, rows: IntArray, action: Action) -> None:
        """Let the workers begin to step these rows."""
        before = sum(len(positions) for _, positions in self._asked)
        home = self._home[rows]
        for number in np.unique(home).tolist():
            here = np.flatnonzero(home == number)
            self._take_early(number)
            self._workers[number].request("step", self._place[rows[here]], _part(action, here))
            self._asked.append((number, before + here))

    def finish(self, rows: IntArray, action: Action) -> BlockAnswer:  # noqa: ARG002 - known since start
        """Wait for all rows that were started."""
        asked, replies = self._asked, self._replies()
        for reply in replies:
            if isinstance(reply, CoachError):
                raise reply
        answers = [reply for reply in replies if isinstance(reply, BlockAnswer)]
        return _merged(self.layout, len(rows), [positions for _, positions in asked], answers)

    def snapshot(self) -> list[State]:
        """Each row's state."""
        return [state for part in self._all("snapshot") for state in part]

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        self._all("restore", [[states[row] for row in worker.rows] for worker in self._workers])

    def render(self, row: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        self._take_early(int(self._home[row]))
        worker = self._workers[self._home[row]]
        worker.request("render", int(self._place[row]))
        return np.asarray(worker.reply())

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.close()

    def _all(self, verb: str, shares: list[Any] | None = None) -> list[Any]:
        """Every worker's result; steps under way are dropped, their errors too."""
        self._replies()
        asked = [
            _outcome(worker.request, verb, *([] if shares is None else [shares[number]]))
            for number, worker in enumerate(self._workers)
        ]
        replies = [
            failure or _outcome(worker.reply)
            for failure, worker in zip(asked, self._workers, strict=True)
        ]
        for reply in replies:
            if isinstance(reply, CoachError):
                raise reply
        return replies

    def _replies(self) -> list[BlockAnswer | CoachError]:
        """The reply to each request under way, in order, errors among them; none is left."""
        asked, self._asked = self._asked, []
        early, self._early = self._early, {}
        return [
            early[place] if place in early else _outcome(self._workers[number].reply)
            for place, (number, _) in enumerate(asked)
        ]

    def _take_early(self, number: int) -> None:
        """Take what this worker owes, so that it can be asked again."""
        for place, (other, _) in enumerate(self._asked):
            if other == number and place not in self._early:
                self._early[place] = _outcome(self._workers[number].reply)

    @staticmethod
    def _require_one(layouts: list[Layout], level: str) -> None:
        for layout in layouts[1:]:
            if layout != layouts[0]:
                raise SpaceError(
                    f"two rows of '{level}' have different spaces: {layout.spaces} and "
                    f"{layouts[0].spaces}; every row must have the same"
                )


def serve(
    connection: Connection, recipe: Recipe, rows: Sequence[int], inherited: Sequence[Connection]
) -> None:
    """What a worker process does: make its rows, then answer requests until told to stop.

    Ctrl-C is for the main process, which wants to save what is here.

    Args:
        connection: To the main process.
        recipe: How each row's environment is made.
        rows: Their numbers.
        inherited: The main process's ends that a fork copied; while they are open here, no worker
            would notice that the main process is gone.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for copied in inherited:
        copied.close()
    try:
        block = RowBlock(recipe, rows)
    except Exception as error:
        connection.send(("failed", _plain(error), traceback.format_exc()))
        return
    connection.send(("done", block.layout))
    verbs: dict[str, Callable[..., Any]] = {
        "reset": block.reset,
        "step": block.step,
        "snapshot": block.snapshot,
        "restore": block.restore,
        "render": block.render,
    }
    try:
        while (request := connection.recv())[0] != "close":
            verb, *arguments = request
            try:
                connection.send(("done", verbs[verb](*arguments)))
            except CoachError as error:
                connection.send(("failed", _plain(error), traceback.format_exc()))
    except (EOFError, OSError):
        return  # the main process is gone
    finally:
        block.close()


def _plain(error: Exception) -> CoachError:
    """The error as one that can be sent: a class that is made from its message alone."""
    for kind in (SpaceError, ConfigurationError, CheckpointError):
        if isinstance(error, kind):
            return kind(str(error))
    return EnvironmentFault(str(error))


def _outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """What the call returns, or the error it raises."""
    try:
        return call(*arguments)
    except CoachError as error:
        return error


def _part(action: Action, index: IntArray) -> Action:
    if isinstance(action, dict):
        return {key: values[index] for key, values in action.items()}
    return action[index]


def _merged(
    layout: Layout, count: int, positions: list[IntArray], answers: list[BlockAnswer]
) -> BlockAnswer:
    """The workers' answers as one, each at its positions."""
    observation, first = layout.buffers(count), layout.buffers(count)
    reward = np.zeros(count, np.float64)
    terminated, truncated = np.zeros(count, np.bool_), np.zeros(count, np.bool_)
    infos: list[Info] = [{} for _ in range(count)]
    for place, answer in zip(positions, answers, strict=True):
        for key in observation:
            observation[key][place] = answer.observation[key]
            first[key][place] = answer.first_observation[key]
        reward[place] = answer.reward
        terminated[place] = answer.terminated
        truncated[place] = answer.truncated
        for position, info in zip(place.tolist(), answer.infos, strict=True):
            infos[position] = info
    return BlockAnswer(observation, first, reward, terminated, truncated, infos)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
