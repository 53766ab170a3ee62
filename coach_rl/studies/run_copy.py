"""A run's folder and its copy on another machine, brought up to date file by file.

    copy_run(RunCopy(folder), store)       # what has changed in the folder goes to the store

Files are known by their checksums, so content that is there already, under whatever name, is not
sent again: checkpoints share most of theirs. A copy that is interrupted leaves a run that can be
resumed: a checkpoint appears whole, after the log lines it counts on, and the summary comes last.
"""

import hashlib
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from coach_rl.core.errors import CheckpointError
from coach_rl.runs.checkpoint import list_checkpoints, remove_checkpoint
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.packing import share_file

CHUNK_BYTES = 32_000_000
"""Bytes sent at a time."""

_ATTEMPTS = 5

Content = TypeVar("Content")
"""Knowledge of a file's content."""


@dataclass(frozen=True)
class FileState:
    """The content of a file when it was listed."""

    size: int
    """Bytes that it had; a log grows on."""
    sha256: str
    """Their checksum."""


Listing = Mapping[str, FileState]
"""The files of a run by their path below its folder."""


class RunSource(Protocol):
    """A run to copy."""

    def listing(self) -> Listing:
        """Its files now; FileNotFoundError where they change meanwhile."""

    def read(self, path: str, begin: int, end: int) -> bytes:
        """Part of a file; FileNotFoundError where it is gone."""


class RunTarget(Protocol):
    """A copy of a run."""

    def missing(self, listing: Listing) -> list[str]:
        """One path for each content that it lacks."""

    def put(self, state: FileState, begin: int, data: bytes) -> None:
        """Take in part of a content, from its first bytes to its last."""

    def commit(self, listing: Listing) -> str:
        """Make the copy what was listed; returns its folder's name."""


def copy_run(source: RunSource, target: RunTarget) -> str:
    """Bring the copy of a run up to date.

    Args:
        source: The run, which may go on meanwhile.
        target: Its copy.

    Returns:
        The name of the copy's folder.

    Raises:
        OSError: A disk refuses, or the run's files kept changing.
        CheckpointError: What arrived is not what was sent.
    """
    for attempt in range(_ATTEMPTS):
        try:
            listing = source.listing()
            for path in target.missing(listing):
                state = listing[path]
                for begin in range(0, max(state.size, 1), CHUNK_BYTES):
                    end = min(begin + CHUNK_BYTES, state.size)
                    target.put(state, begin, source.read(path, begin, end))
            return target.commit(listing)
        except FileNotFoundError:  # a checkpoint made room for a newer one
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("the last attempt returns or raises")


