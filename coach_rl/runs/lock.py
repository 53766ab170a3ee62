"""The lock of a run's folder: one process at a time writes into it.

The system's own lock ends with its process, however that ends. Network file systems may not pass it
on to other machines, so the file also names the holder, which renews its time while it runs.
"""

import importlib.util
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TextIO

import psutil  # type: ignore[import-untyped]  # has no types

from coach_rl.configuration.file_writing import require_no_links, without_links
from coach_rl.configuration.strict_json import from_json, require_regular_file, to_json
from coach_rl.core.errors import CheckpointError, ConfigurationError, warn
from coach_rl.core.shown_text import printable

HAS_FLOCK = importlib.util.find_spec("fcntl") is not None
"""True on systems whose locks leave a file as it is; others have that of `filelock`."""
if HAS_FLOCK:
    import fcntl
else:
    from filelock import FileLock

LOCK = ".lock"
_BESIDE = ".held"
"""The file that `filelock` locks, where the system has no `flock`: it empties what it locks."""
RENEWED_EVERY_SECONDS = 20.0
_MOST_CHARACTERS = 10_000
GONE_AFTER_SECONDS = 120.0
"""Age of a lock of another machine from which its process counts as gone."""


class RunInUseError(ConfigurationError):
    """A run that another process holds."""


@dataclass(frozen=True)
class Holder:
    """The process that holds a run's folder."""

    process: int
    host: str
    started: float
    """Time at which the process was started, in seconds since 1970."""

    def __str__(self) -> str:
        """The process, its host and its start, for messages."""
        began = datetime.fromtimestamp(self.started).astimezone().isoformat(" ", "seconds")
        return f"process {self.process} on host {self.host}, started {began}"

    @property
    def is_gone(self) -> bool:
        """True if it ran on this machine and has ended; its number may be another's now."""
        if self.host != socket.gethostname():
            return False
        try:
            process = psutil.Process(self.process)
            is_another = abs(process.create_time() - self.started) > 5  # seconds; clocks are set
            return bool(is_another or process.status() == psutil.STATUS_ZOMBIE)
        except psutil.NoSuchProcess:
            return True


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold a run's folder; the hold ends with the process, however that ends.

    Raises:
        RunInUseError: Another process holds it.
        ConfigurationError: It cannot be written to, or has a symbolic link in it.
    """
    path = folder / LOCK
    try:
        require_no_links(folder)
        if path.exists():
            require_regular_file(path)
        file = open(path, "a+", encoding="utf-8", opener=without_links)  # noqa: SIM115
    except OSError as error:
        raise ConfigurationError(
            f"the run {folder} cannot be locked: {error.strerror}: {path}; make the folder "
            "writable, or copy it to where you can write"
        ) from error
    with file, ExitStack() as held:
        _take(file, path, held)
        done = threading.Event()
        watcher = threading.Thread(target=_renew, args=(path, done), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()
            _write(file, "")


def holder_of(folder: Path) -> Holder | None:
    """The process that holds a run's folder; None where none does, as far as its lock shows.

    It only reads: taking the lock to see whether it is free would keep others from it.
    """
    holder, is_lost = _named_in(folder)
    return None if is_lost else holder


def lost_holder_of(folder: Path) -> Holder | None:
    """The process that ended without releasing a run's folder, as after a kill, or None."""
    holder, is_lost = _named_in(folder)
    return holder if is_lost else None


def _named_in(folder: Path) -> tuple[Holder | None, bool]:
    """The process that the lock names, and whether it is gone."""
    path = folder / LOCK
    try:
        require_regular_file(path)
        with path.open(encoding="utf-8") as file:
            holder = _holder(file)
            age = time.time() - path.stat().st_mtime
    except (CheckpointError, OSError):
        return None, False
    return holder, holder is not None and (holder.is_gone or _is_silent(holder, age))


def _is_free(file: TextIO, path: Path, held: ExitStack) -> bool:
    """Take the system's lock until the context ends; False where another process has it."""
    try:
        if HAS_FLOCK:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            held.enter_context(FileLock(path.with_name(_BESIDE), timeout=0))
    except (BlockingIOError, TimeoutError):
        return False
    except OSError:
        return True  # a file system without locks: only the file has it
    return True


def _take(file: TextIO, path: Path, held: ExitStack) -> None:
    """Take the lock, or raise a `ConfigurationError` that names its holder."""
    is_free = _is_free(file, path, held)
    holder = _holder(file)
    age = time.time() - path.stat().st_mtime
    me = Holder(os.getpid(), socket.gethostname(), psutil.Process().create_time())
    if is_free and (holder is None or holder == me):
        pass
    elif is_free and holder is not None and (holder.is_gone or _is_silent(holder, age)):
        warn(f"the run {path.parent} was left by {holder}, which is gone; it is taken over")
    elif holder is not None and holder.host != me.host:
        raise RunInUseError(
            f"the run {path.parent} is in use by {holder}, which was last active {age:.0f} s ago; "
            f"stop it, or, if it is gone, wait for {GONE_AFTER_SECONDS:.0f} s without a sign of it "
            f"or delete {path}"
        )
    else:
        raise RunInUseError(
            f"the run {path.parent} is in use by {holder or 'another process'}; wait for it or "
            "stop it"
        )
    _write(file, to_json(asdict(me)))


def _is_silent(holder: Holder, age: float) -> bool:
    """True if a process on another machine has not renewed its lock for long."""
    return holder.host != socket.gethostname() and age > GONE_AFTER_SECONDS


def _holder(file: TextIO) -> Holder | None:
    """The process that the lock names; None where it names none, as after a proper end."""
    file.seek(0)
    try:
        document = from_json(file.read(_MOST_CHARACTERS), source=file.name)
        process = int(document["process"])
        host = printable(str(document["host"]))
        datetime.fromtimestamp(started := float(document["started"]))
    except (CheckpointError, TypeError, KeyError, ValueError, OverflowError, OSError):
        return None
    return Holder(process, host, started) if 0 < process < 2**31 else None


def _write(file: TextIO, text: str) -> None:
    """Replace the lock's content; on a full disk it stays empty, and the system's lock holds."""
    try:
        file.truncate(0)
        file.write(text)
        file.flush()
    except OSError:
        return


def _renew(path: Path, done: threading.Event) -> None:
    """Renew the lock's time until the hold ends."""
    while not done.wait(RENEWED_EVERY_SECONDS):
        try:
            os.utime(path, follow_symlinks=False)
        except OSError:
            continue  # the folder may come back
