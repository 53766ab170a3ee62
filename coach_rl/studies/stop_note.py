"""A note in a run's folder that asks the run to stop, from whatever process or host.

The run saves itself and stops, as after SIGTERM. The note stays and says why: a sweep leaves one in
the runs that it prunes. `coach resume` continues such a run all the same.
"""

import signal
from pathlib import Path

from coach_rl.configuration.strict_json import write_text
from coach_rl.core.printable_text import one_line
from coach_rl.telemetry.records import LogRecord

NOTE = "stop_note.txt"


def ask_to_stop(run: Path, why: str) -> None:
    """Ask the job that makes a run to stop.

    Args:
        run: The run's folder.
        why: The reason in a line; its first word tells what became of the run, e.g. `pruned`.
    """
    write_text(run / NOTE, f"{why}\n")


def stop_note(run: Path) -> str:
    """The reason why a run was asked to stop; empty where it was not."""
    try:
        return one_line((run / NOTE).read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return ""


class StopsWhenAsked:
    """A sink that stops its run, in this process, once there is a note."""

    def __init__(self) -> None:
        self.run: Path | None = None
        """The run's folder; None until it has one."""

    def write(self, record: LogRecord) -> None:
        """Look for the note where about a thousand steps have gone by."""
        if (
            record.kind in ("progress", "evaluation")
            and self.run is not None
            and stop_note(self.run)
        ):
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Close nothing."""
