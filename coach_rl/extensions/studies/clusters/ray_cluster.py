"""An executor of jobs as tasks of a Ray cluster, and what its workers do.

Ray chooses where a job runs by what it needs. A job whose worker or machine is gone is lost, and
the driver submits it again; the tasks of a driver that is killed are ended by Ray. All machines
share the folder of all experiments: a job fails on one that doesn't see the driver's.
"""

import os
import socket
import threading
import uuid
from concurrent.futures import Future, wait
from dataclasses import replace
from pathlib import Path

import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.core.errors import CoachError, ConfigurationError, RunError, in_one_line, require
from coach_rl.extensions.studies.job import (
    Job,
    JobResult,
    Needs,
    remember_job,
    run_job,
    with_absolute_paths,
)
from coach_rl.extensions.workers.worker_places import first_line, import_ray, join_ray
from coach_rl.processes.worker_messages import WorkerLost

POLL_SECONDS = 0.5
"""Interval at which jobs are polled for having begun."""

_MARK = ".driver-"
"""Beginning of the name of a file by which workers know a folder; host and process follow."""


class RayCluster:
    """An executor on a Ray cluster; close it.

    Args:
        address: HOST:PORT of the cluster's head, on a machine that has joined it. None: the cluster
            that RAY_ADDRESS names or that has been started on this machine; where there is none,
            one of this machine alone is started and ended with the executor.
    """

    def __init__(self, address: str | None = None) -> None:
        self._ray = import_ray()
        self._is_ours = not self._ray.is_initialized()
        if self._is_ours:
            join_ray(self._ray, address)
        self.slots = max(1, int(self._ray.cluster_resources().get("CPU", 1)))
        self._marks: dict[Path, Path] = {}
        """A file of a new name in each folder of all experiments, by the folder."""
        self._given: dict[str, tuple[Job, Future[JobResult], object]] = {}
        self._lock = threading.Lock()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit a job; a ConfigurationError is in the future of one that can never run."""
        future: Future[JobResult] = Future()
        try:
            self._require_room(job.needs)
            self._give(job, future)
        except CoachError as error:
            future.set_exception(error)
        return future

    def close(self, *, cancel: bool = False) -> None:
        with self._lock:
            given = list(self._given.values())
        if cancel:
            for _, future, task in given:
                future.cancel()
                self._ray.cancel(task)
        wait([future for _, future, _ in given])
        self._over.set()
        for mark in self._marks.values():
            for path in mark.parent.glob(f"{mark.name}*"):
                path.unlink(missing_ok=True)
        self._marks.clear()
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()

    def _give(self, job: Job, future: Future[JobResult]) -> None:
        here = with_absolute_paths(job)
        remember_job(here)
        mark = self._mark(here.root)
        attempt = uuid.uuid4().hex
        task = self._ray.remote(max_retries=0, **_options(job.needs))(run_marked_job)
        with self._lock:
            sent = task.remote(here, mark.name, attempt)
            self._given[attempt] = job, future, sent
        sent.future().add_done_callback(lambda done: self._settle(attempt, done))

    def _settle(self, attempt: str, done: Future[JobResult]) -> None:
        """Set a job's future from the result of its task."""
        exceptions = self._ray.exceptions
        with self._lock:
            job, future, _ = self._given.pop(attempt)
            if not future.running() and not future.set_running_or_notify_cancel():
                return
        try:
            result = done.result()
        except exceptions.TaskCancelledError:
            future.set_result(JobResult(job=job, state="stopped", folder=None))
        except exceptions.RayTaskError as error:
            is_lost = isinstance(error.cause, exceptions.RayError)
            cause = f"{type(error.cause).__name__}: {error.cause}"
            message = f"its worker on the Ray cluster failed: {first_line(cause)}"
            future.set_exception(WorkerLost(message) if is_lost else RunError(message))
        except Exception as error:
            future.set_exception(WorkerLost(f"its worker is gone: {first_line(str(error))}"))
        else:
            future.set_result(replace(result, job=job))

    def _watch(self) -> None:
        """Note which jobs have begun."""
        while not self._over.wait(POLL_SECONDS):
            for mark in list(self._marks.values()):
                begun = {
                    path.name.rpartition("-")[2] for path in mark.parent.glob(f"{mark.name}-*")
                }
                with self._lock:
                    for attempt in self._given.keys() & begun:
                        future = self._given[attempt][1]
                        if not (future.running() or future.done()):
                            future.set_running_or_notify_cancel()

    def _mark(self, root: Path) -> Path:
        """The file by which workers know a folder of all experiments."""
        if root not in self._marks:
            root.mkdir(parents=True, exist_ok=True)
            _remove_marks(root)
            mark = root / f"{_MARK}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
            mark.touch()
            self._marks[root] = mark
        return self._marks[root]

    def _require_room(self, needs: Needs) -> None:
        """Refuse what no machine of the cluster has, nor one that it can start."""
        wanted = {"CPU": needs.cores, "GPU": needs.gpus, "memory": _bytes(needs)}
        wanted = {name: amount for name, amount in wanted.items() if amount}
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        can_grow = self._ray._private.state.state.get_max_resources_from_cluster_config()
        for has in (*machines, *([can_grow] if can_grow else ())):
            if all(has.get(name, 0) >= amount for name, amount in wanted.items()):
                return
        raise ConfigurationError(
            f"a job needs {_shown(wanted)}, and no machine of the Ray cluster has that; it has "
            f"{' and '.join(map(_shown, machines))}; let the job need less, or add a machine"
        )


def _remove_marks(root: Path) -> None:
    """Remove what drivers that were killed on this machine have left."""
    own = f"{_MARK}{socket.gethostname()}-"
    for path in root.glob(f"{own}*"):
        process = path.name.removeprefix(own).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            path.unlink(missing_ok=True)


def _options(needs: Needs) -> dict[str, object]:
    """Options of a task of Ray's: a job's needs, and its threads."""
    threads = os.environ.get("OMP_NUM_THREADS", str(needs.cores))
    return {
        "num_cpus": needs.cores,
        "num_gpus": needs.gpus,
        "memory": _bytes(needs) or None,
        "runtime_env": {"env_vars": {"OMP_NUM_THREADS": threads}},
    }


def _bytes(needs: Needs) -> int:
    """Its memory in bytes; 0 where it is not known."""
    return int((needs.memory_gb or 0) * 2**30)


def _shown(resources: dict[str, float]) -> str:
    """Resources as text: `2 CPU, 8.0 GB memory`."""
    shown = {name: f"{resources[name]:g} {name}" for name in ("CPU", "GPU") if resources.get(name)}
    if memory := resources.get("memory"):
        shown["memory"] = f"{memory / 2**30:.1f} GB memory"
    return ", ".join(shown.values()) or "nothing free for jobs"


def run_marked_job(job: Job, mark: str, attempt: str) -> JobResult:
    """Run a job on this machine, in the driver's folder of all experiments.

    Args:
        job: The job, with absolute paths.
        mark: Name of a file in the folder, by which that is known to be the driver's.
        attempt: A name for this worker's work on it.
    """
    try:
        require(
            (job.root / mark).is_file(),
            f"there is no folder {job.root} that is the one of the machine where the jobs were "
            "submitted; give one that all machines share, by -ep",
        )
        (job.root / f"{mark}-{attempt}").touch()
        return run_job(job)
    except (CoachError, OSError) as error:
        message = f"on {socket.gethostname()}: {in_one_line(error)}"
        return JobResult(job=job, state="failed", folder=None, error=message)
