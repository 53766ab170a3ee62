"""Executors: whatever gives jobs to processes, on this machine or a cluster."""

from concurrent.futures import Future
from typing import Protocol

from coach_rl.core.errors import RunError
from coach_rl.studies.job import Job, JobResult


class LostJob(RunError):
    """The process that ran a job is gone: killed, out of memory, preempted, or its host is down."""


class Executor(Protocol):
    """A giver of jobs to processes, which call `run_job`.

    with closing(LocalPool(4)) as executor:
        future = executor.submit(job)
        result = future.result()   # LostJob where its process has gone
    """

    slots: int
    """Jobs that can run at once."""

    def submit(self, job: Job) -> Future[JobResult]:
        """Give a job out; it waits for a free slot, and its future is running from then on."""
        ...

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the jobs given out and end the processes; harmless when repeated.

        Args:
            cancel: Whether to cancel the jobs that wait and to ask those that run to stop, which
                save themselves first; asked once more they stop at once.
        """
        ...
