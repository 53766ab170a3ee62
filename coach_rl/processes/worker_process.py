"""An object in a process of its own, whose methods are called over a pipe.

    worker = WorkerProcess(partial(Counter, start=3))
    worker.request(Counter.add, 2)
    assert worker.reply() == 5
    worker.close()

`submit` returns a future instead, and makes calls in their order. The rules of all workers:

- Signals to the process group (Ctrl-C, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU) are for the
  parent, which may save what is here first. An *independent* worker, which saves itself, gets them
  from the parent alone.
- A worker whose parent has ended ends after a grace period; an independent one gets SIGTERM.
- An error in the worker is raised by `reply`, with its traceback as the cause.
- A warning in the worker is given in the parent at once.
- A worker that has died is a `WorkerLost`, in which a crash names its line; `restart` is the
  client's decision.
- What makes the object is sent with the code that the worker cannot import, such as a preset.

A request is the name of a method and its arguments, None to end. A worker sends pairs: "done" and
the result, "failed" and a `Failure`, or "warned" and a text before either.
"""

import faulthandler
import multiprocessing
import os
import pickle
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Concatenate, Literal, Protocol, TypeVar
from weakref import WeakSet

from coach_rl.core.errors import CoachError, CoachWarning, ConfigurationError, require
from coach_rl.processes.signals import signals_of
from coach_rl.processes.worker_messages import (
    Failure,
    ServedObject,
    WorkerLost,
    WorkerPayload,
    place_in,
)

Result = TypeVar("Result")
Method = Callable[Concatenate[Any, ...], Result]
StartMethod = Literal["spawn", "forkserver", "fork"]

GRACE_SECONDS = 5.0
"""Time that a worker may take to end by itself."""
_CRASHES = signals_of("SIGSEGV", "SIGFPE", "SIGABRT", "SIGBUS", "SIGILL")
"""Signals of a crash, whose place `faulthandler` writes."""
_FOR_THE_PARENT = signals_of("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGXCPU")
_WRITE_PLACE: int = getattr(signal, "SIGVTALRM", 0)
"""Makes a worker write its traceback to its crash file; 0 where there are no workers."""
_LIVING: "WeakSet[WorkerProcess]" = WeakSet()
"""This process's workers, whose pipes a fork copies."""


class Progress(Protocol):
    """A shared number that shows which part of its work a worker is at; a `RawValue`."""

    value: int


class TimeLimit(Protocol):
    """The limit after which a worker is taken to hang, if its progress stays the same."""

    progress: Progress
    """Shared with the worker, as attribute `now` of its object."""
    shortest: float
    """The shortest limit in seconds."""

    def seconds(self, at: int) -> float:
        """The limit at some progress."""
        ...


def give_warning(text: str) -> None:
    """Give a worker's warning as one of this process."""
    warnings.warn(text, CoachWarning, stacklevel=2)


