"""A bounded pool of processes on this machine, started by a server that has imported torch once.

A worker runs one job after another. It is in a process group of its own, so that Ctrl-C reaches the
program that started the pool, which then stops its workers, each once.
"""

import atexit
import multiprocessing
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue

from coach_rl.core.errors import CoachWarning, ConfigurationError, require
from coach_rl.core.main_guard import leave_if_importing_script, script_advice
from coach_rl.studies.job import Job, JobResult, LostJob
from coach_rl.studies.job_run import run_job

_CONTEXT = multiprocessing.get_context("forkserver")

OnWarning = Callable[[Job, str], None]


class LocalPool:
    """An executor of jobs in processes of this machine; close it.

    Args:
        slots: Processes at once, 1 or more.
        on_warning: Called, in some thread, with a job and a warning of its run; None prints it.
    """

    def __init__(self, slots: int, *, on_warning: OnWarning | None = None) -> None:
        require(slots >= 1, f"slots must be 1 or more, got {slots}")
        self.slots = slots
        self._on_warning = on_warning or _print_warning
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="job")
        self._idle: SimpleQueue[_Worker | None] = SimpleQueue()
        """Workers without a job; None: a slot whose worker has not started or is gone."""
        for _ in range(slots):
            self._idle.put(None)
        self._busy: set[_Worker] = set()
        self._is_cancelled = False
        atexit.register(self._end_workers)

    def submit(self, job: Job) -> Future[JobResult]:
        """Give a job out; it waits for a free process, and its future is running from then on."""
        _start_server()
        return self._threads.submit(self._run, job)

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the jobs given out and end the processes; harmless when repeated.

        Args:
            cancel: Whether to cancel the jobs that wait and to ask those that run to stop, which
                save themselves first; asked once more they stop at once.
        """
        self._threads.shutdown(wait=False, cancel_futures=cancel)
        if cancel:
            self._is_cancelled = True
            for worker in list(self._busy):
                worker.stop()
        self._threads.shutdown(wait=True)
        self._end_workers()
        atexit.unregister(self._end_workers)

    def _run(self, job: Job) -> JobResult:
        worker = self._idle.get()
        try:
            if worker is None:
                worker = _Worker()
            self._busy.add(worker)
            if self._is_cancelled:
                return JobResult(job=job, state="stopped", folder=None)
            return worker.run(job, self._on_warning)
        except LostJob:
            worker = None
            raise
        finally:
            self._busy.discard(worker)
            self._idle.put(worker)

    def _end_workers(self) -> None:
        while not self._idle.empty():
            worker = self._idle.get()
            if worker is not None:
                worker.end()


class _Worker:
    """A process that runs one job after another."""

    def __init__(self) -> None:
        leave_if_importing_script()
        self._connection, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs,))
        self._process.start()
        theirs.close()

    def run(self, job: Job, on_warning: OnWarning) -> JobResult:
        """The result of a job; LostJob where the process ends first."""
        try:
            self._connection.send(job)
            while wait([self._connection, self._process.sentinel]) and self._connection.poll():
                answer: JobResult | ConfigurationError | str = self._connection.recv()
                if isinstance(answer, str):
                    on_warning(job, answer)
                    continue
                if isinstance(answer, ConfigurationError):
                    raise answer
                return answer
        except (EOFError, BrokenPipeError, ConnectionResetError):
            pass
        self.end()
        raise LostJob(f"its process {_ended(self._process.exitcode)}{script_advice()}")

    def stop(self) -> None:
        """Ask the run to save itself and stop; asked once more it stops at once."""
        self._process.terminate()

    def end(self) -> None:
        """End the process, which has no job."""
        self._connection.close()
        self._process.join()


def _start_server() -> None:
    """Start the server of processes, unless it runs; it imports what this process has imported.

    So a worker has torch and what the presets that were looked at here take.
    """
    ours = [name for name in list(sys.modules) if name.startswith("coach_rl.")]
    _CONTEXT.set_forkserver_preload(ours)
    forkserver.ensure_running()


def _print_warning(job: Job, text: str) -> None:
    print(f"coach: warning: {job.name}, seed {job.task.seed}: {text}", file=sys.stderr)


def _ended(exit_code: int | None) -> str:
    """The end of a process in words."""
    if exit_code is not None and exit_code < 0:
        reason = ", out of memory perhaps" if -exit_code == signal.SIGKILL else ""
        return f"was killed by {signal.Signals(-exit_code).name}{reason}"
    return f"ended with exit code {exit_code}"


def _serve(connection: Connection) -> None:
    """Run the jobs that come in, until the pool is closed or its process is gone."""

    def show_warning(
        message: Warning | str, category: type[Warning], *_: object, **__: object
    ) -> None:
        is_ours = issubclass(category, CoachWarning)
        connection.send(str(message) if is_ours else f"{category.__name__}: {message}")

    os.setpgrp()
    threading.Thread(target=_stop_with_pool, daemon=True).start()
    while True:
        try:
            job = _received(connection)
            with warnings.catch_warnings():
                warnings.showwarning = show_warning
                connection.send(run_job(job) if isinstance(job, Job) else job)
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return


def _received(connection: Connection) -> Job | ConfigurationError:
    """The next job; an error where this process cannot import what it is made of."""
    try:
        job: Job = connection.recv()
    except (ImportError, AttributeError) as error:
        return ConfigurationError(f"a process of the pool cannot read the job: {error}")
    return job


def _stop_with_pool() -> None:
    """Stop this process, whose run saves itself, when the process of the pool has gone."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os.kill(os.getpid(), signal.SIGTERM)
