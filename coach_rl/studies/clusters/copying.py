"""Copies of runs and presets on other machines; a run's copy is updated file by file.

    copy_run(RunCopy(folder), store)       # what has changed in the folder goes to the store

Files are known by their checksums, so content that is there already, under any name, is not
sent again: checkpoints share most of theirs. A copy that is interrupted leaves a run that can be
resumed: a checkpoint appears whole, after the log lines it counts on, and the summary comes last.
"""

import getpass
import hashlib
import io
import os
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import PresetReference, find_preset, shipped_presets
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.file_writing import without_links
from coach_rl.runs.checkpoint import list_checkpoints, remove_checkpoint
from coach_rl.runs.folder import MANIFEST, RunFolder
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.runs.packing import share_file
from coach_rl.studies.job import Job

CHUNK_BYTES = 32_000_000
"""Bytes sent at a time."""

_ATTEMPTS = 5

Content = TypeVar("Content")
"""Knowledge of a file's content."""


MOST_BYTES = 100_000_000
"""Size up to which a preset's folder travels."""
_LEFT_OUT = ("__pycache__", "node_modules", "site-packages")


@dataclass(frozen=True)
class FileState:
    """The content of a file when it was listed."""

    size: int
    """Bytes that it had; a log grows on."""
    sha256: str
    """Their checksum."""


Listing = Mapping[str, FileState]
"""The files of a run by their path below its folder."""


def copy_run(source: Any, target: Any) -> str:
    """Bring the copy of a run up to date.

    Args:
        source: The run, which may continue meanwhile: a `RunCopy`, or one on another machine.
        target: Its copy, alike.

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
            return str(target.commit(listing))
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

        Logs are listed after the checkpoints, and so hold all the lines that these refer to.

        Raises:
            FileNotFoundError: The checkpoints change meanwhile.
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
        """Part of a file; FileNotFoundError where it was removed."""
        with (self.run.path / path).open("rb") as file:
            file.seek(begin)
            return file.read(end - begin)

    def missing(self, listing: Listing) -> list[str]:
        """One path for each content that it lacks."""
        here = {state.sha256 for state in self._all_states().values()}
        here |= {path.name for path in self._arrived.glob("*")}
        wanted = {state.sha256: path for path, state in listing.items()}
        return sorted(path for sha256, path in wanted.items() if sha256 not in here)

    def put(self, state: FileState, begin: int, data: bytes) -> None:
        """Receive part of a content, from its first bytes to its last."""
        self._arrived.mkdir(parents=True, exist_ok=True)
        part = self._arrived / f"{state.sha256}.part"
        with open(part, "ab" if begin else "wb", opener=without_links) as file:
            file.write(data)
        is_whole = begin + len(data) == state.size
        if is_whole and _sha256(part, state.size) == state.sha256:
            part.rename(self._arrived / state.sha256)

    def commit(self, listing: Listing) -> str:
        """Make the copy what was listed; returns its folder's name."""
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
    """The folder of all experiments; calls about an attempt are those of its `RunCopy`.

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
        """Register a worker's attempt at a job, and lock the run for it.

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

    def place(self, attempt: str, name: str) -> None:
        """Give a new run this name, or one like it; a run that is here keeps its name."""
        if self._attempt(attempt).copy is None:
            self._attempt(attempt).copy = self._new(self._attempt(attempt).experiment, name)

    def missing(self, attempt: str, listing: Listing) -> list[str]:
        """One path for each content that is not here."""
        return self._copy(attempt).missing(listing)

    def put(self, attempt: str, state: FileState, begin: int, data: bytes) -> None:
        """Receive part of a content."""
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
        assert copy is not None, "`place` comes before"
        return copy

    def _new(self, experiment: Path, name: str) -> RunCopy:
        """A run's folder under a name that is free: each host counts names on its own."""
        taken = {each.copy.run.path for each in self._attempts.values() if each.copy is not None}
        path, number = experiment / name, 1
        while path in taken or path.exists():
            number += 1
            path = experiment / f"{name}_{number}"
        return RunCopy(path)


