"""A job on a worker of a Ray cluster; its driver is `ray_cluster`.

A worker that sees the driver's folder runs the job there. Any other has a folder of its own, which
it copies to the driver every few seconds, so that another worker can continue.
"""

import fcntl
import os
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coach_rl.configuration.preset_file import Preset
from coach_rl.core.errors import CoachError, in_one_line
from coach_rl.runs.folder import MANIFEST
from coach_rl.runs.lock import GONE_AFTER_SECONDS, RunInUseError
from coach_rl.studies.clusters.copying import (
    FileState,
    Listing,
    PresetBundle,
    RunCopy,
    copy_run,
    own_folder,
    unbundle,
)
from coach_rl.studies.job import Job, JobResult
from coach_rl.studies.job_run import run_job

Call = Callable[..., Any]
"""Calls a method by its name."""

SEND_EVERY_SECONDS = 10.0
"""Interval at which a run is copied to the driver."""


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
    """The `RunStore` beside the driver, for one attempt.

    Args:
        call: Calls a method of the store by its name, and waits for the answer.
        attempt: The attempt's name.
        name: Name for the run where it is new.
    """

    def __init__(self, call: Call, attempt: str, name: str = "") -> None:
        self._call, self._attempt, self.name = call, attempt, name

    def listing(self) -> Listing:
        """The files that the run has there."""
        listing: Listing = self._call("listing", self._attempt)
        return listing

    def read(self, path: str, begin: int, end: int) -> bytes:
        """Part of a file."""
        data: bytes = self._call("read", self._attempt, path, begin, end)
        return data

    def missing(self, listing: Listing) -> list[str]:
        """One path for each content that is not there."""
        paths: list[str] = self._call("missing", self._attempt, self.name, listing)
        return paths

    def put(self, state: FileState, begin: int, data: bytes) -> None:
        """Send part of a content."""
        self._call("put", self._attempt, state, begin, data)

    def commit(self, listing: Listing) -> str:
        """Make the run there what was listed."""
        name: str = self._call("commit", self._attempt, listing)
        return name

    def end(self, listing: Listing) -> None:
        """End the attempt, with the run there whole."""
        self._call("end", self._attempt, listing)


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
        home = DriverStore(call, remote_job.attempt, remote_job.run or "")
        return _run_apart(remote_job, preset, home)
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
            home.name = result.folder.name
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
                copy, home.name = RunCopy(found[0]), found[0].name
            try:
                if copy is not None:
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
