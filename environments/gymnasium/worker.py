"""A worker: a process of its own in which some rows live, driven over a pipe.

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
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from ctypes import c_int
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple

from coach_rl.core.errors import (
    CheckpointError,
    CoachError,
    ConfigurationError,
    EnvironmentFault,
    SpaceError,
)
from coach_rl.core.main_guard import leave_if_importing_script
from coach_rl.environments.faults import (
    Cause,
    EnvironmentTraceback,
    place_in,
)
from coach_rl.environments.gymnasium.recipe import Recipe
from coach_rl.environments.gymnasium.rows import (
    LocalRows,
)

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
        keeps_actions: See `LocalRows`.
    """

    def __init__(
        self,
        recipe: Recipe,
        rows: Sequence[int],
        context: Any,
        others: Sequence["Worker"],
        limits: TimeLimits,
        *,
        keeps_actions: bool,
    ) -> None:
        leave_if_importing_script()
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
            args=(
                theirs,
                partial(LocalRows, recipe, self.rows, keeps_actions=keeps_actions),
                ours,
                self._now,
                self._last_words.name,
            ),
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

    def close(self) -> list[str]:
        """End the process, gently first; the warnings of environments that failed to close."""
        failures: list[str] = []
        if not self._connection.closed:
            if self._process.is_alive() and not self._waiting:
                try:
                    self._connection.send(None)
                    if self._connection.poll(PATIENCE_SECONDS):
                        failures = self._connection.recv()
                except (EOFError, OSError):
                    self._process.kill()
            self._connection.close()
        self._last_words.close()
        self._process.join(PATIENCE_SECONDS if not self.is_lost else 0)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        return failures

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


def serve(
    connection: Connection,
    make: Callable[[], LocalRows],
    inherited: Sequence[Connection],
    now: c_int,
    last_words: str,
) -> None:
    """Run a worker process: make its rows, then answer requests until it has to stop.

    Signals are for the main process, which wants to save what is here. A worker ends soon after it,
    even where an environment hangs.

    Args:
        connection: To the main process.
        make: Makes its rows.
        inherited: The main process's ends that a fork copied; while they are open here, no worker
            would notice that the main process is gone.
        now: Shared with the main process; see `LocalRows.now`.
        last_words: File for the traceback of a crash, or of where the process hangs.
    """
    for number in _LEFT_TO_THE_RUN:
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _LEFT_TO_THE_RUN)
    threading.Thread(target=_end_after_main_process, daemon=True).start()
    crash_file = Path(last_words).open("w")  # noqa: SIM115  # open as long as the process histories
    faulthandler.enable(crash_file, all_threads=False)
    faulthandler.register(_TELL, crash_file, all_threads=False)
    for copied in inherited:
        copied.close()
    with suppress(EOFError, OSError):  # the main process is gone
        _answer(connection, make, now)


def _answer(connection: Connection, make: Callable[[], LocalRows], now: c_int) -> None:
    """Make the rows, then answer requests about them until there are no more."""
    try:
        local = make()
    except BaseException as error:
        connection.send(("failed", _plain(error), traceback.format_exc()))
        return
    local.now = now
    try:
        connection.send(("done", local.layout))
        while (request := connection.recv()) is not None:
            verb, arguments = request
            try:
                connection.send(("done", verb(local, *arguments)))
            except CoachError as error:
                connection.send(("failed", _plain(error), traceback.format_exc()))
    finally:
        failures = local.close()
    connection.send(failures)


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


def _plain(error: BaseException) -> CoachError:
    """The error as one that can be sent: a class that is made from its message alone."""
    for kind in (SpaceError, ConfigurationError, CheckpointError):
        if isinstance(error, kind):
            return kind(str(error))
    return EnvironmentFault(str(error))


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
