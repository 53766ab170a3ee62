"""The logs of a run: a checkpoint's notes on them, and cutting them back to it.

A resumed run writes all records after its checkpoint again, so those of the stopped run are cut
off: text is counted in lines, TensorBoard's event files in bytes.
"""

import os
import re
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coach_rl.configuration.strict_json import Json, require_regular_file, require_types
from coach_rl.core.errors import CheckpointError, CoachWarning
from coach_rl.core.file_writing import without_links
from coach_rl.runs.checkpoint import Checkpoint

_CHUNK = 1 << 20
_TABLE = ".csv"
_NOTES = ("logs", "event_files", "headers", "crc32")
_WITHOUT = "move it out of the run's folder to continue without it"


@dataclass(frozen=True)
class Cut:
    """The part of a log to keep."""

    path: Path
    """The log."""
    size: int | None
    """Bytes to keep; None drops the whole log."""

    def make(self) -> None:
        """Drop the rest."""
        if self.size is None:
            self.path.unlink()
            return
        with open(self.path, "rb+", opener=without_links) as file:
            file.truncate(self.size)
            os.fsync(file.fileno())


def log_notes(folder: Path) -> dict[str, Json]:
    """Notes on the logs of a run, by file name: lines or bytes, headers, checksums."""
    lines, checksums, headers = {}, {}, {}
    for path in _log_files(folder):
        lines[path.name], checksums[path.name] = _lines_and_checksum(path, path.stat().st_size)
        if path.suffix == _TABLE:
            headers[path.name] = _header(path)
    sizes = {path.name: path.stat().st_size for path in _event_files(folder)}
    return {
        "logs": lines,
        "event_files": sizes,
        "headers": headers,
        "crc32": checksums | {name: _checksum(folder / name, sizes[name]) for name in sizes},
    }


def planned_cuts(folder: Path, checkpoint: Checkpoint | None) -> list[Cut]:
    """Cuts after which the logs end where a checkpoint was taken; nothing is cut yet.

    TensorBoard's own way, a mark in the next file that takes back all from a step on, would also
    drop records of the checkpoint's own step from before it, and works only if that file is read
    last.

    Args:
        folder: The run's folder.
        checkpoint: With the notes that `log_notes` made. None: all logs go.

    Raises:
        CheckpointError: A log is shorter than it was then, or has been changed.

    Warns:
        CoachWarning: A log is gone.
    """
    notes: Json = {key: {} for key in _NOTES}
    if checkpoint is not None:
        notes = checkpoint.notes
        types = dict.fromkeys(_NOTES, dict)
        require_types(notes, types, source=f"the notes of {checkpoint.path}")
    found = [*_log_files(folder), *_event_files(folder)]
    known = {**notes["logs"], **notes["event_files"]}
    if gone := sorted(known.keys() - {path.name for path in found}):
        warnings.warn(
            f"{folder} has lost {', '.join(gone)}; what the run had logged in it before is missing",
            CoachWarning,
            stacklevel=2,
        )
    return [Cut(path, _size_then(path, notes) if path.name in known else None) for path in found]


def _size_then(path: Path, notes: Json) -> int:
    """Bytes that a log had when the checkpoint was taken; CheckpointError if they have changed."""
    require_regular_file(path)
    name, checksum = path.name, notes["crc32"].get(path.name)
    if name in notes["logs"]:
        size = _end_of_line(path, notes["logs"][name])
        is_same = _lines_and_checksum(path, size)[1] == checksum
        is_same &= _header(path).startswith(notes["headers"].get(name, ""))
    else:
        size = notes["event_files"][name]
        if path.stat().st_size < size:
            raise CheckpointError(
                f"{path} has {path.stat().st_size} bytes, but had {size} when the checkpoint was "
                f"taken; {_WITHOUT}"
            )
        is_same = _checksum(path, size) == checksum
    if not is_same:
        raise CheckpointError(
            f"{path} is damaged or has been edited: it does not begin as it did when the "
            f"checkpoint was taken; {_WITHOUT}"
        )
    return size


def _end_of_line(path: Path, lines: int) -> int:
    """Bytes up to the end of a line, counted from 1."""
    with path.open("rb") as file:
        for line in range(lines):
            if not file.readline().endswith(b"\n"):
                raise CheckpointError(
                    f"{path} has {line} whole lines, but had {lines} when the checkpoint was "
                    f"taken; {_WITHOUT}"
                )
        return file.tell()


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _header(path: Path) -> str:
    """A table's first line; others have none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip("\n") if path.suffix == _TABLE else ""


def _lines_and_checksum(path: Path, size: int) -> tuple[int, int]:
    """Whole lines in the first bytes of a text file, and their checksum.

    A table may get columns later, with empty cells before: its header and the commas at the ends of
    its lines are left out.
    """
    lines = checksum = 0
    begun = b""
    for chunk in _chunks(path, size):
        whole, end, begun = (begun + chunk).rpartition(b"\n")
        text = whole + end
        if path.suffix == _TABLE:
            rows = text if lines else text.partition(b"\n")[2]
            checksum = zlib.crc32(re.sub(rb",+\n", b"\n", rows), checksum)
        else:
            checksum = zlib.crc32(text, checksum)
        lines += text.count(b"\n")
    return lines, checksum


def _checksum(path: Path, size: int) -> int:
    checksum = 0
    for chunk in _chunks(path, size):
        checksum = zlib.crc32(chunk, checksum)
    return checksum


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    """The first bytes of a file, piece by piece."""
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            size -= len(chunk)
            yield chunk