class WorkerProcess:
    """A process with an object, and this process's end of the pipe to it.

    Args:
        make: Makes the object in the worker; its error is that of the first request.
        start_method: How the process starts. A fork server imports first what is imported here.
        imports_script: Whether the worker imports the script of this process, so that what it
            defines can be sent.
        is_independent: Whether the worker has its own response to signals; it gets none for the
            process group.
        time_limit: Limit of its work; None for none.
        on_warning: Called with each warning of the worker.
    """

    def __init__(
        self,
        make: Callable[[], object],
        *,
        start_method: StartMethod = "forkserver",
        imports_script: bool = True,
        is_independent: bool = False,
        time_limit: TimeLimit | None = None,
        on_warning: Callable[[str], None] = give_warning,
    ) -> None:
        if getattr(multiprocessing.current_process(), "_inheriting", False):
            os._exit(1)  # this is a worker that imports a script without a main guard
        require(
            hasattr(signal, "pthread_sigmask"),
            "worker processes need Linux or macOS, on Windows WSL; leave out what needs them, such "
            "as environments in processes of their own, or background evaluations",
        )
        self.on_warning = on_warning
        self.losses = 0
        """Number of times that it was lost since its last reply."""
        self._make = make if start_method == "fork" else WorkerPayload.of(make).make
        self._start_method = start_method
        self._imports_script = imports_script
        self._is_independent = is_independent
        self._limit = time_limit
        self._thread: ThreadPoolExecutor | None = None
        self.is_lost = self._is_waiting = self._has_replied = False
        self._start()

    @property
    def pid(self) -> int | None:
        """The process id."""
        return self._process.pid

    def request(self, method: Method[object], *arguments: object) -> None:
        """Call a method of the object; drops a reply that a Ctrl-C left behind.

        Raises:
            WorkerLost: The worker is gone.
        """
        try:
            if self._is_waiting:
                self._outcome()
            _send(self._connection, (method.__name__, arguments))
        except (EOFError, OSError) as error:
            raise self._lost() from error
        self._is_waiting = True

    def reply(self) -> Any:
        """The result of the last request; waits for it.

        Raises:
            CoachError: The error raised in the worker, of the same kind.
            WorkerLost: The worker has died, or was killed because it hung.
        """
        try:
            kind, content = self._outcome()
        except (EOFError, OSError) as error:
            raise self._lost() from error
        self._is_waiting = False
        self._has_replied = True
        self.losses = 0
        if kind == "failed":
            failure: Failure = content
            failure.raise_here()
        return content

    def submit(self, method: Method[Result], *arguments: object) -> "Future[Result]":
        """The future result of a method, called in a thread after earlier ones."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, thread_name_prefix="worker")
        return self._thread.submit(self._call, method, *arguments)

    def terminate(self) -> None:
        """Send SIGTERM to an independent worker."""
        self._process.terminate()

    def restart(self) -> None:
        """Start the process again, with a new object."""
        self.close(grace=0.0)
        self._start()

    def close(self, *, grace: float = GRACE_SECONDS) -> list[str]:
        """End the process, gently first; harmless when repeated.

        Args:
            grace: Seconds that it may take, including pending calls.

        Returns:
            The result of the object's `close`; empty if it has none.
        """
        closed: list[str] = []
        if self._thread is not None:
            last = self._thread.submit(self._closed, grace)
            with suppress(Exception):
                closed = last.result(grace)
            if not last.done():
                self._process.kill()
            self._thread.shutdown(cancel_futures=True)
            self._thread = None
        elif grace and not self._is_waiting:
            closed = self._closed(grace)
        if not grace and self._process.pid is not None:
            self._process.kill()
        self._end()
        return closed

    def _start(self) -> None:
        context: Any = multiprocessing.get_context(self._start_method)
        self.is_lost = self._is_waiting = self._has_replied = False
        self._crash_file = tempfile.NamedTemporaryFile(prefix="coach_")  # noqa: SIM115 (see _end)
        self._connection: Connection
        self._connection, theirs = context.Pipe()
        _LIVING.add(self)
        if self._limit is not None:
            _let_time_out(self._connection, self._limit.shortest)
        progress = None if self._limit is None else self._limit.progress
        self._process: BaseProcess = context.Process(
            target=_serve,
            args=(theirs, self._make, self._crash_file.name, self._is_independent, progress),
        )
        ended = (self._process, self._connection, self._crash_file)
        self._end = Finalize(self, _end_process, ended, exitpriority=1)  # before they are joined
        if self._start_method == "forkserver":
            _start_server(context)
        hidden = nullcontext() if self._imports_script else _script_hidden()
        try:
            with hidden, _signals_held():
                self._process.start()
        finally:
            theirs.close()

    def _call(self, method: Method[Result], *arguments: object) -> Result:
        self.request(method, *arguments)
        result: Result = self.reply()
        return result

    def _closed(self, grace: float) -> list[str]:
        """Let the worker end after it has closed the object; the result of that."""
        try:
            if not self.is_lost and not self._connection.closed and self._process.is_alive():
                _send(self._connection, None)
                if self._connection.poll(grace):
                    return list(self.reply() or ())
        except (EOFError, OSError, CoachError):
            self._process.kill()
        return []

    def _outcome(self) -> tuple[str, Any]:
        """The outcome of the last request; gives warnings that come before it."""
        kind, content = self._received()
        while kind == "warned":
            self.on_warning(content)
            kind, content = self._received()
        return kind, content

    def _received(self) -> tuple[str, Any]:
        """The next message; waits for it as long as the worker lives and makes progress."""
        limit = self._limit
        if limit is None:
            wait([self._connection, self._process.sentinel])  # a fork may hold the pipe open
            if not self._connection.poll():
                raise EOFError
            received: tuple[str, Any] = pickle.loads(self._connection.recv_bytes())
            return received
        at = limit.progress.value
        since = time.monotonic()
        while True:
            try:
                received = pickle.loads(self._connection.recv_bytes())
            except BlockingIOError:  # the shortest limit has passed
                now = limit.progress.value
                if now != at:
                    at = now
                    since = time.monotonic()
                elif time.monotonic() - since >= limit.seconds(now):
                    raise self._lost(hung_after=limit.seconds(now)) from None
            else:
                return received

    def _lost(self, *, hung_after: float | None = None) -> WorkerLost:
        """The error of a process that is gone, or will be.

        Raises:
            ConfigurationError: It could not start, because the script starts it on its import.
        """
        if not self.is_lost:
            self.is_lost = True
            self.losses = self.losses + 1
        if hung_after is not None and self._process.pid is not None:
            os.kill(self._process.pid, _WRITE_PLACE)
            time.sleep(0.1)
            self._process.kill()
        self._process.join(GRACE_SECONDS)
        if not self._has_replied and (advice := script_advice()):
            raise ConfigurationError(f"no worker process can be started{advice}")
        if hung_after is None:
            what = f"died ({_exit_in_words(self._process.exitcode)})"
        else:
            what = f"took more than {hung_after:g} s"
        dump = Path(self._crash_file.name)
        place = place_in(dump.read_text()) if dump.exists() else ""  # it is gone after `close`
        return WorkerLost(f"its worker process {what}{place}", is_hung=hung_after is not None)


def _end_process(process: BaseProcess, connection: Connection, crash_file: IO[bytes]) -> None:
    """End a process that is not needed any more, at the end of its parent at the latest."""
    connection.close()
    crash_file.close()
    if process.pid is not None:  # it has been started
        process.join(GRACE_SECONDS)
        if process.is_alive():
            process.kill()
            process.join()


def _send(connection: Connection, message: object) -> None:
    """Send a message by value: multiprocessing's own pickler would share tensors."""
    connection.send_bytes(pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL))


