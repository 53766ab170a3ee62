"""Log records as tables: a file per agent, one for episodes, one for evaluations, ..."""

import csv
import io
from pathlib import Path
from urllib.parse import quote, unquote

from coach_rl.core.file_writing import replacing
from coach_rl.telemetry.line_file import LineFile
from coach_rl.telemetry.records import LogRecord

COUNTERS = ("environment_steps", "training_steps", "episodes", "wall_seconds")
FILES = {
    "episode": "episodes",
    "fault": "faults",
    "evaluation": "evaluations",
    "final_evaluation": "final_evaluation",
    "progress": "progress",
    "signals": "signals",
    "gap": "gaps",
    "roll_back": "roll_backs",
    "note": "notes",
}
"""Files of the records about the whole graph."""


INSPECTED = ".inspections"
"""End of the names of files of inspections, behind the level and agent that they are about."""


class CsvSink:
    """Streams `<level>.<agent>.csv`, `<level>.csv`, the files of `FILES`, and of inspections.

    Columns are the counters, then the scalars in the order they first came. A scalar that comes
    later adds a column: the file is rewritten once, with empty cells before. Numbers are written so
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
        speaker = ".".join(_file_name(name) for name in (record.level, record.agent) if name)
        name = FILES.get(record.kind) or speaker
        if record.kind == "inspection":
            name = f"{speaker}{INSPECTED}" if speaker else INSPECTED.lstrip(".")
        if not record.scalars or not name:
            return
        if name not in self._tables:
            self._tables[name] = _Table(self._folder / f"{name}.csv")
        counters = {column: getattr(record, column) for column in COUNTERS}
        self._tables[name].add({**counters, **record.scalars})

    def close(self) -> None:
        """Close the files."""
        for table in self._tables.values():
            table.close()
        self._tables.clear()


def logged_names(folder: Path) -> set[str]:
    """The scalars in a folder's tables, an agent's as `<level>/<agent>/<name>`."""
    names = set()
    for path in folder.glob("*.csv"):
        stem = f".{path.stem}".removesuffix(INSPECTED).removeprefix(".")
        speaker = "" if stem in ("", *FILES.values()) else unquote(stem.replace(".", "/")) + "/"
        names |= {f"{speaker}{name}" for name in _header(path) if name not in COUNTERS}
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
