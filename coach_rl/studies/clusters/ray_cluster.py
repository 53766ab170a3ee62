"""An executor of jobs as tasks of a Ray cluster, and what its workers do.

Ray chooses where a job runs by what it needs. A job whose worker or machine is gone is lost, and
the driver submits it again; the tasks of a driver that is killed are ended by Ray. A worker that
sees the driver's folder runs the job there. Any other has a folder of its own, which it copies to
the driver every few seconds, so that another worker can continue.
"""

import fcntl
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.configuration.preset_file import Preset
from coach_rl.core.errors import CoachError, ConfigurationError, RunError, in_one_line
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_places import first_line, import_ray, join_ray
from coach_rl.runs.folder import MANIFEST
from coach_rl.runs.lock import GONE_AFTER_SECONDS, RunInUseError
from coach_rl.studies.clusters.copying import (
    PresetBundle,
    RunCopy,
    RunStore,
    bundled,
    copy_run,
    own_folder,
    unbundle,
    with_absolute_paths,
)
from coach_rl.studies.job import (
    Job,
    JobResult,
    Needs,
    find_identity,
    identity,
    remember_job,
    run_job,
)

POLL_SECONDS = 0.5
"""Interval at which jobs are polled for having begun."""

_MARK = ".driver-"
"""Beginning of the name of a file by which workers know a folder; host and process follow."""
Call = Callable[..., Any]
"""Calls a method by its name."""
SEND_EVERY_SECONDS = 10.0
"""Interval at which a run is copied to the driver."""


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


@dataclass(frozen=True, kw_only=True)
class RemoteJob:
    """A job as a worker receives it."""

    job: Job
    """The job, with absolute paths."""
    attempt: str
    """A name for this worker's work on it."""
    digest: str
    """The job's identity."""
    run: str | None
    """Name of its run's folder; None where it has not begun."""
    mark: str
    """Name of a file in the folder of all experiments, by which that is known to be the same."""


class DriverStore:
    """The `RunStore` beside the driver, for one attempt: its methods without that argument.

    Args:
        call: Calls a method of the store by its name, and waits for the answer.
        attempt: The attempt's name.
    """

    def __init__(self, call: Call, attempt: str) -> None:
        self._call, self._attempt = call, attempt

    def __getattr__(self, method: str) -> Call:
        return partial(self._call, method, self._attempt)


def run_remote_job(remote_job: RemoteJob, bundle: PresetBundle | None, store: object) -> JobResult:
    """Run a job on this machine; see `run_for`. The store is Ray's handle of the `RunStore`."""
    import ray

    def call(method: str, *arguments: object) -> object:
        return ray.get(getattr(store, method).remote(*arguments))

    return run_for(remote_job, bundle, call)


def run_for(remote_job: RemoteJob, bundle: PresetBundle | None, call: Call) -> JobResult:
    """Run a job for a driver whose `RunStore` is called by `call`.

    Args:
        remote_job: The job.
        bundle: Its preset, unless that is one of coach_rl's.
        call: Calls a method of the store by its name, and waits for the answer.
    """
    job = remote_job.job
    try:
        preset = None if bundle is None else unbundle(bundle)
        is_shared = (job.root / remote_job.mark).is_file()
        _begin(call, remote_job, None if is_shared else remote_job.run)
        if is_shared:
            return run_job(job, preset=preset)
        return _run_apart(remote_job, preset, DriverStore(call, remote_job.attempt))
    except (CoachError, OSError) as error:
        message = f"on {socket.gethostname()}: {in_one_line(error)}"
        return JobResult(job=job, state="failed", folder=None, error=message)


def _begin(call: Call, remote_job: RemoteJob, run: str | None) -> None:
    """Announce the attempt to the driver; wait while another process there has the run."""
    deadline = time.monotonic() + 2 * GONE_AFTER_SECONDS
    while True:
        try:
            call("begin", remote_job.attempt, remote_job.digest, remote_job.job.name, run)
        except RunInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


def _run_apart(remote_job: RemoteJob, preset: Preset | None, home: DriverStore) -> JobResult:
    """Run a job in a folder of this machine, and copy its run to the driver."""
    job = remote_job.job
    with _own_root() as root:
        experiment = root / job.name
        if remote_job.run is not None:
            copy_run(home, RunCopy(experiment / remote_job.run))
        with _sending(experiment, home):
            result = run_job(replace(job, root=root), preset=preset)
        if result.folder is None:
            return result
        try:
            home.place(result.folder.name)
            name = copy_run(RunCopy(result.folder), home)
            home.end(RunCopy(result.folder).listing())
        except (CoachError, OSError) as error:
            kept = root.rename(root.with_name(root.name.replace("run", "kept", 1)))
            return replace(
                result,
                state="failed",
                error=f"the run could not be brought back: {in_one_line(error)}; it is kept on "
                f"{socket.gethostname()} in {kept}",
            )
        return replace(result, folder=job.root / job.name / name)


@contextmanager
def _sending(experiment: Path, home: DriverStore) -> Iterator[None]:
    """Copy a run to the driver every few seconds; the run stops if another process has it."""
    over = threading.Event()

    def send() -> None:
        copy = None
        while not over.wait(SEND_EVERY_SECONDS):
            found = [path.parent for path in experiment.glob(f"*/{MANIFEST}")]
            if copy is None and found:
                copy = RunCopy(found[0])
            try:
                if copy is not None:
                    home.place(copy.run.path.name)
                    copy_run(copy, home)
            except RunInUseError:
                os.kill(os.getpid(), signal.SIGTERM)
                return
            except (CoachError, OSError):
                continue  # what still fails at the end is reported there

    thread = threading.Thread(target=send, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@contextmanager
def _own_root() -> Iterator[Path]:
    """A folder for a run, removed at the end; also those that killed workers have left."""
    parent = own_folder() / "runs"
    parent.mkdir(exist_ok=True)
    for lock in parent.glob("*.lock"):
        with suppress(OSError), lock.open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
            lock.unlink()
    handle, name = tempfile.mkstemp(prefix="run-", suffix=".lock", dir=parent)
    with os.fdopen(handle, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        root = Path(name).with_suffix("")
        root.mkdir()
        try:
            yield root
        finally:
            shutil.rmtree(root, ignore_errors=True)
            Path(name).unlink(missing_ok=True)
