"""Places where jobs run: executors by the argument of `--on`, and this machine's own pool.

The pool is bounded by what the machine has free. Its processes are started by a server that has
imported torch once, and run one job after another. Ctrl-C reaches the program that started the
pool, which then stops the processes, each once.
"""

import math
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from queue import SimpleQueue

import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.core.errors import ConfigurationError, UnknownNameError, require
from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster
from coach_rl.extensions.studies.clusters.slurm import Slurm
from coach_rl.extensions.studies.job import Executor, Job, JobResult, Needs, run_job
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import WorkerProcess

OnWarning = Callable[[Job, str], None]

LOCAL = "local"
RAY = "ray"
SLURM = "slurm"
PLACES = (LOCAL, RAY, f"{RAY}:HOST:PORT", SLURM, f"{SLURM}:PARTITION")


MEMORY_GB = 0.5
"""Memory of a run without stated needs; see benchmarks/results/pool_overhead.md."""
_CGROUPS = Path("/sys/fs/cgroup")
_MEMBERSHIP = Path("/proc/self/cgroup")


def executor(
    on: str,
    jobs: Sequence[Job],
    *,
    at_once: int | None = None,
    on_warning: OnWarning | None = None,
) -> Executor:
    """The executor for a place; close it.

    Args:
        on: The place, one of `PLACES`: processes of this machine, or a cluster.
        jobs: What it is for, one job or more.
        at_once: Jobs at once on this machine; None: as many as fit.
        on_warning: Called, in some thread of this machine's pool, with a job and a warning of its
            run; None prints it.

    Raises:
        UnknownNameError: There is no such place.
        ConfigurationError: It cannot be reached, or decides itself how many jobs run at once.
    """
    check_place(on)
    place, _, detail = on.partition(":")
    if place == LOCAL:
        at_once = at_once or max_parallel_runs(_most(jobs))
        return LocalPool(min(at_once, len(jobs)), on_warning=on_warning)
    if at_once is not None:
        raise ConfigurationError(
            f"--jobs counts processes of this machine, and {place} decides itself how many jobs "
            "run at once, by what each of them needs; leave it out"
        )
    return RayCluster(detail or None) if place == RAY else Slurm(detail or None)


def check_place(on: str) -> None:
    """Raise an `UnknownNameError` where there is no such place."""
    place, colon, detail = on.partition(":")
    if place not in (LOCAL, RAY, SLURM) or (colon and (place == LOCAL or not detail)):
        raise UnknownNameError("place to run", on, PLACES)


def _most(jobs: Sequence[Job]) -> Needs:
    """Needs that cover those of every job."""
    known = [job.needs.memory_gb for job in jobs if job.needs.memory_gb is not None]
    return Needs(
        cores=max(job.needs.cores for job in jobs),
        gpus=max(job.needs.gpus for job in jobs),
        memory_gb=max(known) if known else None,
    )


def max_parallel_runs(needs: Needs) -> int:
    """Number of runs that fit on this machine at once, by free memory and usable cores.

    There is always room for one.

    Args:
        needs: What each of them takes.
    """
    memory = MEMORY_GB if needs.memory_gb is None else needs.memory_gb
    by_memory = _free_memory() / (memory * 1e9) if memory else math.inf
    return max(1, int(min(_cores() / needs.cores, by_memory)))


def _cores() -> float:
    """Cores that this process may use, by its affinity and by the quota of its container."""
    known = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    quotas = [float(known or 1)]
    for folder in _control_groups("cpu"):
        if (entry := _entry(folder / "cpu.max")) and not entry.startswith("max"):
            quota, period = map(float, entry.split())
            quotas.append(quota / period)
        quota, period = (
            float(_entry(folder / f"cpu.cfs_{name}_us") or 0) for name in ("quota", "period")
        )
        if quota > 0 and period > 0:
            quotas.append(quota / period)
    return min(quotas)


def _free_memory() -> float:
    """Bytes of memory that are free for this process, on the machine and in its container."""
    free = [float(psutil.virtual_memory().available)]
    for folder in _control_groups("memory"):
        for most, used in (
            ("memory.max", "memory.current"),
            ("memory.limit_in_bytes", "memory.usage_in_bytes"),
        ):
            limit, taken = _entry(folder / most), _entry(folder / used)
            if limit.isdecimal() and taken.isdecimal():
                free.append(float(limit) - float(taken) + _file_cache(folder))
    return max(0.0, min(free))


def _file_cache(group: Path) -> float:
    """Bytes of files that a control group caches and releases on demand."""
    statistics = dict(line.split() for line in _entry(group / "memory.stat").splitlines())
    return float(statistics.get("total_inactive_file", statistics.get("inactive_file", 0)))


def _control_groups(controller: str) -> list[Path]:
    """The control groups that this process is in, up to the root; none elsewhere than on Linux."""
    folders = []
    for line in _entry(_MEMBERSHIP).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers == "" or controller in controllers.split(","):
            root = _CGROUPS / (controller if controllers else "")
            group = root / path.lstrip("/")
            folders += [group, *(above for above in group.parents if above.is_relative_to(root))]
    return folders


def _entry(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


class LocalPool:
    """An executor of jobs in processes of this machine; close it.

    Args:
        slots: Processes at once, 1 or more.
        on_warning: Called, in some thread, with a job and a warning of its run; None prints it.
    """

    def __init__(self, slots: int, *, on_warning: OnWarning | None = None) -> None:
        require(slots >= 1, f"slots must be 1 or more, got {slots}")
        self.slots = slots
        self._on_warning = on_warning or _print_warning
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="job")
        self._idle: SimpleQueue[WorkerProcess | None] = SimpleQueue()
        """Processes without a job; None: a slot whose process has not started or is gone."""
        for _ in range(slots):
            self._idle.put(None)
        self._busy: set[WorkerProcess] = set()
        self._is_cancelled = False

    def submit(self, job: Job) -> Future[JobResult]:
        """Submit a job; it waits for a free process, and its future is running from then on."""
        return self._threads.submit(self._run, job)

    def close(self, *, cancel: bool = False) -> None:
        """Wait for submitted jobs and end the processes; harmless when repeated.

        Args:
            cancel: Whether to cancel waiting jobs and to signal running ones to stop, which save
                themselves first; a second signal stops them at once.
        """
        self._threads.shutdown(wait=False, cancel_futures=cancel)
        if cancel:
            self._is_cancelled = True
            for busy in list(self._busy):
                busy.terminate()
        self._threads.shutdown(wait=True)
        while not self._idle.empty():
            if (process := self._idle.get()) is not None:
                process.close()

    def _run(self, job: Job) -> JobResult:
        process = self._idle.get()
        try:
            if process is None:
                process = WorkerProcess(JobRunner, is_independent=True)
            self._busy.add(process)
            if self._is_cancelled:
                return JobResult(job=job, state="stopped", folder=None)
            process.on_warning = partial(self._on_warning, job)
            process.request(JobRunner.run, job)
            result: JobResult = process.reply()
            return result
        except WorkerLost:
            assert process is not None
            self._busy.discard(process)
            process.close()
            process = None
            raise
        finally:
            self._busy.discard(process)
            self._idle.put(process)


class JobRunner:
    """Runs jobs, in a process of the pool."""

    def run(self, job: Job) -> JobResult:
        """The result of a job; a warning that an earlier job gave is given again."""
        with warnings.catch_warnings():
            return run_job(job)


def _print_warning(job: Job, text: str) -> None:
    print(f"coach: warning: {job.name}, seed {job.task.seed}: {text}", file=sys.stderr)
