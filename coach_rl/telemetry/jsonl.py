"""Log records as lines of JSON."""

import json
import math
from pathlib import Path

from coach_rl.telemetry.line_file import LineFile
from coach_rl.telemetry.records import LogRecord


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


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
