"""An executor of jobs on a Slurm cluster, by submitit; the runs' folder is shared by its machines.

A job that Slurm preempts, or whose time is up, saves its run, is queued again, and continues from
there. Jobs outlive the program that submitted them: the same program, started again, waits for
those that are still there.
"""

import math
import os
import shlex
import shutil
import signal
import threading
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Literal

from coach_rl.configuration.strict_json import write_text
from coach_rl.core.errors import CoachError, ConfigurationError, RunError, how_to_install
from coach_rl.extensions.studies.job import Job, JobResult, identity, run_job, with_absolute_paths
from coach_rl.processes.worker_messages import WorkerLost

Cluster = Literal["slurm", "local"]
"""Slurm itself, or processes of this machine that are treated alike."""

FOLDER = ".submitit"
"""The folder, below that of all experiments, of what submitit writes: scripts, output, results."""
MINUTES = 24 * 60
"""Time limit of a job, unless SBATCH_TIMELIMIT sets another; then it is queued again."""
MOST_TIMEOUTS = 1000
"""Number of times that a job's time may be up."""
MOST_JOBS = 100
"""Jobs that Slurm is taken to run at once; Slurm itself decides."""
POLL_SECONDS = 0.5

_QUERY = threading.Lock()
"""Held while submitit queries Slurm: all its jobs share the answers, and it has no lock."""

_ALIVE = ("COMPLETING", "CONFIGURING", "PENDING", "PREEMPTED", "REQUEUED", "RUNNING", "SUSPENDED")
"""States of jobs that have not ended in Slurm, or will be started again."""


@dataclass
class SubmittedJob:
    """A job as submitit calls it in its process."""

    job: Job

    def __call__(self) -> JobResult:
        """Run it; on preemption, save the run and queue it again."""
        from submitit.core.job_environment import JobEnvironment

        preemption = int(JobEnvironment._usr_sig())
        requeue = signal.getsignal(preemption)
        frames: list[FrameType | None] = []

        def stop(_number: int, frame: FrameType | None) -> None:
            frames.append(frame)
            os.kill(os.getpid(), signal.SIGTERM)  # which the run takes, and saves itself

        signal.signal(preemption, stop)
        result = run_job(self.job)
        if result.state == "stopped":
            if frames and callable(requeue):
                requeue(preemption, frames[0])  # ends this process
            raise SystemExit(128 + signal.SIGTERM)  # without a result: Slurm may start it again
        return result

    def checkpoint(self) -> object:
        """The call by which the job is started again: the same, for its run has been saved."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self)


@dataclass(frozen=True, kw_only=True, eq=False)
class _Given:
    """A job in Slurm's hands."""

    job: Job
    future: Future[JobResult]
    task: Any
    """submitit's handle of it."""


