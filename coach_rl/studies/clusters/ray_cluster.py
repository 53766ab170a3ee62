"""An executor of jobs as tasks of a Ray cluster; what its workers do is in `ray_worker`.

Ray chooses where a job runs by what it needs. A job whose worker or machine is gone is lost, and
the driver submits it again; the tasks of a driver that is killed are ended by Ray.
"""

import os
import socket
import threading
import uuid
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.core.errors import CoachError, ConfigurationError, RunError
from coach_rl.processes.ray_connection import first_line, import_ray, join_ray
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.studies.clusters.copying import RunStore, bundled, with_absolute_paths
from coach_rl.studies.clusters.ray_worker import RemoteJob, run_remote_job
from coach_rl.studies.job import Job, JobResult, Needs
from coach_rl.studies.job_run import find_identity, identity, remember_job

POLL_SECONDS = 0.5
"""Interval at which jobs are polled for having begun."""

_MARK = ".driver-"
"""Beginning of the name of a file by which workers know a folder; host and process follow."""


@dataclass(frozen=True, kw_only=True)
class _Home:
    """A folder of experiments on the driver's machine."""

    mark: Path
    """A file in it with a name that is new."""
    store: Any
    """Ray's handle of its `RunStore`, in a process on this machine."""


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
        self._homes: dict[Path, _Home] = {}
        self._bundles: dict[str, object] = {}
        """Ray's handles of the presets' folders, by the text that names the preset."""
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
        for home in self._homes.values():
            home.mark.unlink(missing_ok=True)
            self._ray.kill(home.store)
        self._homes.clear()
        if self._is_ours and self._ray.is_initialized():
            self._ray.shutdown()

    def _give(self, job: Job, future: Future[JobResult]) -> None:
        here = with_absolute_paths(job)
        remember_job(here)
        home, digest = self._home(here.root), identity(here)
        run = find_identity(here.root / here.name, digest)
        if here.preset not in self._bundles:
            made = bundled(here)
            self._bundles[here.preset] = None if made is None else self._ray.put(made)
        bundle = self._bundles[here.preset]
        remote_job = RemoteJob(
            job=here,
            attempt=uuid.uuid4().hex,
            digest=digest,
            run=None if run is None else run.path.name,
            mark=home.mark.name,
        )
        task = self._ray.remote(max_retries=0, **_options(job.needs))(run_remote_job)
        with self._lock:
            sent = task.remote(remote_job, bundle, home.store)
            self._given[remote_job.attempt] = job, future, sent
        sent.future().add_done_callback(lambda done: self._settle(remote_job.attempt, done))

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
            folder = result.folder and job.root / job.name / result.folder.name
            future.set_result(replace(result, job=job, folder=folder))

    def _watch(self) -> None:
        """Note which jobs have begun."""
        while not self._over.wait(POLL_SECONDS):
            for home in list(self._homes.values()):
                try:
                    begun = self._ray.get(home.store.begun.remote(), timeout=10)
                except self._ray.exceptions.RayError:
                    continue  # it restarts
                with self._lock:
                    for attempt in self._given.keys() & set(begun):
                        future = self._given[attempt][1]
                        if not (future.running() or future.done()):
                            future.set_running_or_notify_cancel()

    def _home(self, root: Path) -> _Home:
        """The folder of experiments, with a mark in it and a store that workers can query."""
        if root not in self._homes:
            root.mkdir(parents=True, exist_ok=True)
            _remove_marks(root)
            mark = root / f"{_MARK}{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex}"
            mark.touch()
            context = self._ray.get_runtime_context()
            here = self._ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy(
                context.get_node_id(), soft=False
            )
            actor = self._ray.remote(num_cpus=0, max_restarts=-1)(RunStore)
            store = actor.options(scheduling_strategy=here).remote(root)
            self._homes[root] = _Home(mark=mark, store=store)
        return self._homes[root]

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
