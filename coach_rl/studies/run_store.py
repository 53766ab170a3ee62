"""The driver's run folders, as workers that don't share its disk read and write them.

    store.begin(attempt, job, "walker", "Walker2d-v5_seed3_2026-11-22_19-30-00")
    store.missing(attempt, name, listing), store.put(...), store.commit(attempt, listing)
    store.end(attempt, listing)

What is copied how: `run_copy`. A job that is given to another worker is a new attempt, and what the
first one still sends, lost as it seemed, is refused.
"""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from coach_rl.core.errors import CheckpointError
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.studies.run_copy import FileState, Listing, RunCopy


@dataclass
class _Attempt:
    """A worker's work on a job."""

    experiment: Path
    """The folder above the run's."""
    copy: RunCopy | None = None
    """The run's folder; None before there is one."""
    hold: ExitStack = field(default_factory=ExitStack)
    """The lock on it."""


class RunStore:
    """The folder of all experiments.

    Args:
        root: Its path.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._attempts: dict[str, _Attempt] = {}
        self._latest: dict[str, str] = {}
        """The latest attempt at each job."""

    def begun(self) -> list[str]:
        """The latest attempts at all jobs that have begun."""
        return list(self._latest.values())

    def begin(self, attempt: str, job: str, experiment: str, run: str | None) -> None:
        """Let a worker begin a job, whose run is locked for it.

        Args:
            attempt: A new name for the worker's work on it.
            job: The job's own name.
            experiment: Name of the folder above the run's.
            run: Name of the run's folder; None where there is none yet, or its worker locks it.

        Raises:
            RunInUseError: Another process works on the run.
        """
        earlier = self._attempts.pop(self._latest.get(job, ""), None)
        if earlier is not None:
            earlier.hold.close()
        made = _Attempt(self._root / experiment)
        if run is not None:
            made.copy = RunCopy(made.experiment / run)
            made.hold.enter_context(locked(made.copy.run.path))
        self._latest[job] = attempt
        self._attempts[attempt] = made

    def listing(self, attempt: str) -> Listing:
        """The files that the run has here."""
        copy = self._attempt(attempt).copy
        return {} if copy is None else copy.listing()

    def read(self, attempt: str, path: str, begin: int, end: int) -> bytes:
        """Part of a file."""
        return self._copy(attempt).read(path, begin, end)

    def missing(self, attempt: str, name: str, listing: Listing) -> list[str]:
        """One path for each content that is not here; a new run gets this name, or one like it."""
        if self._attempt(attempt).copy is None:
            self._attempt(attempt).copy = self._new(self._attempt(attempt).experiment, name)
        return self._copy(attempt).missing(listing)

    def put(self, attempt: str, state: FileState, begin: int, data: bytes) -> None:
        """Take in part of a content."""
        self._copy(attempt).put(state, begin, data)

    def commit(self, attempt: str, listing: Listing) -> str:
        """Make the run here what was listed; returns its folder's name."""
        copy = self._copy(attempt)
        is_new = not copy.run.path.exists()
        name = copy.commit(listing)
        if is_new:
            self._attempt(attempt).hold.enter_context(locked(copy.run.path))
        return name

    def end(self, attempt: str, listing: Listing) -> None:
        """End an attempt, whose run has to be here whole.

        Raises:
            CheckpointError: A file differs from what was listed.
        """
        found = RunCopy(self._copy(attempt).run.path).listing()
        different = [path for path in listing if found.get(path) != listing[path]]
        if different or len(found) != len(listing):
            raise CheckpointError(
                f"the run {self._copy(attempt).run.path} differs from what its worker has in "
                f"{', '.join(different) or 'files that only one of them has'}"
            )
        self._attempts.pop(attempt).hold.close()

    def _attempt(self, attempt: str) -> _Attempt:
        if attempt not in self._attempts:
            raise RunInUseError("the job has been given to another worker")
        return self._attempts[attempt]

    def _copy(self, attempt: str) -> RunCopy:
        copy = self._attempt(attempt).copy
        assert copy is not None, "`missing` comes before"
        return copy

    def _new(self, experiment: Path, name: str) -> RunCopy:
        """A run's folder under a name that is free: on each host, names are counted anew."""
        taken = {each.copy.run.path for each in self._attempts.values() if each.copy is not None}
        path, number = experiment / name, 1
        while path in taken or path.exists():
            number += 1
            path = experiment / f"{name}_{number}"
        return RunCopy(path)
