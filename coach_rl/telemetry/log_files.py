"""Log files: records as lines of JSON, and as CSV tables of an agent, of episodes, evaluations, ...

Both grow by whole lines, also on a full disk, so that a killed run keeps what it has logged.
"""

import contextlib
import csv
import io
import json
import math
import os
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from urllib.parse import quote, unquote

from PIL import Image

from coach_rl.configuration.file_writing import make_folder, replacing, sha256_of, without_links
from coach_rl.core.clock import Phase
from coach_rl.core.log_records import FILES, LogRecord, by_tag
from coach_rl.core.shown_text import printable, printable_lines
from coach_rl.core.steps import EnvironmentSteps, TrainingSteps
from coach_rl.telemetry.tables import csv_cell

_MOST_OF_NAME = 150
"""Bytes of a picture's name in that of its file, which systems bound at 255."""
_TAIL = 4096
"""Bytes by which a file that was truncated and rewritten is recognised."""
_UNITS = {unit.__name__: unit for unit in (EnvironmentSteps, TrainingSteps)}
COUNTERS = ("environment_steps", "training_steps", "episodes", "wall_seconds")


class LineFile:
    """Appends lines at once: a killed run keeps them, and none is half there.

    Args:
        path: The file; made where there is none.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = open(path, "ab", buffering=0, opener=without_links)  # noqa: SIM115

    def append(self, lines: str) -> None:
        """Append whole lines, all or none.

        Raises:
            OSError: The disk refuses, or the file has been removed or replaced.
        """
        held = os.fstat(self._file.fileno())
        named = self._path.stat()
        if (held.st_dev, held.st_ino) != (named.st_dev, named.st_ino):
            raise FileNotFoundError(f"{self._path} has been replaced")
        data = lines.encode()
        try:
            while data:
                data = data[self._file.write(data) :]
        except OSError:
            with contextlib.suppress(OSError):  # the disk is gone altogether
                os.ftruncate(self._file.fileno(), held.st_size)
            raise

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class JsonlSink:
    """Appends a line per record, so a killed run keeps its lines.

    Strict JSON: a number that is not finite is written as null.

    Args:
        path: The file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LineFile(path)

    def write(self, record: LogRecord) -> None:
        if not record.is_in_log:
            return
        line: dict[str, object] = {
            "kind": record.kind,
            "phase": record.phase.value,
            "environment_steps": record.environment_steps,
            "training_steps": record.training_steps,
            "episodes": record.episodes,
            "wall_seconds": round(record.wall_seconds, 3),
            "level": record.level,
            "agent": record.agent,
            "scalars": {name: _finite(value) for name, value in record.scalars.items()},
        }
        if record.text:
            line["text"] = record.text
        if record.problem:
            line["problem"] = record.problem
        if record.unit is not EnvironmentSteps:
            line["unit"] = record.unit.__name__
        if record.arrays:
            line["arrays"] = {
                name: [_finite(value) for value in values.ravel().tolist()]
                for name, values in record.arrays.items()
            }
        self._file.append(json.dumps(line, allow_nan=False) + "\n")

    def close(self) -> None:
        self._file.close()


