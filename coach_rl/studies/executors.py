"""Executors, which run jobs in processes of this machine or a cluster."""

from concurrent.futures import Future
from typing import Protocol

from coach_rl.studies.job import Job, JobResult


class Executor(Protocol):
    """Runs jobs in other processes, which call `run_job`.

    with closing(LocalPool(4)) as executor:
        future = executor.submit(job)
        result = future.result()   # WorkerLost if its process is gone
    """

    slots: int
    """Jobs that can run at once."""

    def submit(self, job: Job) -> Future[JobResult]:
        """The future result of a job, which waits for a free slot; running from then on."""
        ...

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the jobs submitted and end the processes; harmless when repeated.

        Args:
            cancel: Whether to cancel the jobs that wait and to ask those that run to stop, which
                save themselves first; asked once more they stop at once.
        """
        ...