class RunCopy:
    """A run's folder on this machine, as source or target of a copy.

    Args:
        folder: The folder; need not exist yet.
    """

    def __init__(self, folder: Path) -> None:
        self.run = RunFolder(folder)
        self._sums: dict[tuple[int, int, int], str] = {}
        self._arrived = folder.with_name(f".arrived-{folder.name}")

    def listing(self) -> Listing:
        """Its files; without logs as long as there is no checkpoint to resume them from.

        Logs are looked at after the checkpoints, and so hold all the lines that these count on.
        """
        checkpoints = list_checkpoints(self.run.checkpoints)
        states = self._states(path for folder in checkpoints for path in folder.iterdir())
        if checkpoints or self.run.summary.exists():
            states = self._states(self.run.path.rglob("*")) | states
        else:
            states = self._states(filter(Path.exists, (self.run.manifest, self.run.preset)))
        if list_checkpoints(self.run.checkpoints) != checkpoints:
            raise FileNotFoundError(f"{self.run.checkpoints} has changed meanwhile")
        return states

    def read(self, path: str, begin: int, end: int) -> bytes:
        """Part of a file."""
        with (self.run.path / path).open("rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def missing(self, listing: Listing) -> list[str]:
        """One path for each content that is not here."""
        here = {state.sha256 for state in self._all_states().values()}
        here |= {path.name for path in self._arrived.glob("*")}
        wanted = {state.sha256: path for path, state in listing.items()}
        return sorted(path for sha256, path in wanted.items() if sha256 not in here)

    def put(self, state: FileState, begin: int, data: bytes) -> None:
        """Take in part of a content, which has arrived once it matches its checksum."""
        self._arrived.mkdir(parents=True, exist_ok=True)
        part = self._arrived / f"{state.sha256}.part"
        with part.open("ab" if begin else "wb") as file:
            file.write(data)
        is_whole = begin + len(data) == state.size
        if is_whole and _sha256(part, state.size) == state.sha256:
            part.rename(self._arrived / state.sha256)

    def commit(self, listing: Listing) -> str:
        """Make the folder what was listed; returns its name."""
        if lacking := self.missing(listing):
            raise CheckpointError(
                f"{', '.join(lacking)} of the run {self.run.path.name} did not arrive as sent: the "
                "checksum differs"
            )
        own = self._all_states()
        saved = {name: _in_checkpoint(listing, name) for name in _checkpoints(listing)}
        new = {name for name in saved if _in_checkpoint(own, name) != saved[name]}
        changed = {
            path: state.sha256
            for path, state in listing.items()
            if (_checkpoint_of(path) in new or own.get(path) != state)
        }
        self._arrived.mkdir(parents=True, exist_ok=True)
        paths = {state.sha256: self.run.path / path for path, state in own.items()}
        for sha256 in set(changed.values()):
            if not (self._arrived / sha256).exists():
                share_file(paths[sha256], self._arrived / sha256)
        if self.run.path.exists():
            self._place(changed, self.run)
            self._remove(own.keys() - listing.keys(), _checkpoints(own) - _checkpoints(listing))
        else:
            unfinished = RunFolder(self._arrived / "run")
            shutil.rmtree(unfinished.path, ignore_errors=True)
            self._place(changed, unfinished)
            unfinished.path.rename(self.run.path)
        shutil.rmtree(self._arrived)
        return self.run.path.name

    def _place(self, changed: Mapping[str, str], run: RunFolder) -> None:
        """Put contents into a folder by their paths: logs, then checkpoints, then the summary."""
        files = sorted(path for path in changed if _checkpoint_of(path) is None)
        for path in files:
            if path != run.summary.name:
                self._place_file(changed[path], run.path / path)
        for name in sorted(_checkpoints(changed)):
            unfinished = run.checkpoints / f".{name}.new-{os.getpid()}"
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir(parents=True)
            for path in _in_checkpoint(changed, name):
                share_file(self._arrived / changed[path], unfinished / Path(path).name)
            if (run.checkpoints / name).exists():
                remove_checkpoint(run.checkpoints / name)
            unfinished.rename(run.checkpoints / name)
        if run.summary.name in changed:
            self._place_file(changed[run.summary.name], run.summary)

    def _place_file(self, sha256: str, target: Path) -> None:
        """Replace a file in one step, by a copy: logs are appended to."""
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}.new")
        unfinished.unlink(missing_ok=True)  # a link there would be followed
        shutil.copyfile(self._arrived / sha256, unfinished)
        unfinished.replace(target)

    def _remove(self, paths: Iterable[str], checkpoints: Iterable[str]) -> None:
        """Remove what the run has removed."""
        for path in paths:
            if _checkpoint_of(path) is None:
                (self.run.path / path).unlink()
        for name in checkpoints:
            remove_checkpoint(self.run.checkpoints / name)

    def _all_states(self) -> dict[str, FileState]:
        return self._states(self.run.path.rglob("*"))

    def _states(self, paths: Iterable[Path]) -> dict[str, FileState]:
        """The states of files, by their path below the folder; hidden ones are passed over."""
        states = {}
        for path in sorted(paths):
            below = path.relative_to(self.run.path)
            if path.is_file() and not any(part.startswith(".") for part in below.parts):
                status = path.stat()
                key = (status.st_ino, status.st_size, status.st_mtime_ns)
                if key not in self._sums:
                    self._sums[key] = _sha256(path, status.st_size)
                states[str(below)] = FileState(status.st_size, self._sums[key])
        return states


def _checkpoint_of(path: str) -> str | None:
    """The checkpoint that a file belongs to; None for all other files."""
    parts = Path(path).parts
    return parts[1] if len(parts) == 3 and parts[0] == "checkpoints" else None


def _checkpoints(paths: Iterable[str]) -> set[str]:
    """The checkpoints of which there are files."""
    return {name for name in map(_checkpoint_of, paths) if name is not None}


def _in_checkpoint(listing: Mapping[str, Content], name: str) -> dict[str, Content]:
    """The part of a listing that belongs to a checkpoint."""
    return {path: each for path, each in listing.items() if _checkpoint_of(path) == name}


def _sha256(path: Path, size: int) -> str:
    """Checksum of the first bytes of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, CHUNK_BYTES))):
            digest.update(chunk)
            size -= len(chunk)
    return digest.hexdigest()
