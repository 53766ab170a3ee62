"""One run of many, as data for another process or host."""

from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from coach_rl.core.runtime import Runtime

State = Literal["done", "stopped", "failed"]
"""The end of a job: with its summary, by a signal (it can be resumed), or by an error."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The share of a machine that a job takes."""

    cores: int = 1
    """Processor cores."""
    gpus: float = 0.0
    """GPUs; a share where several jobs fit on one."""
    memory_gb: float | None = None
    """Main memory; None: not known."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be made."""

    preset: str
    """The preset, as after `-p`."""
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Changes of its panel and parameters, by panel name or dotted path."""
    task: Runtime
    """Seed, device, threads, precision."""
    name: str
    """The experiment's name, the folder above the run's."""
    root: Path
    """The folder of all experiments."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names under which the run's manifest can be found: study, variant."""
    needs: Needs = Needs()
    """The share of a machine that it takes."""
    tensorboard: bool = True
    """If True, its run writes TensorBoard files."""
    command: tuple[str, ...] = ()
    """The command line that makes this run alone, for its manifest; empty: as its fields give it.
    """
    modules_from: Path | None = None
    """The folder in which modules that it names are found; None: the working directory."""


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a job."""

    job: Job
    state: State
    folder: Path | None
    """The run's folder; None where it failed before there was one."""
    error: str = ""
    """Reason of a failure, one line."""


class Executor(Protocol):
    """Runs jobs in processes, which call `run_job`.

    with closing(LocalPool(4)) as executor:
        future = executor.submit(job)
        result = future.result()   # WorkerLost where its process has ended
    """

    slots: int
    """Jobs that can run at once."""

    def submit(self, job: Job) -> Future[JobResult]:
        """Queue a job; its future is running once it has a slot."""
        ...

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the submitted jobs and end the processes; may be repeated.

        Args:
            cancel: If True, cancel waiting jobs, and stop running ones, which save themselves
                first; a second call stops them at once.
        """
        ...
