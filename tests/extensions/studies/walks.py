"""Jobs that take milliseconds, and what their runs have written."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psutil

from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.job import Job, JobResult, run_job
from coach_rl.processes.worker_messages import WorkerLost

WALK = str(Path(__file__).parents[2] / "fake_preset.py")


def walk(root: Path, seed: int = 3, **overrides: Any) -> Job:
    """A random walk that pretends to learn."""
    return Job(
        preset=WALK,
        overrides=overrides,
        task=Runtime(seed=seed, device="cpu"),
        name="walk",
        root=root,
        labels={"study": "walks", "variant": "slow"},
        tensorboard=False,
    )


def runs(root: Path) -> list[Path]:
    """The folders of a root's walks."""
    return sorted(path.parent for path in root.glob("walk/*/manifest.json"))


def numbers(run: Path) -> list[Any]:
    """What a run has logged, without times and without where it saved itself."""
    kinds = ("episode", "evaluation", "final_evaluation")
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [
        {name: value for name, value in record.items() if name != "wall_seconds"}
        for record in records
        if record["kind"] in kinds
    ]


def holder(root: Path, steps: int, run: Path | None = None) -> psutil.Process | None:
    """The process that is running a root's walk, once it has logged so many steps."""
    for folder in runs(root) if run is None else [run]:
        log, lock = folder / "log.jsonl", folder / ".lock"
        if log.exists() and lock.exists() and lock.read_text():
            lines = log.read_text().splitlines()
            done = max((json.loads(line)["environment_steps"] for line in lines), default=0)
            if done >= steps:
                return psutil.Process(json.loads(lock.read_text())["process"])
    return None


class Here:
    """Runs each job at once, in this process; loses those that `losing` says."""

    slots = 1

    def __init__(self, losing: Callable[[Job, int], bool] = lambda _job, _times: False) -> None:
        self.losing = losing
        self.given: list[Job] = []
        self.closed: list[bool] = []

    def submit(self, job: Job) -> Future[JobResult]:
        self.given.append(job)
        future: Future[JobResult] = Future()
        if self.losing(job, self.given.count(job)):
            future.set_exception(WorkerLost("its process was killed by SIGKILL"))
        else:
            future.set_result(run_job(job))
        return future

    def close(self, *, cancel: bool = False) -> None:
        self.closed.append(cancel)
