"""The logs of a run: what a checkpoint notes of them, and cutting them back to it.

A resumed run says everything after its checkpoint again, so what the stopped run said after it is
cut off: text is counted in lines, TensorBoard's event files in bytes.
"""

import os
import warnings
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from coach_rl.core.errors import CheckpointError, CoachWarning
from coach_rl.experiment.strict_json import Json, require_regular_file, require_types

NOTHING_LOGGED: Json = {"logs": {}, "event_files": {}}
"""What a checkpoint would note of a run before its first record."""

_CHUNK = 1 << 20
_WITHOUT = "move it out of the run's folder to continue without it"


@dataclass(frozen=True)
class Cut:
    """The part of a log that stays."""

    path: Path
    """The log."""
    size: int | None
    """Bytes that stay; None where the whole log goes."""

    def make(self) -> None:
        """Drop the rest."""
        if self.size is None:
            self.path.unlink()
            return
        with self.path.open("rb+") as file:
            file.truncate(self.size)
            os.fsync(file.fileno())


def log_notes(folder: Path) -> dict[str, Json]:
    """What a checkpoint notes of a run's logs: lines, bytes and checksums by file name."""
    logs = {path.name: _lines_and_checksum(path) for path in _log_files(folder)}
    sizes = {path.name: path.stat().st_size for path in _event_files(folder)}
    checksums = {name: checksum for name, (_, checksum) in logs.items()}
    return {
        "logs": {name: lines for name, (lines, _) in logs.items()},
        "event_files": sizes,
        "crc32": checksums | {name: _checksum(folder / name, sizes[name]) for name in sizes},
    }


def planned_cuts(folder: Path, notes: Json) -> list[Cut]:
    """What has to be cut for the logs to end where a checkpoint was taken; nothing is cut yet.

    TensorBoard's own way, a mark in the next file that takes back all from a step on, would also
    take what was said at the checkpoint's own step before it, and works only if that file is read
    last.

    Args:
        folder: The run's folder.
        notes: What `log_notes` said when the checkpoint was taken; those of earlier versions have
            no checksums, and some no event files, which then stay as they are.

    Raises:
        CheckpointError: A log is shorter than it was then, or has been changed.

    Warns:
        CoachWarning: A log is gone.
    """
    require_types(notes, {"logs": dict}, source=f"the checkpoint's notes on the logs of {folder}")
    lines, sizes, checksums = notes["logs"], notes.get("event_files"), notes.get("crc32", {})
    found = [*_log_files(folder), *(() if sizes is None else _event_files(folder))]
    known = {*lines, *(sizes or ())}
    if gone := sorted(known - {path.name for path in found}):
        warnings.warn(
            f"{folder} has lost {', '.join(gone)}; what the run had logged in it before is missing",
            CoachWarning,
            stacklevel=2,
        )
    cuts = []
    for path in found:
        require_regular_file(path)
        size = None
        if path.name in known:
            in_lines = path.name in lines
            size = _end_of_line(path, lines[path.name]) if in_lines else sizes[path.name]
            _require_unchanged(path, size, checksums.get(path.name))
        cuts.append(Cut(path, size))
    return cuts


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


def _require_unchanged(path: Path, size: int, checksum: int | None) -> None:
    if path.stat().st_size < size:
        raise CheckpointError(
            f"{path} has {path.stat().st_size} bytes, but had {size} when the checkpoint was "
            f"taken; {_WITHOUT}"
        )
    if checksum is not None and _checksum(path, size) != checksum:
        raise CheckpointError(
            f"{path} is damaged or has been edited: its first {size} bytes are not those it had "
            f"when the checkpoint was taken; {_WITHOUT}"
        )


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _lines_and_checksum(path: Path) -> tuple[int, int]:
    """Whole lines of a file, and their checksum."""
    lines = checksum = 0
    begun = b""
    for chunk in _chunks(path, path.stat().st_size):
        whole, end, begun = (begun + chunk).rpartition(b"\n")
        lines += (whole + end).count(b"\n")
        checksum = zlib.crc32(whole + end, checksum)
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