def _serve(
    connection: Connection,
    make: Callable[[], object],
    crash_file: str,
    is_independent: bool,
    progress: Progress | None,
) -> None:
    """Run a worker process: make its object, then answer requests until there are no more.

    Args:
        connection: To the parent.
        make: Makes the object.
        crash_file: File for the traceback of a crash, or of where the process hangs.
        is_independent: See `WorkerProcess`.
        progress: Becomes attribute `now` of the object; None: it has none.
    """
    if is_independent:
        os.setpgrp()
    else:
        for number in _FOR_THE_PARENT:
            signal.signal(number, signal.SIG_IGN)
        file = Path(crash_file).open("w")  # noqa: SIM115  # open as long as the process lives
        faulthandler.disable()
        for number in _CRASHES:  # a fork inherits handlers of libraries such as SDL
            signal.signal(number, signal.SIG_DFL)
        faulthandler.enable(file, all_threads=False)
        faulthandler.register(_WRITE_PLACE, file, all_threads=False)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _FOR_THE_PARENT)
    threading.Thread(target=_end_after_parent, args=(is_independent,), daemon=True).start()
    for inherited in list(_LIVING):  # open here, no worker would notice that the parent is gone
        inherited._connection.close()
    with suppress(EOFError, OSError):  # the parent is gone
        _answer(connection, make, progress)


