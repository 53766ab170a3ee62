"""Live views of runs: a table of many, plain lines without a terminal, or one run's records."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Protocol

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from coach_rl.core.clock import Phase
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.log_records import LogRecord
from coach_rl.core.shown_text import one_line, printable
from coach_rl.extensions.studies.conduct import JobStatus
from coach_rl.extensions.studies.scores import RunState, read_scores, required_runs, stop_note
from coach_rl.runs.folder import MANIFEST
from coach_rl.runs.lock import holder_of, lost_holder_of
from coach_rl.runs.manifest import checkpoint_policy, level_names, planned_lengths
from coach_rl.telemetry.console import ConsoleSink, duration_text, number_text, success_text
from coach_rl.telemetry.figures import unit_name
from coach_rl.telemetry.log_files import JsonlReader
from coach_rl.telemetry.tables import Column, rich_table, table

PLAIN_SECONDS = 60.0
"""Interval of plain lines about a run whose state stays the same."""
_OTHER_LINES = 6
"""Lines of a terminal that rows of the table cannot have."""
_BAR = 18
"""Characters of a bar of progress."""
_STYLES = {"running": "bold", "done": "green", "failed": "red", "stopped": "yellow"}
_ADVICE = "name a run's folder, or that of an experiment: `coach watch experiments/NAME`"
BUSY_SECONDS, SILENT_SECONDS = 1.0, 10.0
"""Age of a log's last line from which the viewer shows what the run announced to do, or that there
is nothing new."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run of the table."""

    name: str
    state: str
    folder: Path | None
    """The run's folder; None where there is none yet, or it is on another machine."""
    losses: int = 0
    """Number of times that its process was lost."""
    error: str = ""
    """Reason of a failure, one line."""

    @property
    def state_text(self) -> str:
        """The state, and the number of the attempt after the first."""
        return f"{self.state}, {self.losses + 1}. time" if self.losses else self.state


