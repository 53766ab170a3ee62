"""A worker of a Ray cluster with a job; its driver is `ray_cluster`.

Where the worker sees the driver's folder it runs the job there. Elsewhere it works in a folder of
its own, which it sends home every few seconds, so that another worker can go on from there.
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
"""Interval at which a run is sent home."""


@dataclass(frozen=True, kw_only=True)
class Errand:
    """A job on its way to a worker."""

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


class HomeStore:
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


def run_errand(errand: Errand, parcel: PresetBundle | None, store: object) -> JobResult:
    """Run a job on this machine.

    Args:
        errand: The job.
        parcel: Its preset, where that is not one of coach_rl's.
        store: Ray's handle of the driver's `RunStore`.
    """
    import ray

    def call(method: str, *arguments: object) -> object:
        return ray.get(getattr(store, method).remote(*arguments))

    return run_for(errand, parcel, call)


def run_for(errand: Errand, parcel: PresetBundle | None, call: Call) -> JobResult:
    """Run a job for a driver whose `RunStore` is called by `call`.

    Args:
        errand: The job.
        parcel: Its preset, where that is not one of coach_rl's.
        call: Calls a method of the store by its name, and waits for the answer.
    """
    job = errand.job
    try:
        preset = None if parcel is None else unbundle(parcel)
        is_shared = (job.root / errand.mark).is_file()
        _begin(call, errand, None if is_shared else errand.run)
        if is_shared:
            return run_job(job, preset=preset)
        return _run_apart(errand, preset, HomeStore(call, errand.attempt, errand.run or ""))
    except (CoachError, OSError) as error:
        message = f"on {socket.gethostname()}: {in_one_line(error)}"
        return JobResult(job=job, state="failed", folder=None, error=message)


def _begin(call: Call, errand: Errand, run: str | None) -> None:
    """Tell the driver's machine; wait while another process there works on the run."""
    deadline = time.monotonic() + 2 * GONE_AFTER_SECONDS
    while True:
        try:
            call("begin", errand.attempt, errand.digest, errand.job.name, run)
        except RunInUseError:
            if time.monotonic() > deadline:
                raise
            time.sleep(1)
        else:
            return


def _run_apart(errand: Errand, preset: Preset | None, home: HomeStore) -> JobResult:
    """Run a job in a folder of this machine's, and bring its run home."""
    job = errand.job
    with _own_root() as root:
        experiment = root / job.name
        if errand.run is not None:
            copy_run(home, RunCopy(experiment / errand.run))
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
def _sending(experiment: Path, home: HomeStore) -> Iterator[None]:
    """Send home what a run has saved, every few seconds; the run stops where nobody wants it."""
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
                continue  # what still fails at the end is said there

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
