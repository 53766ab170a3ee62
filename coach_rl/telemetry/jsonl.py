"""Log records as lines of JSON, written and read again."""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from coach_rl.core.clock import Phase
from coach_rl.core.shown_text import printable
from coach_rl.telemetry.line_file import LineFile
from coach_rl.telemetry.records import Kind, LogRecord

_TAIL = 4096
"""Bytes by which a file that was cut and written again is noticed."""


class JsonlSink:
    """Appends a line per record, so a killed run keeps its lines; histograms would be too large.

    Strict JSON: a number that is not finite is written as null.

    Args:
        path: The file; its folder is made.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = LineFile(path)

    def write(self, record: LogRecord) -> None:
        """One line."""
        if record.kind == "histogram":
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
        if record.arrays:
            line["arrays"] = {
                name: [_finite(value) for value in values.ravel().tolist()]
                for name, values in record.arrays.items()
            }
        self._file.append(json.dumps(line, allow_nan=False) + "\n")

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class JsonlReader:
    """Reads the records of a file that may still be written, cut and written again.

        reader = JsonlReader(run / "log.jsonl")
        while is_running():
            for record in reader.read():
                ...

    Args:
        path: The file; it need not exist yet.
        kinds: Kinds of records to read; empty for all.
    """

    def __init__(self, path: Path, *, kinds: Sequence[Kind] = ()) -> None:
        self._path = path
        self._words = [f'"kind": "{kind}"'.encode() for kind in kinds]
        self._end = 0
        """Bytes that have been read, up to the end of a line."""
        self._tail = b""
        """The last of these, which are others once the file has been cut and written again."""
        self.is_anew = True
        """True if the newest records begin the file: at first, and after it has been cut."""

    def read(self) -> list[LogRecord]:
        """Return the records since the last time; all of them where the file has been cut.

        A line that is no record is left out, as one that is being written is.
        """
        try:
            with self._path.open("rb") as file:
                file.seek(self._end - len(self._tail))
                is_cut = file.read(len(self._tail)) != self._tail
                if is_cut:
                    file.seek(0)
                text = file.read()
        except OSError:  # not there yet, or out of reach for a while
            self.is_anew = self._end == 0
            return []
        self.is_anew = is_cut or self._end == 0
        text = text[: text.rfind(b"\n") + 1]
        self._end = len(text) if is_cut else self._end + len(text)
        self._tail = ((b"" if is_cut else self._tail) + text)[-_TAIL:]
        lines = text.splitlines()
        if self._words:  # spares reading most of a log
            lines = [line for line in lines if any(word in line for word in self._words)]
        records = [_record(line) for line in lines]
        return [record for record in records if record is not None]


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
            text="\n".join(map(printable, fields.get("text", "").split("\n"))),
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return None


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
