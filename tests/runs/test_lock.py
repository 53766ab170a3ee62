"""One process at a time writes into a run's folder."""

import json
import os
import socket
import time
from pathlib import Path

import psutil
import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.runs import lock as run_lock
from coach_rl.runs.lock import LOCK, locked
from tests.waiting import wait_until


def left_by(folder: Path, *, host: str | None = None, process: int, age: float = 0.0) -> Path:
    """A lock of a process that is not here."""
    path = folder / LOCK
    holder = {"process": process, "host": host or socket.gethostname(), "started": 1e9}
    path.write_text(json.dumps(holder))
    os.utime(path, (time.time() - age,) * 2)
    return path


def test_locked_file_is_renewed(tmp_path, monkeypatch):
    monkeypatch.setattr(run_lock, "RENEWED_EVERY_SECONDS", 0.01)
    with locked(tmp_path):
        os.utime(tmp_path / LOCK, (0, 0))
        wait_until(lambda: (tmp_path / LOCK).stat().st_mtime > 0)


def test_locked_without_system_locks_reads_the_file(tmp_path, monkeypatch):
    def unsupported(*_: object) -> None:
        raise OSError("No locks available")

    monkeypatch.setattr(run_lock.fcntl, "flock", unsupported)
    alive = psutil.Process().parent()
    holder = {"process": alive.pid, "host": socket.gethostname(), "started": alive.create_time()}
    (tmp_path / LOCK).write_text(json.dumps(holder))
    with pytest.raises(ConfigurationError), locked(tmp_path):
        pass
    (tmp_path / LOCK).write_text("")
    with locked(tmp_path):
        pass
