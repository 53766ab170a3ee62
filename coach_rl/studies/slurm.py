"""An executor of jobs on a Slurm cluster, by submitit; the runs' folder is shared by its machines.

A job that Slurm preempts, or whose time is up, saves its run, is queued again, and continues from
there. Jobs outlive the program that submitted them: the same program, started again, waits for
those that are still there.
"""

import os
import signal
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Literal

from coach_rl.core.errors import CoachError, ConfigurationError, RunError, how_to_install, in_one_line
from coach_rl.experiment.presets import find_preset
from coach_rl.experiment.strict_json import from_json, to_json, write_text
from coach_rl.studies.executors import LostJob
from coach_rl.studies.job import Job, JobResult
from coach_rl.studies.job_run import identity, run_job

Cluster = Literal["slurm", "local"]
"""Slurm itself, or processes of this machine that are treated alike."""

FOLDER = ".submitit"
"""The folder, below that of all experiments, of what submitit writes: scripts, output, results."""

MINUTES = 24 * 60
"""Time limit of a job, if SBATCH_TIMELIMIT doesn't set another; it goes on in a new one."""
TIMEOUTS = 1000
"""Number of times that a job's time may be up."""
LOOK_SECONDS = 0.5

_ALIVE = ("COMPLETING", "CONFIGURING", "PENDING", "PREEMPTED", "REQUEUED", "RUNNING", "SUSPENDED")
"""States of jobs in Slurm that have not come to their end, or will be started again."""
_BEGUN = ("COMPLETING", "RUNNING", "SUSPENDED")


@dataclass
class SubmittedJob:
    """A job as submitit calls it in its process."""

    job: Job

    def __call__(self) -> JobResult:
        """Run it; where Slurm wants the machine back, save the run and have the job queued again."""
        preemption = _preemption_signal()
        requeue = signal.getsignal(preemption)
        frames: list[FrameType | None] = []

        def stop(_number: int, frame: FrameType | None) -> None:
            frames.append(frame)
            os.kill(os.getpid(), signal.SIGTERM)

        signal.signal(preemption, stop)
        result = run_job(self.job)
        signal.signal(preemption, requeue)
        if result.state == "stopped":
            if frames and callable(requeue):
                requeue(preemption, frames[0])  # ends this process
            raise SystemExit(128 + signal.SIGTERM)  # without a result: Slurm may start it again
        return result

    def checkpoint(self) -> Any:
        """What is to be called when the job is started again: the same, for the run has been saved."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


@dataclass(frozen=True, kw_only=True)
class _Given:
    """A job in Slurm's hands."""

    job: Job
    future: Future[JobResult]
    task: Any
    """submitit's handle of it."""


class Slurm:
    """An executor on a Slurm cluster; close it.

    Accounts, time limits and more are set as for `sbatch`, by SBATCH_ACCOUNT, SBATCH_TIMELIMIT, ...

    Args:
        partition: Where the jobs are queued; None: the cluster's default.
        cluster: "local" to try the same with processes on this machine.
    """

    def __init__(self, partition: str | None = None, *, cluster: Cluster = "slurm") -> None:
        self._submitit = _imported()
        self._partition, self._cluster = partition, cluster
        self.slots = os.cpu_count() or 1 if cluster == "local" else 1000
        self._given: list[_Given] = []
        self._is_cancelled = False
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