@dataclass(frozen=True, kw_only=True)
class PresetBundle:
    """The folder of a preset."""

    reference: PresetReference
    """The preset on the machine it comes from."""
    digest: str
    """Digest of the names, sizes and times of the folder's files."""
    archive: bytes | None
    """The folder, zipped; None where it is too large to travel."""


def with_absolute_paths(job: Job) -> Job:
    """The job for a process with another working directory."""
    found = find_preset(job.preset)
    job = replace(job, root=job.root.absolute(), modules_from=Path.cwd())
    return job if _is_shipped(found) else replace(job, preset=f"{found.path}:{found.function}")


def bundled(job: Job) -> PresetBundle | None:
    """The preset of a job with its folder; None for a preset that comes with coach_rl."""
    reference = find_preset(job.preset)
    file = reference.path
    if _is_shipped(reference):
        return None
    files = _files(file.parent)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as archive:
        for path in files or ():
            archive.write(path, path.relative_to(file.parent))
    return PresetBundle(
        reference=reference,
        digest=_digest(file, files),
        archive=None if files is None else buffer.getvalue(),
    )


def unbundle(bundle: PresetBundle) -> Preset:
    """The preset, loaded from its original path, if that is shared, or else from a copy.

    Its reference is still the original path, which its user knows.

    Raises:
        ConfigurationError: It is not here, and its folder was too large to send; or it fails.
    """
    copy = replace(bundle.reference, path=_unpacked(bundle))
    return replace(load_preset(copy), reference=bundle.reference)


def own_folder() -> Path:
    """The user's folder on this machine for copies from other machines."""
    folder = Path(tempfile.gettempdir()) / f"coach_rl-{getpass.getuser()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid != os.getuid():
        raise ConfigurationError(
            f"{folder} is a link, or belongs to another user; set TMPDIR to a folder of your own"
        )
    return folder


def _is_shipped(reference: PresetReference) -> bool:
    return reference.path in {preset.path for preset in shipped_presets().values()}


def _unpacked(bundle: PresetBundle) -> Path:
    file = bundle.reference.path
    if file.is_file() and _digest(file, _files(file.parent)) == bundle.digest:
        return file
    if bundle.archive is None:
        raise ConfigurationError(
            f"the preset {file} is not on this machine, and its folder holds more than "
            f"{MOST_BYTES // 1_000_000} MB, too much to send; put the preset and what it needs "
            "into a folder of their own, or on a path that all machines share"
        )
    home = own_folder() / "presets" / bundle.digest
    if not home.exists():
        unfinished = Path(tempfile.mkdtemp(dir=own_folder()))
        with zipfile.ZipFile(io.BytesIO(bundle.archive)) as archive:
            archive.extractall(unfinished)
        home.parent.mkdir(exist_ok=True)
        try:
            unfinished.rename(home)
        except OSError:
            if not home.exists():  # or else another process was faster
                raise
    return home / file.name


def _files(folder: Path) -> list[Path] | None:
    """The files of a folder, but hidden ones, caches and runs; None if they are too large."""
    files, size = [], 0
    for path in _walk(folder):
        size += path.stat().st_size
        if size > MOST_BYTES:
            return None
        files.append(path)
    return sorted(files)


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.name.startswith(".") or path.name in _LEFT_OUT:
            continue
        if path.is_file():
            yield path
        elif path.is_dir() and not path.is_symlink() and not (path / MANIFEST).exists():
            yield from _walk(path)


def _digest(preset: Path, files: list[Path] | None) -> str:
    """Digest of a preset's folder; of the preset alone where the folder is too large."""
    digest = hashlib.sha256(preset.read_bytes())
    for path in files or ():
        status = path.stat()
        name = path.relative_to(preset.parent)
        digest.update(f"{name}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    return digest.hexdigest()[:32]