class ImageSink:
    """Writes the pictures of notes as PNG files: `step_<moment>_<room>_<quantity>.png`.

    Args:
        folder: For the files; made with the first.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def write(self, record: LogRecord) -> None:
        for tag, image in by_tag(record, record.images).items():
            make_folder(self._folder)
            name = re.sub(r"[^\w.-]", "_", tag)
            if len(name.encode()) > _MOST_OF_NAME:  # two of them stay apart
                name = name.encode()[:_MOST_OF_NAME].decode(errors="ignore") + sha256_of(tag)[:8]
            path = self._folder / f"step_{record.moment}_{name}.png"
            with replacing(path) as new:
                Image.fromarray(image).save(new, format="PNG")

    def close(self) -> None:
        """Nothing is open."""


class JsonlReader:
    """Reads the records of a file that may still grow, or be truncated and rewritten.

        reader = JsonlReader(run / "log.jsonl")
        while is_running():
            for record in reader.read():
                ...

    Args:
        path: The file; it need not exist yet.
        kinds: Kinds of records to read; empty for all.
    """

    def __init__(self, path: Path, *, kinds: Sequence[str] = ()) -> None:
        self._path = path
        self._words = [f'"kind": "{kind}"'.encode() for kind in kinds]
        self._end = 0
        """Bytes that have been read, up to the end of a line."""
        self._tail = b""
        """The last of these, which change when the file is truncated and rewritten."""
        self.is_from_start = True
        """True if the newest records begin the file: at first, and after it has been cut."""
        self.newest: LogRecord | None = None
        """The last record that was read; None before the first."""

    def read(self) -> list[LogRecord]:
        """The records since the last time; all of them where the file has been cut.

        A line that is no record is left out, as one that is being written is.
        """
        return list(self.stream())

    def stream(self) -> Iterator[LogRecord]:
        """The same, each read when it is taken, so that a long log needs no memory."""
        self.is_from_start = self._end == 0
        try:
            with self._path.open("rb") as file:
                file.seek(self._end - len(self._tail))
                if file.read(len(self._tail)) != self._tail:
                    file.seek(0)
                    self._end = 0
                    self._tail = b""
                    self.is_from_start = True
                for line in file:
                    if not line.endswith(b"\n"):
                        return
                    self._end += len(line)
                    self._tail = (self._tail + line[-_TAIL:])[-_TAIL:]
                    if self._words and not any(word in line for word in self._words):
                        continue  # spares reading most of a log
                    if (record := _record(line)) is not None:
                        self.newest = record
                        yield record
        except OSError:  # not there yet, or out of reach for a while
            return


def _record(line: bytes) -> LogRecord | None:
    """The record in a line without its arrays; None where there is none."""
    try:
        fields = json.loads(line)
        return LogRecord(
            kind=fields["kind"],
            phase=Phase(fields["phase"]),
            environment_steps=int(fields["environment_steps"]),
            training_steps=int(fields["training_steps"]),
            episodes=int(fields["episodes"]),
            wall_seconds=float(fields["wall_seconds"]),
            level=printable(fields["level"]),
            agent=printable(fields["agent"]),
            scalars={printable(name): _number(value) for name, value in fields["scalars"].items()},
            text=printable_lines(fields.get("text", "")),
            problem=printable(fields.get("problem", "")),
            unit=_UNITS[fields.get("unit", EnvironmentSteps.__name__)],
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


class CsvSink:
    """Streams `<level>.<agent>.csv`, `<level>.csv`, the files of `FILES`, and of other tables.

    A record with a table of its own goes into `<level>.<agent>.<table>.csv`.

    Columns are the counters, then the scalars in the order of their first record. A later scalar
    adds a column: the file is rewritten once, with empty cells before. Numbers are written so
    that they read back to the same float.

    Args:
        folder: Where the files go; files already there are continued.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._tables: dict[str, _Table] = {}

    def write(self, record: LogRecord) -> None:
        """One row; records without scalars have none."""
        parts = (record.level, record.agent, record.table)
        whole = "" if record.table else FILES.get(record.kind, "")
        name = whole or ".".join(_file_name(part) for part in parts if part)
        if not record.scalars or not name:
            return
        if name not in self._tables:
            self._tables[name] = _Table(self._folder / f"{name}.csv")
        counters = {column: getattr(record, column) for column in COUNTERS}
        self._tables[name].add(
            {**counters, **{csv_cell(each): value for each, value in record.scalars.items()}}
        )

    def close(self) -> None:
        for table in self._tables.values():
            table.close()
        self._tables.clear()


def logged_names(folder: Path, levels: Container[str]) -> set[str]:
    """The scalars in a folder's tables, an agent's as `<level>/<agent>/<name>`.

    Args:
        folder: The run's.
        levels: Names of its levels.
    """
    names = set()
    for path in folder.glob("*.csv"):
        parts = [unquote(part) for part in path.stem.split(".")]
        # Behind the level and the agent is the name of a table.
        owner = "".join(f"{part}/" for part in parts[:2]) if parts[0] in levels else ""
        names |= {f"{owner}{name}" for name in _header(path) if name not in COUNTERS}
    return names


class _Table:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._columns = _header(path)
        self._file = LineFile(path)

    def add(self, row: dict[str, float]) -> None:
        if any(column not in self._columns for column in row):
            self._widen([*self._columns, *(name for name in row if name not in self._columns)])
        line = io.StringIO()
        csv.writer(line, lineterminator="\n").writerow(
            [row.get(column, "") for column in self._columns]
        )
        self._file.append(line.getvalue())

    def close(self) -> None:
        self._file.close()

    def _widen(self, columns: list[str]) -> None:
        """Rewrite the file with more columns; a kill leaves the old file or the new one."""
        self._file.close()
        with self._path.open(encoding="utf-8", newline="") as old:
            rows = list(csv.reader(old))[1:]
        with (
            replacing(self._path, self._path.with_suffix(".csv.new")) as new,
            new.open("w", encoding="utf-8", newline="") as file,
        ):
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows([*row, *[""] * (len(columns) - len(row))] for row in rows)
        self._columns = columns
        self._file = LineFile(self._path)


def _file_name(name: str) -> str:
    """A level's or agent's name with %XX for what cannot be in a file's name."""
    return quote(name, safe=" ")


def _header(path: Path) -> list[str]:
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return next(csv.reader(file), [])
