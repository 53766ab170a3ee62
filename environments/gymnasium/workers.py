"""Blocks of rows in processes of their own, driven over pipes.

A request is a method of `LocalRows` and its arguments; a worker answers each with one reply:
`("done", result)` or `("failed", error, traceback)`. It ends when it is sent None, or when the pipe
closes because this process is gone.
"""

import faulthandler
import multiprocessing
import os
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from coach_rl.core.errors import (
    CheckpointError,
    CoachError,
    ConfigurationError,
    EnvironmentFault,
    SpaceError,
)
from coach_rl.core.level_name import shown_level
from coach_rl.core.records import Action, Array, IntArray, Observation
from coach_rl.core.state import State
from coach_rl.environments.faults import (
    Cause,
    EnvironmentTraceback,
    Trouble,
    first_of_each,
    place_in,
)
from coach_rl.environments.gymnasium.layout import Info, Layout
from coach_rl.environments.gymnasium.recipe import Recipe, wrapper_name
from coach_rl.environments.gymnasium.rows import (
    Life,
    LocalRows,
    RowsAnswer,
    RowsStart,
    life_of,
    require_one_layout,
)
from coach_rl.environments.processors import usable_processors

T = TypeVar("T")

_TELL = signal.SIGUSR2
"""Asks a worker to write down where it is."""
PATIENCE_SECONDS = 5.0
"""Time a worker may take to end by itself."""
_LEFT_TO_THE_RUN = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1)
"""Signals to the whole process group that the main process answers: it saves what is here first."""


class WorkerLost(EnvironmentFault):
    """A worker process has died, or was killed because it hung.

    Args:
        message: What happened, without the row.
        cause: Which of the two.
        row: Place of the row that was at work.
        verb: What it was doing.
    """

    def __init__(
        self, message: str, *, cause: Cause = "died", row: int = 0, verb: str = "step"
    ) -> None:
        super().__init__(message)
        self.cause, self.row, self.verb = cause, row, verb


class TimeLimits(NamedTuple):
    """Seconds that one row may take."""

    step: float
    reset: float