class Slurm:
    """An executor on a Slurm cluster; close it.

    Accounts, time limits and the like are set as for `sbatch`: by SBATCH_ACCOUNT, SBATCH_TIMELIMIT.

    Args:
        partition: The queue of the jobs; None: the cluster's default.
        cluster: "local" to try the same with processes of this machine.
    """

    def __init__(self, partition: str | None = None, *, cluster: Cluster = "slurm") -> None:
        try:
            import submitit
        except ImportError as error:
            raise ConfigurationError(
                f"running on Slurm needs submitit; {how_to_install('slurm')}"
            ) from error
        self._submitit: ModuleType = submitit
        if cluster == "slurm" and shutil.which("sbatch") is None:
            raise ConfigurationError(
                "there is no Slurm on this machine (no sbatch); start from a login node of the "
                "cluster, or run on local or ray"
            )
        self._partition = partition
        self._cluster = cluster
        self.slots = MOST_JOBS
        self._given: list[_Given] = []
        self._is_cancelled = False
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit a job; one that an earlier program has submitted is waited for, not repeated."""
        future: Future[JobResult] = Future()
        try:
            here = with_absolute_paths(job)
            digest = identity(here)
            with _QUERY:
                task = self._earlier(here.root, digest) or self._submitted(here, digest)
        except CoachError as error:
            future.set_exception(error)
        else:
            self._given.append(_Given(job=job, future=future, task=task))
        return future

    def close(self, *, cancel: bool = False) -> None:
        given = list(self._given)
        if cancel:
            self._is_cancelled = True
            for each in given:
                if self._cluster == "slurm":
                    each.task.cancel(check=False)
                elif not each.task.done():
                    os.kill(int(each.task.job_id), signal.SIGTERM)  # passed on to the run
        wait([each.future for each in given])
        self._over.set()
        self._watcher.join()

    def _submitted(self, job: Job, digest: str) -> Any:
        """Submit a job; submitit's handle of it."""
        threads = os.environ.get("OMP_NUM_THREADS", str(job.needs.cores))
        parameters = {
            "name": job.name,
            "timeout_min": MINUTES,
            "cpus_per_task": job.needs.cores,
            "gpus_per_node": math.ceil(job.needs.gpus),
            "mem_gb": job.needs.memory_gb,
            "slurm_partition": self._partition,
            "slurm_setup": [f"export OMP_NUM_THREADS={shlex.quote(threads)}"],
            "slurm_additional_parameters": {"requeue": True},
        }
        try:
            job.root.mkdir(parents=True, exist_ok=True)
            executor = self._submitit.AutoExecutor(
                job.root / FOLDER,
                cluster=self._cluster,
                **{f"{self._cluster}_max_num_timeout": MOST_TIMEOUTS},
            )
            executor.update_parameters(
                **{name: value for name, value in parameters.items() if value is not None}
            )
            task = executor.submit(SubmittedJob(job))
        except (OSError, RuntimeError) as error:
            raise ConfigurationError(f"Slurm did not take the job: {_one_line(error)}") from error
        write_text(_note(job.root, digest), task.job_id)
        return task

    def _earlier(self, root: Path, digest: str) -> Any | None:
        """The handle of a job that Slurm has already; None where there is none."""
        note = _note(root, digest)
        if self._cluster != "slurm" or not note.exists():
            return None
        number = note.read_text(encoding="utf-8")
        task: Any = self._submitit.SlurmJob(root / FOLDER, number, tasks=[0])
        return task if _state(task) in _ALIVE else None

    def _watch(self) -> None:
        """Update the futures of jobs that have begun or ended."""
        while not self._over.wait(POLL_SECONDS):
            for given in list(self._given):
                with _QUERY:
                    is_done = given.task.done(force_check=self._is_cancelled)
                if not given.future.running() and (is_done or given.task.paths.stdout.exists()):
                    given.future.set_running_or_notify_cancel()
                if is_done:
                    self._given.remove(given)
                    with _QUERY:
                        self._settle(given)

    def _settle(self, given: _Given) -> None:
        """Set the result of a job's future."""
        task = given.task
        future = given.future
        stopped = JobResult(job=given.job, state="stopped", folder=None)
        output = f"its output is in {task.paths.stderr}"
        lost = WorkerLost(f"its process ended without a result; {output}")
        has_result = task.paths.result_pickle.exists()
        is_cancelled = self._is_cancelled or (
            self._cluster == "slurm" and _state(task) == "CANCELLED"
        )
        if is_cancelled and not has_result:
            future.set_result(stopped)
        elif self._cluster == "local" and not has_result:
            future.set_exception(lost)
        else:  # a network's file system may show it later, for which submitit waits
            try:
                future.set_result(replace(task.result(), job=given.job))
            except self._submitit.core.utils.UncompletedJobError:
                future.set_exception(lost)
            except Exception as error:
                future.set_exception(RunError(f"its process failed: {_one_line(error)}"))


def _note(root: Path, digest: str) -> Path:
    """The file with the number of a job's last submission."""
    return root / FOLDER / f"{digest[:32]}.job"


def _state(task: Any) -> str:
    """The state of a job in Slurm, in one word: `CANCELLED by 0` has more."""
    return [*str(task.get_info(mode="force").get("State", "")).split(), "UNKNOWN"][0]


def _one_line(error: BaseException) -> str:
    """The last line of an error, which is the informative one of submitit and Slurm."""
    return ["no reason given", *filter(None, map(str.strip, str(error).splitlines()))][-1]
