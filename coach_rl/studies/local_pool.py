"""A bounded pool of processes on this machine, started by a server that has imported torch once.

A process runs one job after another. Ctrl-C reaches the program that started the pool, which then
stops the processes, each once.
"""

import sys
import warnings
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue

from coach_rl.core.errors import require
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import WorkerProcess
from coach_rl.studies.job import Job, JobResult
from coach_rl.studies.job_run import run_job

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
        self._idle: SimpleQueue[WorkerProcess | None] = SimpleQueue()
        """Processes without a job; None: a slot whose process has not started or is gone."""
        for _ in range(slots):
            self._idle.put(None)
        self._busy: set[WorkerProcess] = set()
        self._is_cancelled = False

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit a job; it waits for a free process, and its future is running from then on."""
        return self._threads.submit(self._run, job)

    def close(self, *, cancel: bool = False) -> None:
        """Wait for submitted jobs and end the processes; harmless when repeated.

        Args:
            cancel: Whether to cancel waiting jobs and to signal running ones to stop, which save
                themselves first; a second signal stops them at once.
        """
        self._threads.shutdown(wait=False, cancel_futures=cancel)
        if cancel:
            self._is_cancelled = True
            for busy in list(self._busy):
                busy.terminate()
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            if (process := self._idle.get()) is not None:
                process.close()

    def _run(self, job: Job) -> JobResult:
        process = self._idle.get()
        try:
            if process is None:
                process = WorkerProcess(JobRunner, is_independent=True)
            self._busy.add(process)
            if self._is_cancelled:
                return JobResult(job=job, state="stopped", folder=None)
            process.on_warning = partial(self._on_warning, job)
            process.request(JobRunner.run, job)
            result: JobResult = process.reply()
            return result
        except WorkerLost:
            assert process is not None
            self._busy.discard(process)
            process.close()
            process = None
            raise
        finally:
            self._busy.discard(process)
            self._idle.put(process)


class JobRunner:
    """Runs jobs, in a process of the pool."""

    def run(self, job: Job) -> JobResult:
        """The result of a job; a warning that an earlier job gave is given again."""
        with warnings.catch_warnings():
            return run_job(job)


def _print_warning(job: Job, text: str) -> None:
    print(f"coach: warning: {job.name}, seed {job.task.seed}: {text}", file=sys.stderr)