def _answer(connection: Connection, make: Callable[[], object], progress: Progress | None) -> None:
    """Make the object, then answer requests; warnings are sent as they are given."""
    lock = threading.Lock()
    process = os.getpid()

    def send(kind: str, content: object) -> None:
        if os.getpid() != process:  # the object has forked it
            os._exit(1)
        with lock:
            _send(connection, (kind, content))

    def show_warning(
        message: Warning | str, category: type[Warning], *_: object, **__: object
    ) -> None:
        is_ours = issubclass(category, CoachWarning)
        send("warned", str(message) if is_ours else f"{category.__name__}: {message}")

    warnings.simplefilter("default", CoachWarning)  # once for each text and place
    warnings.showwarning = show_warning
    served = ServedObject(make)
    if progress is not None and served.object is not None:
        served.object.now = progress
    try:
        while (request := _next_request(connection)) is not None:
            if isinstance(request, Failure):
                send("failed", request)
            else:
                send(*served.call(*request))
    finally:
        closed = served.close()
    send("done", closed)


def _next_request(connection: Connection) -> tuple[str, tuple[object, ...]] | Failure | None:
    """The next request; a failure if this process cannot import what it is made of."""
    try:
        request: tuple[str, tuple[object, ...]] | None = pickle.loads(connection.recv_bytes())
    except (ImportError, AttributeError) as error:
        wrong = ConfigurationError(f"a worker process cannot read its request: {error}")
        return Failure(kind=ConfigurationError, message=str(wrong), traceback="")
    return request


def _end_after_parent(is_independent: bool) -> None:
    """End this process when it outlives its parent, with time to close its object or to save."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if is_independent:
        os.kill(os.getpid(), signal.SIGTERM)
    else:
        time.sleep(GRACE_SECONDS)
        os._exit(1)


def _start_server(context: Any) -> None:
    """Start the fork server, unless it runs; it imports what this process has imported."""
    ours = [name for name in list(sys.modules) if name.startswith("coach_rl.")]
    context.set_forkserver_preload(ours)
    forkserver.ensure_running()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Start a process inside that holds signals back until `_serve` has decided about them."""
    resource_tracker.ensure_running()  # which would let them through again when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _FOR_THE_PARENT)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _script_hidden() -> Iterator[None]:
    """Start a process inside that does not import this one's script."""
    script = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = script


def _let_time_out(connection: Connection, seconds: float) -> None:
    """Let `recv` raise BlockingIOError after so many seconds; the kernel keeps the time."""
    whole, part = divmod(seconds, 1)
    with socket.socket(fileno=os.dup(connection.fileno())) as end:
        limit = struct.pack("ll", int(whole), max(int(part * 1e6), int(not whole)))
        end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)


def _exit_in_words(code: int | None) -> str:
    """The way a process has ended."""
    if code is not None and code < 0:
        reason = ", out of memory perhaps" if -code == signal.SIGKILL else ""
        return f"signal {signal.Signals(-code).name}{reason}"
    return f"exit code {code}"


def script_advice() -> str:
    """Advice if this process's script starts workers as soon as it is imported; else empty.

    A new process imports the script of the process that starts it, which must not start workers
    there once more.
    """
    file = Path(getattr(sys.modules.get("__main__"), "__file__", None) or "")
    if file.suffix != ".py" or file.name == "__main__.py":  # `python -m package` is not imported
        return ""
    try:
        is_guarded = "__main__" in file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""
    if is_guarded:
        return ""
    return (
        f"; worker processes import the script {file.name}, so what starts the run must stand "
        'below the line `if __name__ == "__main__":`'
    )
