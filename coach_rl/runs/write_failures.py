"""Failures to write files of a run, which continues without them."""

import warnings
from pathlib import Path

from coach_rl.core.errors import CoachWarning
from coach_rl.runs.sinks import trouble


class WriteFailures:
    """Counts what could not be written, and warns of the first of a kind.

    Args:
        folder: The run's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[str, int] = {}

    def note(self, kind: str, what: str, error: BaseException) -> str:
        """Count a failure; what it was, with the reason.

        Args:
            kind: The kind of what could not be written, in the plural.
            what: What it was.
            error: Why.
        """
        message = f"{what}: {trouble(error, self._folder)}"
        if kind not in self._counts:
            warnings.warn(f"cannot write {message}; the run continues", CoachWarning, stacklevel=3)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return message

    def counted(self) -> dict[str, int]:
        """The number of failures, by what they were."""
        return {f"{kind} that could not be written": n for kind, n in self._counts.items()}