class Worker:
    """One process and the rows that live in it.

    Args:
        recipe: How each row's environment is made.
        rows: Their numbers.
        context: How to start the process.
        others: The workers started before, which still live.
        limits: When it is taken to hang.
    """

    def __init__(
        self,
        recipe: Recipe,
        rows: Sequence[int],
        context: Any,
        others: Sequence["Worker"],
        limits: TimeLimits,
    ) -> None:
        self.rows = list(rows)
        self._level, self._limits = recipe.level, limits
        self._now = context.RawValue("i", -1)
        self._last_words = tempfile.NamedTemporaryFile(prefix="coach_")  # noqa: SIM115 (see close)
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        _let_wait(self._connection, min(limits))
        forked = context.get_start_method() == "fork"
        ours = [self._connection, *(other._connection for other in others)] if forked else []
        self._process: BaseProcess = context.Process(
            target=serve,
            args=(theirs, recipe, self.rows, ours, self._now, self._last_words.name),
            daemon=True,
        )
        self.is_lost = False
        """True if the process has died or was killed."""
        self._waiting = True
        """True if a reply is due; the first is the layout."""
        try:
            with _signals_held():
                self._process.start()
        except Exception as error:
            self._connection.close()
            self._last_words.close()
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
                self._received()
            self._connection.send((verb, arguments))
        except (EOFError, OSError) as error:
            raise self._lost("died") from error
        self._waiting = True

    def reply(self) -> Any:
        """The result of the last request; waits for it.

        Raises:
            CoachError: What went wrong in the worker, of the same class.
            WorkerLost: The worker died or hung.
        """
        try:
            kind, *content = self._received()
        except (EOFError, OSError) as error:
            raise self._lost("died") from error
        self._waiting = False
        if kind == "done":
            return content[0]
        failure, text = content
        raise failure from EnvironmentTraceback(text)

    def close(self) -> None:
        """End the process, gently first."""
        if not self._connection.closed:
            if self._process.is_alive() and not self._waiting:
                try:
                    self._connection.send(None)
                except OSError:
                    self._process.kill()
            self._connection.close()
        self._last_words.close()
        self._process.join(PATIENCE_SECONDS if not self.is_lost else 0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _received(self) -> Any:
        """The next message; waits for it as long as rows finish within their limits."""
        at, since = self._now.value, time.monotonic()
        while True:
            try:
                return self._connection.recv()
            except BlockingIOError:  # a limit has passed
                now, limit = self._now.value, self._limits[self._now.value < 0]
                if now != at:
                    at, since = now, time.monotonic()
                elif time.monotonic() - since >= limit:
                    raise self._lost("hung") from None

    def _lost(self, cause: Cause) -> WorkerLost:
        """The process is gone, or will be; what is known about that."""
        self.is_lost = True
        if cause == "hung" and self._process.pid is not None:
            os.kill(self._process.pid, _TELL)  # it writes down where it is
            time.sleep(0.1)
            self._process.kill()
        self._process.join(PATIENCE_SECONDS)
        now, code = self._now.value, self._process.exitcode
        index, verb = (now, "step") if now >= 0 else (-1 - now, "reset")
        place = place_in(Path(self._last_words.name).read_text())
        limit = self._limits[now < 0]
        what = f"took more than {limit:g} s" if cause == "hung" else f"died ({_exit(code)})"
        message = f"its worker process {what}{place}"
        return WorkerLost(message, cause=cause, row=index, verb=verb)


class WorkerRows:
    """All rows, spread over worker processes; does what `LocalRows` does.

    Args:
        recipe: How each row's environment is made.
        num_envs: N.
        processes: How many workers; None takes one per core, at most one per row.
        start_method: How processes start: spawn, forkserver or fork.
        limits: When a worker is taken to hang.
    """

    def __init__(
        self,
        recipe: Recipe,
        *,
        num_envs: int,
        processes: int | None,
        start_method: str,
        limits: TimeLimits,
    ) -> None:
        _require_importable(recipe, start_method)
        self._recipe, self._limits = recipe, limits
        count = min(num_envs, processes or usable_processors())
        self._context: Any = multiprocessing.get_context(start_method)
        shares = np.array_split(np.arange(num_envs), count)
        self._home = np.concatenate([np.full(len(share), w) for w, share in enumerate(shares)])
        """[N] the worker of each row."""
        self._place = np.concatenate([np.arange(len(share)) for share in shares])
        """[N] the row's place in its worker."""
        self._lives: list[Life | None] = [None] * num_envs
        """All that is needed to play each row's episode again; None where that is not known."""
        self._shown: Observation | None = None
        """[N, ...] what each row showed last; None before that is known."""
        self._workers: list[Worker] = []
        try:
            for share in shares:
                self._workers.append(self._worker(share.tolist()))
            layouts: list[Layout] = [worker.reply() for worker in self._workers]
            for layout in layouts:
                require_one_layout(layout, layouts[0], level=recipe.level)
        except BaseException:
            self.close()
            raise
        self.layout = layouts[0]

    def reset(self, seeds: Sequence[int | None]) -> RowsStart:
        """Start every row anew; workers that were lost are started again."""
        for number, worker in enumerate(self._workers):
            if worker.is_lost:
                self._replace(number)
        self._lives = [None if seed is None else Life(seed, None, []) for seed in seeds]
        self._shown = None
        shares = {n: ([seeds[r] for r in w.rows],) for n, w in enumerate(self._workers)}
        starts = [
            self._revived(number, reply) if isinstance(reply, WorkerLost) else reply
            for number, reply in enumerate(self._replies(LocalRows.reset, shares))
        ]
        places = [np.array(worker.rows, np.int64) for worker in self._workers]
        observation = _by_key([start.observation for start in starts])
        self._shown = {key: values.copy() for key, values in observation.items()}
        infos = [info for start in starts for info in start.infos]
        return RowsStart(observation, infos, _troubles(starts, places))

    def renew(self, row: int, seed: int) -> RowsStart:
        """Start a row in an environment that is made anew."""
        number, place = int(self._home[row]), int(self._place[row])
        self._lives[row] = Life(seed, None, [])
        try:
            (start,) = self._ask(LocalRows.renew, {number: (place, seed)})
        except WorkerLost as lost:
            revived = self._revived(number, lost)
            troubles = [(0, trouble) for here, trouble in revived.troubles if here == place]
            start = RowsStart(_blank(self.layout, 1), [{}], troubles)
        return start

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """Step some rows, all workers at once; see `LocalRows.step`."""
        home = self._home[rows]
        asked = np.unique(home).tolist() or [0]  # somebody must say what no answer looks like
        places = {number: np.flatnonzero(home == number) for number in asked}
        parts = {number: _part(action, here) for number, here in places.items()}
        replies = self._replies(
            LocalRows.step,
            {number: (self._place[rows[here]], parts[number]) for number, here in places.items()},
        )
        answers = [
            self._step_again(number, reply, rows[places[number]], parts[number])
            if isinstance(reply, WorkerLost)
            else reply
            for number, reply in zip(asked, replies, strict=True)
        ]
        merged = _merged(answers, list(places.values()))
        self._remember(rows, action, merged)
        return merged

    def snapshot(self) -> list[State]:
        """Each row's state."""
        everyone: Mapping[int, tuple[()]] = dict.fromkeys(range(len(self._workers)), ())
        return [state for part in self._ask(LocalRows.snapshot, everyone) for state in part]

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        self._ask_all(LocalRows.restore, states)
        self._lives = [life_of(state) for state in states]
        self._shown = self.layout.buffers(len(states))
        for row, state in enumerate(states):
            for index, values in enumerate(self._shown.values()):
                values[row] = state["observation"][str(index)]

    def render(self, row: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        (frame,) = self._ask(LocalRows.render, {int(self._home[row]): (int(self._place[row]),)})
        return np.asarray(frame)

    def close(self) -> None:
        """End every worker."""
        for worker in self._workers:
            worker.close()

    def _worker(self, rows: Sequence[int]) -> Worker:
        """A new worker for these rows."""
        living = [each for each in self._workers if not each.is_lost]
        return Worker(self._recipe, rows, self._context, living, self._limits)

    def _replace(self, number: int) -> None:
        """Start a lost worker again; its rows have no episode."""
        self._workers[number].close()
        self._workers[number] = worker = self._worker(self._workers[number].rows)
        require_one_layout(worker.reply(), self.layout, level=self._recipe.level)

    def _revived(self, number: int, lost: WorkerLost) -> RowsStart:
        """Start a lost worker again, with every row where it was but the one that was at work.

        Other rows than that one live their episodes again. One that cannot, because it draws random
        numbers that nobody can know, is in trouble as well.
        """
        rows = self._workers[number].rows
        self._replace(number)
        by = rows[min(lost.row, len(rows) - 1)]
        again = [row for row in rows if row != by and self._lives[row] is not None]
        observation = _blank(self.layout, len(rows))
        arrived: set[int] = set()
        try:
            indices = self._place[again].tolist()
            lives = [self._lives[row] for row in again]
            (start,) = self._ask(LocalRows.live_again, {number: (indices, lives)})
        except WorkerLost:
            self._replace(number)
        else:
            failed = first_of_each(start.troubles)
            for n, row in enumerate(again):
                shows = {key: values[n] for key, values in start.observation.items()}
                if n not in failed and self._is_shown(row, shows):
                    arrived.add(row)
                    for key, value in shows.items():
                        observation[key][rows.index(row)] = value
        troubles = []
        for place, row in enumerate(rows):
            if row not in arrived:
                company = "" if row == by else f", at work on row {by}, and took this one along"
                name = f"row {row} of '{shown_level(self._recipe.level)}'"
                message = f"{name} failed in {lost.verb}: {lost}{company}"
                troubles.append((place, Trouble(row, lost.cause, lost.verb, message, {})))
        return RowsStart(observation, [{} for _ in rows], troubles)

    def _is_shown(self, row: int, shows: Mapping[str, Array]) -> bool:
        """Return whether a row shows what it showed before its worker was lost."""
        shown = self._shown
        return shown is None or all(
            np.array_equal(value, shown[key][row]) for key, value in shows.items()
        )

    def _step_again(
        self, number: int, lost: WorkerLost, rows: IntArray, action: Action
    ) -> RowsAnswer:
        """Start a lost worker again, and step those of these rows that can be."""
        revived = self._revived(number, lost)
        failed = {trouble.row: trouble for _, trouble in revived.troubles}
        is_failed = np.isin(rows, list(failed))
        count = int(np.count_nonzero(is_failed))
        blank, infos = _blank(self.layout, count), [Info() for _ in range(count)]
        answer = RowsAnswer(
            observation=blank,
            first_observation=blank,
            reward=np.zeros(count, np.float64),
            terminated=np.zeros(count, np.bool_),
            truncated=np.zeros(count, np.bool_),
            infos=infos,
            troubles=[
                (place, failed[row]._replace(verb="step"))
                for place, row in enumerate(rows[is_failed].tolist())
            ],
        )
        if is_failed.all():
            return answer
        (others,) = np.nonzero(~is_failed)
        again = self.step(rows[others], _part(action, others))
        return _merged([answer, again], [np.flatnonzero(is_failed), others])

    def _remember(self, rows: IntArray, action: Action, answer: RowsAnswer) -> None:
        """Keep what it takes to live the rows' episodes again."""
        restarted = dict(answer.starts)
        over = answer.terminated | answer.truncated
        parts = zip(*self.layout.action_arrays(action), strict=True)
        for place, (row, leaves) in enumerate(zip(rows.tolist(), parts, strict=True)):
            life = self._lives[row]
            if over[place]:
                seed = None if life is None else life.seed
                start = restarted.get(place)
                self._lives[row] = None if start is None else Life(seed, start, [])
            elif life is not None:
                life.actions.append(leaves)
        assert self._shown is not None
        for key, values in answer.first_observation.items():
            self._shown[key][rows] = values

    def _ask_all(self, verb: Callable[..., T], values: Sequence[object]) -> list[T]:
        """Ask every worker, with the values of its own rows; return one reply per worker."""
        shares = {n: ([values[r] for r in w.rows],) for n, w in enumerate(self._workers)}
        return self._ask(verb, shares)

    def _ask(self, verb: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]) -> list[T]:
        """Ask these workers and return their replies; raises an error only after the last reply."""
        replies = []
        for reply in self._replies(verb, arguments):
            if isinstance(reply, WorkerLost):
                raise reply
            replies.append(reply)
        return replies

    def _replies(
        self, verb: Callable[..., T], arguments: Mapping[int, tuple[object, ...]]
    ) -> "list[T | WorkerLost]":
        """The replies of these workers; a `WorkerLost` stands for that of a lost one."""
        asked = {
            number: _outcome(self._workers[number].request, verb, *given)
            for number, given in arguments.items()
        }
        replies = [
            failure or _outcome(self._workers[number].reply) for number, failure in asked.items()
        ]
        for reply in replies:
            if isinstance(reply, CoachError) and not isinstance(reply, WorkerLost):
                raise reply
        return replies


def serve(
    connection: Connection,
    recipe: Recipe,
    rows: Sequence[int],
    inherited: Sequence[Connection],
    now: Any,
    last_words: str,
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
        now: Shared with the main process; see `LocalRows.now`.
        last_words: File for the traceback of a crash, or of where the process hangs.
    """
    for number in _LEFT_TO_THE_RUN:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_THE_RUN)
    threading.Thread(target=_end_after_main_process, daemon=True).start()
    crash_file = Path(last_words).open("w")  # noqa: SIM115  # open as long as the process lives
    faulthandler.enable(crash_file, all_threads=False)
    faulthandler.register(_TELL, crash_file, all_threads=False)
    for copied in inherited:
        copied.close()
    try:
        local = LocalRows(recipe, rows)
    except Exception as error:
        connection.send(("failed", _plain(error), traceback.format_exc()))
        return
    local.now = now
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


def _let_wait(connection: Connection, seconds: float) -> None:
    """Let `recv` raise BlockingIOError after so many seconds; the kernel keeps the time."""
    whole, part = divmod(seconds, 1)
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        limit = struct.pack("ll", int(whole), max(int(part * 1e6), int(not whole)))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def _exit(code: int | None) -> str:
    """The way a process has ended, for messages."""
    if code is not None and code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"exit code {code}"


def _blank(layout: Layout, count: int) -> Observation:
    return {key: np.zeros_like(values) for key, values in layout.buffers(count).items()}


def _by_key(parts: Sequence[Observation]) -> Observation:
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _troubles(
    parts: Sequence[RowsStart | RowsAnswer], places: Sequence[IntArray]
) -> list[tuple[int, Trouble]]:
    """The troubles of the workers' answers, each at its place in the whole."""
    return [
        (int(here[place]), trouble)
        for part, here in zip(parts, places, strict=True)
        for place, trouble in part.troubles
    ]


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
        troubles=_troubles(answers, places),
        starts=[
            (int(here[place]), start)
            for answer, here in zip(answers, places, strict=True)
            for place, start in answer.starts
        ],
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