class LiveTable:
    """Shows each job's state, progress, speed and score, as its run's folder has them.

        with closing(LiveTable(Console(), plain=False)) as table:
            conduct(jobs, pool, on_change=table.show)

    On a terminal a table that refreshes every second; elsewhere, or with `plain`, a line about each
    change of a state, and every minute about each job that is running.

    Args:
        console: Where to.
        plain: Lines even on a terminal.
    """

    def __init__(self, console: Console, *, plain: bool) -> None:
        self._console = console
        self._plain = plain or not console.is_terminal or console.is_dumb_terminal
        self._live: Live | None = None
        """None until the table is first shown, with `plain`, and after `close`."""
        self._runs: dict[Path, _WatchedRun] = {}
        self._printed: dict[int, tuple[str, float]] = {}
        """The last line about a job, by its index, and its time."""
        self._newest: Sequence[Row] = ()

    def show(self, statuses: Sequence[JobStatus]) -> None:
        """Show the status of all jobs."""
        self.show_rows([_row(status) for status in statuses])

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show the status of runs."""
        self._newest = rows
        for row in rows:
            if row.folder is not None:
                self._run(row.folder).update()
        if self._plain:
            self._print_changes(rows)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(self._in_view(rows)), refresh=True)

    def notify(self, text: str) -> None:
        """Show a line above the table."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Show the whole table once more and release the terminal."""
        if self._live is not None:
            self._live.vertical_overflow = "visible"
            self._live.update(self._table(self._newest), refresh=True)
            self._live.stop()
            self._live = None

    def _run(self, folder: Path) -> "_WatchedRun":
        if folder not in self._runs:
            self._runs[folder] = _WatchedRun(folder)
        return self._runs[folder]

    def _in_view(self, rows: Sequence[Row]) -> list[Row]:
        """The runs that the terminal has lines for: those that run or failed before the others."""
        room = max(1, self._console.size.height - _OTHER_LINES)
        order = ("running", "failed", "stopped", "pruned", "done", "waiting")
        ranked = sorted(range(len(rows)), key=lambda i: order.index(rows[i].state))
        return [rows[i] for i in sorted(ranked[:room])]

    def _table(self, rows: Sequence[Row]) -> Group:
        shown = rich_table(table(self._columns, rows), folded=0, box=None, padding=(0, 2, 0, 0))
        shown.columns[2].width = _BAR
        counts = Counter(row.state for row in self._newest)
        states = ", ".join(f"{count} {state}" for state, count in counts.items())
        failures = [Text(f"{each.name}: {each.error}") for each in rows if each.error]
        return Group(shown, *failures, Text(f"{len(self._newest)} runs: {states}", style="dim"))

    @property
    def _columns(self) -> tuple[Column, ...]:
        def of_run(name: str) -> Callable[[Row], object]:
            return lambda row: row.folder and getattr(self._run(row.folder), name)

        def share(row: Row) -> object:
            return 1.0 if row.state == "done" and row.folder else of_run("share")(row)

        def left(row: Row) -> object:
            return of_run("left_text")(row) if row.state == "running" else ""

        def state(row: Row) -> Text:
            return Text(row.state_text, style=_STYLES.get(row.state, "dim"))

        bar = partial(ProgressBar, 1.0, width=_BAR)

        return (
            Column("run", lambda row: row.name, Text, is_text=True),
            Column("state", lambda row: row, state, is_text=True),
            Column("progress", share, bar, is_text=True),
            Column("steps", of_run("moment"), "{:,}".format),
            Column("steps/s", of_run("speed_text")),
            Column("evaluation", of_run("score_text")),
            Column("left", left),
        )

    def _print_changes(self, rows: Sequence[Row]) -> None:
        now = time.monotonic()
        for index, row in enumerate(rows):
            printed, when = self._printed.get(index, ("waiting", now))
            key = f"{row.state} {row.losses}"
            is_due = row.state == "running" and now - when >= PLAIN_SECONDS
            if (key != printed and key != "waiting 0") or is_due:
                self._printed[index] = (key, now)
                self.notify(self._line(row))

    def _line(self, row: Row) -> str:
        parts = [f"{row.name:<8}", f"{row.state_text:<8}"]
        if row.folder is not None:
            run = self._run(row.folder)
            share = None if row.state == "done" else run.share
            parts += [
                run.done_text,
                "" if share is None else f"{share:.0%}",
                f"{run.speed_text} steps/s" if run.speed_text else "",
                f"evaluation {run.score_text}" if run.score_text else "",
            ]
        return "  ".join(part for part in [*parts, row.error] if part).rstrip()


class _WatchedRun:
    """A run as far as its log has been written."""

    def __init__(self, folder: Path) -> None:
        self._log = JsonlReader(
            folder / "log.jsonl", kinds=("progress", "evaluation", "final_evaluation")
        )
        self._lengths = planned_lengths(folder)
        self.moment = 0
        self.done_text = "0 steps"
        self.share: float | None = None
        """The share of the run that is done; None where that isn't known."""
        self.speed_text = self.score_text = self.left_text = ""

    def update(self) -> None:
        """Read the records written since the last call."""
        for record in self._log.stream():
            self.moment = record.moment
            self.done_text = f"{record.moment:,} {unit_name(record)}"
            match record.kind:
                case "progress":
                    self._progress(record)
                case "evaluation" | "final_evaluation":
                    self.score_text = _score(record)

    def _progress(self, record: LogRecord) -> None:
        speed = record.scalars.get("time/steps_per_second")
        self.speed_text = "" if not speed else f"{speed:,.0f}"
        shares = [length.share(record) for length in self._lengths]
        self.share = max(shares, default=None)
        seconds = record.wall_seconds
        self.left_text = (
            duration_text(seconds / self.share - seconds) if self.share and seconds else ""
        )


def _score(evaluation: LogRecord) -> str:
    scalars = {name.rpartition("/")[2]: each for name, each in evaluation.scalars.items()}
    return number_text(scalars.get("reward_mean")) + success_text(scalars.get("success_rate"))


