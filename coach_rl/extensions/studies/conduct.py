"""Running many jobs to completion; one that fails doesn't end the others.

with closing(LocalPool(4)) as pool:
    results = conduct(jobs, pool)
"""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from coach_rl.core.errors import in_one_line
from coach_rl.extensions.studies.job import (
    Announce,
    Executor,
    Job,
    JobResult,
    State,
    find_identity,
    identity,
    is_finished,
)
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.runs.checkpoint import list_checkpoints, steps_of
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.stop_requests import Interrupted, StopRequests

MOST_LOSSES = 5
"""Number of times in a row that a job may be lost without a new checkpoint before it has failed."""
POLL_SECONDS = 1.0
"""Time after which `on_change` is called though nothing has changed but the runs' progress."""


@dataclass(frozen=True, kw_only=True)
class JobStatus:
    """The status of a job."""

    job: Job
    state: Literal["waiting", "running"] | State
    folder: Path | None
    """The run's folder; None where there is none yet, or it is on another machine."""
    losses: int = 0
    """Number of times that its process was lost."""
    error: str = ""
    """Reason of a failure, one line."""


OnChange = Callable[[Sequence[JobStatus]], None]
"""Called with the status of all jobs, in their order."""


def conduct(
    jobs: Sequence[Job],
    executor: Executor,
    *,
    on_change: OnChange | None = None,
    announce: Announce | None = None,
) -> list[JobResult]:
    """Run jobs to completion, tolerating failures of some.

    A job whose run is finished isn't submitted. One that is lost, because its process was killed,
    or that was stopped there, is submitted again and continues from its last checkpoint.

    Args:
        jobs: The runs to be made. One that is there twice is made once.
        executor: Runs them in processes; closed by its owner, and by a signal.
        on_change: Called when the status of a job changes, and every second.
        announce: Called with a line when a signal arrives.

    Returns:
        Their results, in their order.

    Raises:
        Interrupted: By Ctrl-C, SIGTERM or SIGHUP, after all runs have saved themselves and stopped;
            a second one stops them at once.
    """
    tracks = [JobTracker(job) for job in jobs]
    known: dict[tuple[Path, str, str], JobTracker] = {}

    def notify() -> None:
        if on_change is not None:
            on_change([track.status() for track in tracks])

    with StopRequests():
        try:
            for index, track in enumerate(tracks):
                track.resolve()
                tracks[index] = known.setdefault(track.key, track)
                if tracks[index] is track:
                    track.submit(executor)
            while futures := [track.future for track in tracks if track.future]:
                notify()
                wait(futures, timeout=POLL_SECONDS, return_when=FIRST_COMPLETED)
                for track in tracks:
                    track.collect(executor)
        except KeyboardInterrupt as error:
            stop_all(executor, announce)
            for track in tracks:
                track.conclude()
            notify()
            done = [track.status().state for track in tracks].count("done")
            raise Interrupted(
                f"stopped; {done} of {len(tracks)} runs are done, and the same command continues "
                "with the others",
                signal=getattr(error, "signal", 2),
            ) from None
    notify()
    return [track.result for track in tracks if track.result is not None]


def stop_all(executor: Executor, announce: Announce | None) -> None:
    """Stop all runs; a further signal stops them at once."""
    if announce is not None:
        announce("stopping all runs after this step and saving; once more stops at once")
    while True:
        try:
            return executor.close(cancel=True)
        except KeyboardInterrupt:
            continue


class JobTracker:
    """A job and its progress towards a result."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.future: Future[JobResult] | None = None
        """None before submission, and once there is a result."""
        self.result: JobResult | None = None
        """None until there is one."""
        self.digest = ""
        self._folder: RunFolder | None = None
        """None while it has not been found."""
        self._losses = self._losses_in_a_row = self._saved = 0

    @property
    def key(self) -> tuple[Path, str, str]:
        """The same for jobs that have one run; of its own for one that doesn't resolve."""
        return self.job.root, self.job.name, self.digest or str(id(self))

    def resolve(self) -> None:
        """Find its run, and whether that is finished."""
        try:
            self.digest = identity(self.job)
            self._find()
            if self._folder is not None and is_finished(self._folder):
                self._end("done")
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._end("failed", in_one_line(error))

    def submit(self, executor: Executor) -> None:
        """Submit the job to the executor, unless there is a result already."""
        if self.result is None:
            self.future = executor.submit(self.job)

    def collect(self, executor: Executor) -> None:
        """Collect the result where there is one; submit a lost job again."""
        if self.future is None or not self.future.done():
            return
        future = self.future
        self.future = None
        try:
            result = future.result()
        except WorkerLost as error:
            self._lost(str(error), executor)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            self._end("failed", in_one_line(error))
        else:
            if result.state == "stopped":
                self._lost("it was stopped by a signal to its process", executor)
            else:
                self.result = result

    def conclude(self) -> None:
        """Collect the result where there is one; a job without one was stopped."""
        future = self.future
        self.future = None
        if future is not None and not future.cancelled() and future.exception() is None:
            self.result = future.result()
        elif self.result is None:
            self._end("stopped")

    def status(self) -> JobStatus:
        """The status of the job."""
        if self.result is not None:
            state = self.result.state
            folder = self.result.folder
            return JobStatus(
                job=self.job,
                state=state,
                folder=folder,
                losses=self._losses,
                error=self.result.error,
            )
        is_running = self.future is not None and self.future.running()
        if is_running and self._folder is None:
            self._find()
        return JobStatus(
            job=self.job,
            state="running" if is_running else "waiting",
            folder=None if self._folder is None else self._folder.path,
            losses=self._losses,
        )

    def _lost(self, why: str, executor: Executor) -> None:
        self._find()
        saved = 0
        if self._folder is not None and (kept := list_checkpoints(self._folder.checkpoints)):
            saved = steps_of(kept[-1])
        self._losses += 1
        self._losses_in_a_row = 1 if saved > self._saved else self._losses_in_a_row + 1
        self._saved = saved
        if self._losses_in_a_row < MOST_LOSSES:
            self.submit(executor)
        else:
            self._end(
                "failed", f"abandoned after {MOST_LOSSES} attempts without a new checkpoint: {why}"
            )

    def _find(self) -> None:
        self._folder = find_identity(self.job.root / self.job.name, self.digest)

    def _end(self, state: State, error: str = "") -> None:
        if self._folder is None and self.digest:
            self._find()
        folder = None if self._folder is None else self._folder.path
        self.result = JobResult(job=self.job, state=state, folder=folder, error=error)
