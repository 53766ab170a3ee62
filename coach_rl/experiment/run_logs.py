"""A run's log files, cut back to where a checkpoint was taken.

A resumed run says everything after its checkpoint again, so what the stopped run said after it
must go. Text is counted in lines, TensorBoard's event files in bytes.
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


def event_file_lengths(folder: Path) -> dict[str, int]:
    """Bytes of every event file in a run's folder, by file name."""
    return {path.name: path.stat().st_size for path in _event_files(folder)}


def cut_event_files(folder: Path, lengths: dict[str, int]) -> None:
    """Drop what every event file holds after its first `lengths[name]` bytes; others go as a whole.

    TensorBoard's own way, a mark in the next file that takes back all from a step on, would also
    take what was said at the checkpoint's own step before it, and works only if that file is read
    last.

    Args:
        folder: The run's folder.
        lengths: What `event_file_lengths` said when the checkpoint was taken.

    Raises:
        CheckpointError: A file is shorter than it was then.
    """
    for path in _event_files(folder):
        if path.name not in lengths:
            path.unlink()
            continue
        size, wanted = path.stat().st_size, lengths[path.name]
        if size < wanted:
            raise CheckpointError(
                f"{path} has {size} bytes, but had {wanted} when the checkpoint was taken"
            )
        with path.open("rb+") as file:
            file.truncate(wanted)
            os.fsync(file.fileno())


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
