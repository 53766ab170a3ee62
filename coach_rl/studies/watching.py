"""Watching runs of other processes and hosts, by their folders alone.

    watch(Path("experiments/Mujoco_PPO/half_cheetah_seed0_2026-11-22_12-35-58"))

Watching only reads what the run writes; the run does not notice.
"""

import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from coach_rl.core.clock import Phase
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.printable_text import one_line, printable
from coach_rl.runs.folder import MANIFEST
from coach_rl.runs.lock import holder_of, lost_holder_of
from coach_rl.runs.manifest import checkpoint_policy, level_names, planned_lengths
from coach_rl.studies.live_table import LiveTable, Row
from coach_rl.studies.scores import RunState, read_scores, runs_below
from coach_rl.studies.stop_note import stop_note
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.jsonl import JsonlReader
from coach_rl.telemetry.records import LogRecord

BUSY_SECONDS, SILENT_SECONDS = 1.0, 10.0
"""Age of a log's last line from which the viewer shows what the run announced to do, or that there
is nothing new."""


class Viewer(Protocol):
    """A sink that shows the records of a run, from any time on: `ConsoleSink`, `NotebookSink`."""

    def write(self, record: LogRecord) -> None:
        """Take in one record."""
        ...

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        """Start over from all records so far."""
        ...

    def tell(self, activity: str, *, for_seconds: float = 0.0) -> None:
        """Show what takes the run long, and for how long already."""
        ...

    def close(self) -> None:
        """Leave the newest numbers standing."""
        ...


@dataclass(frozen=True)
class Standing:
    """The state of a run, and what there is to say about it."""

    state: RunState
    account: str = ""
    """The process that holds it, or the reason of its end, in one line; empty where it is done."""


def standing_of(run: Path) -> Standing:
    """The state of a run, as its folder tells.

    Raises:
        CheckpointError: Its manifest, summary or log is damaged.
    """
    if (holder := holder_of(run)) is not None:
        return Standing("running", str(holder))
    scores = read_scores(run)
    match scores.state:
        case "running":
            return Standing("running", str(scores.holder))
        case "failed":
            return Standing("failed", _failure(run))
        case "stopped" if (lost := lost_holder_of(run)) is not None:
            return Standing("stopped", f"{lost}, is gone without having ended the run")
        case "done" as state:
            return Standing(state)
        case state:
            return Standing(state, stop_note(run))


def watch(run: Path, viewer: Viewer | None = None, *, poll_seconds: float = 0.5) -> Standing:
    """Show a run while it lasts, and return its state at the end.

    A run that is not running is shown as it stands.

    Args:
        run: The run's folder.
        viewer: What shows its records; left open. None for this process's terminal.
        poll_seconds: Seconds between two looks at its log.

    Raises:
        ConfigurationError: It is not a run's folder.
        CheckpointError: The folder is damaged.
    """
    if not (run / MANIFEST).exists():
        raise ConfigurationError(
            f"{run} is not a run's folder (with a manifest.json); `coach runs FOLDER` lists runs"
        )
    if viewer is None:
        with closing(ConsoleSink()) as console:
            plan_from(console, run)
            return watch(run, console, poll_seconds=poll_seconds)
    log = run / "log.jsonl"
    reader, newest = JsonlReader(log), None
    was_over = False
    while True:
        standing = standing_of(run)  # before its log, which a run that ends now completes
        records = reader.read()
        newest = records[-1] if records else newest
        if records and reader.is_anew:
            viewer.catch_up(records)
        else:
            for record in records:
                viewer.write(record)
        is_over = standing.state != "running"
        if is_over and was_over:
            return standing
        was_over = is_over  # a run that has just begun takes its lock in a moment
        silence, activity = _silence(log), _activity(newest)
        if not is_over and silence >= (BUSY_SECONDS if activity else SILENT_SECONDS):
            viewer.tell(activity or "nothing new in the log", for_seconds=silence)
        time.sleep(poll_seconds)


def plan_from(console: ConsoleSink, run: Path) -> None:
    """Set a console's plan from the manifest of the run that it will show."""
    policy = checkpoint_policy(run)
    console.plan(*planned_lengths(run), levels=level_names(run), policy=policy)


def watch_all(
    runs: Sequence[Path], table: LiveTable, *, poll_seconds: float = 1.0
) -> list[RunState]:
    """Show runs in a table until none of them is running, and return their states.

    Args:
        runs: Their folders.
        table: Left open.
        poll_seconds: Seconds between two looks at them.
    """
    over: dict[Path, Standing] = {}
    while len(over) < len(runs):
        rows = []
        for run in runs:
            standing = over.get(run) or _standing_in_table(run)
            if standing.state != "running":
                over[run] = standing
            error = standing.account if standing.state == "failed" else ""
            name = printable(f"{run.parent.name}/{run.name}")
            rows.append(Row(name=name, state=standing.state, folder=run, error=error))
        table.show_rows(rows)
        if len(over) < len(runs):
            time.sleep(poll_seconds)
    return [over[run].state for run in runs]


def _standing_in_table(run: Path) -> Standing:
    """The state of one of several runs; a damaged one counts as failed."""
    try:
        return standing_of(run)
    except CheckpointError as error:
        return Standing("failed", one_line(str(error)))


def runs_to_watch(paths: Sequence[Path]) -> list[Path]:
    """The runs that folders stand for: all that are running, or else the newest.

    Args:
        paths: Folders of runs, or of many, however deep. Several that are runs are all taken.

    Raises:
        ConfigurationError: There are no runs in one of them.
    """
    found = []
    for path in paths:
        runs = runs_below(path)
        if not runs:
            what = "holds no runs" if path.expanduser().exists() else "does not exist"
            raise ConfigurationError(
                f"{path} {what}; name a run's folder, or that of an experiment: "
                "`coach watch experiments/NAME`"
            )
        running = [run for run in runs if holder_of(run) is not None]
        found += running or [max(runs, key=_written_at)]
    return list(dict.fromkeys(found))


def _activity(newest: LogRecord | None) -> str:
    """The long activity that the newest record announces; empty where it announces none."""
    if newest is None:
        return "starting"
    if newest.kind == "phase" and newest.phase is Phase.TEST:
        return "evaluating"
    if newest.kind == "checkpoint":
        return "writing a checkpoint"
    return ""


def _silence(log: Path) -> float:
    """Seconds since a log was written; none where there is no log yet."""
    try:
        return max(0.0, time.time() - log.stat().st_mtime)
    except OSError:
        return 0.0


def _written_at(run: Path) -> float:
    paths = [path for path in (run / "log.jsonl", run / MANIFEST) if path.exists()]
    return max((path.stat().st_mtime for path in paths), default=0.0)


def _failure(run: Path) -> str:
    """The message of the error that ended a run, in one line."""
    newest = max((run / "faults").glob("step_*.txt"), key=lambda path: path.stat().st_mtime)
    message = newest.read_text(encoding="utf-8", errors="replace").partition("\n\n")[0]
    return one_line(message)
