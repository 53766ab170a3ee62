"""A run's log files, cut back to where a checkpoint was taken.

A resumed run says everything after its checkpoint again, so what the stopped run said after it
must go.
"""

import os
from pathlib import Path

from coach_rl.core.errors import CheckpointError


def log_lengths(folder: Path) -> dict[str, int]:
    """Lines of every log file in a run's folder, by file name."""
    return {path.name: _count_lines(path) for path in _log_files(folder)}


def cut_logs(folder: Path, lengths: dict[str, int]) -> None:
    """Drop every line after the first `lengths[name]` of each log file; others go as a whole.

    Args:
        folder: The run's folder.
        lengths: What `log_lengths` said when the checkpoint was taken.

    Raises:
        CheckpointError: A file is shorter than it was then.
    """
    for path in _log_files(folder):
        if path.name not in lengths:
            path.unlink()
            continue
        with path.open("rb+") as file:
            for line in range(lengths[path.name]):
                if not file.readline().endswith(b"\n"):
                    raise CheckpointError(
                        f"{path} has {line} whole lines, but had {lengths[path.name]} "
                        "when the checkpoint was taken"
                    )
            file.truncate()
            os.fsync(file.fileno())


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