def _row(status: JobStatus) -> Row:
    variant = status.job.labels.get("variant", "")
    return Row(
        name=f"{variant} seed {status.job.task.seed}".strip(),
        state=status.state,
        folder=status.folder,
        losses=status.losses,
        error=status.error,
    )


class Viewer(Protocol):
    """A sink that shows the records of a run, from any time on: `ConsoleSink`, `NotebookSink`."""

    def write(self, record: LogRecord) -> None:
        """Show one record."""
        ...

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        """Start over from all records so far."""
        ...

    def show_activity(self, activity: str, *, for_seconds: float = 0.0) -> None:
        """Show the run's slow activity and its duration so far."""
        ...

    def close(self) -> None:
        """Leave the newest numbers visible."""
        ...


@dataclass(frozen=True)
class RunStatus:
    """The state of a run, and its reason."""

    state: RunState
    reason: str = ""
    """The process that holds it, or the reason of its end, in one line; empty where it is done."""


def run_status(run: Path) -> RunStatus:
    """The status of a run, read from its folder.

    Raises:
        CheckpointError: Its manifest, summary or log is damaged.
    """
    if (holder := holder_of(run)) is not None:
        return RunStatus("running", str(holder))
    scores = read_scores(run)
    match scores.state:
        case "running":
            return RunStatus("running", str(scores.holder))
        case "failed":
            return RunStatus("failed", _failure(run))
        case "stopped" if (lost := lost_holder_of(run)) is not None:
            return RunStatus("stopped", f"{lost}, has ended without ending the run")
        case "done" as state:
            return RunStatus(state)
        case state:
            return RunStatus(state, stop_note(run))


def watch(run: Path, viewer: Viewer | None = None, *, poll_seconds: float = 0.5) -> RunStatus:
    """Show a run while it lasts, and return its state at the end.

    A run that is not running is shown as it is.

    Args:
        run: The run's folder.
        viewer: What shows its records; left open. None for this process's terminal.
        poll_seconds: Polling interval of its log.

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
    reader = JsonlReader(log)
    was_over = False
    while True:
        status = run_status(run)  # before its log, which a run that ends now completes
        records = reader.stream()
        for first in records:
            if reader.is_from_start:
                viewer.catch_up(chain([first], records))
            else:
                viewer.write(first)
        is_over = status.state != "running"
        if is_over and was_over:
            return status
        was_over = is_over  # a run that has just begun takes its lock in a moment
        silence = _silence(log)
        activity = _activity(reader.newest)
        if not is_over and silence >= (BUSY_SECONDS if activity else SILENT_SECONDS):
            viewer.show_activity(activity or "nothing new in the log", for_seconds=silence)
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
        poll_seconds: Polling interval.
    """
    over: dict[Path, RunStatus] = {}
    while len(over) < len(runs):
        rows = []
        for run in runs:
            status = over.get(run) or _status_in_table(run)
            if status.state != "running":
                over[run] = status
            error = status.reason if status.state == "failed" else ""
            name = printable(f"{run.parent.name}/{run.name}")
            rows.append(Row(name=name, state=status.state, folder=run, error=error))
        table.show_rows(rows)
        if len(over) < len(runs):
            time.sleep(poll_seconds)
    return [over[run].state for run in runs]


def _status_in_table(run: Path) -> RunStatus:
    """The state of one of several runs; a damaged one counts as failed."""
    try:
        return run_status(run)
    except CheckpointError as error:
        return RunStatus("failed", one_line(str(error)))


def runs_to_watch(paths: Sequence[Path]) -> list[Path]:
    """The runs to watch in folders: all that are running, or else the newest.

    Args:
        paths: Folders of runs, or of many, however deep. Several that are runs are all taken.

    Raises:
        ConfigurationError: There are no runs in one of them.
    """
    found = []
    for path in paths:
        runs = required_runs(path, _ADVICE)
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
