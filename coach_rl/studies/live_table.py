"""Many runs as people watch them: a live table on a terminal, plain lines elsewhere."""

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coach_rl.runs.manifest import planned_lengths
from coach_rl.studies.conduct import JobStatus
from coach_rl.telemetry.jsonl import JsonlReader
from coach_rl.telemetry.live_panel import duration_text, number_text, success_text
from coach_rl.telemetry.records import LogRecord

PLAIN_SECONDS = 60.0
"""Time between two plain lines about a run whose state stays the same."""
_OTHER_LINES = 6
"""Lines of a terminal that rows of the table cannot have."""
_STYLES = {"running": "bold", "done": "green", "failed": "red", "stopped": "yellow"}


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
        self._said: dict[int, tuple[str, float]] = {}
        """The last line about a job, by its index, and its time."""
        self._newest: Sequence[Row] = ()

    def show(self, statuses: Sequence[JobStatus]) -> None:
        """Show where the jobs stand."""
        self.show_rows([_row(status) for status in statuses])

    def show_rows(self, rows: Sequence[Row]) -> None:
        """Show where runs stand."""
        self._newest = rows
        for row in rows:
            if row.folder is not None:
                self._run(row.folder).look()
        if self._plain:
            self._say(rows)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(self._in_view(rows)), refresh=True)

    def tell(self, text: str) -> None:
        """Show a line above the table."""
        self._console.print(text, highlight=False, markup=False, soft_wrap=True)

    def close(self) -> None:
        """Leave the whole table standing and give the terminal back."""
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
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("run", "state"):
            table.add_column(name, no_wrap=True)
        table.add_column("progress", width=18)
        for name in ("steps", "steps/s", "evaluation", "left"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in rows:
            table.add_row(*self._cells(row))
        counts = Counter(row.state for row in self._newest)
        said = ", ".join(f"{count} {state}" for state, count in counts.items())
        failures = [Text(f"{each.name}: {each.error}") for each in rows if each.error]
        return Group(table, *failures, Text(f"{len(self._newest)} runs: {said}", style="dim"))

    def _cells(self, row: Row) -> list[Text | ProgressBar]:
        run = None if row.folder is None else self._run(row.folder)
        state = Text(row.state_text, style=_STYLES.get(row.state, "dim"))
        if run is None:
            return [Text(row.name), state]
        share = 1.0 if row.state == "done" else run.share
        is_running = row.state == "running"
        return [
            Text(row.name),
            state,
            Text("") if share is None else ProgressBar(total=1.0, completed=share, width=18),
            Text(f"{run.environment_steps:,}"),
            Text(run.speed_text),
            Text(run.score_text),
            Text(run.left_text if is_running else ""),
        ]

    def _say(self, rows: Sequence[Row]) -> None:
        now = time.monotonic()
        for index, row in enumerate(rows):
            said, when = self._said.get(index, ("waiting", now))
            key = f"{row.state} {row.losses}"
            is_due = row.state == "running" and now - when >= PLAIN_SECONDS
            if (key != said and key != "waiting 0") or is_due:
                self._said[index] = (key, now)
                self.tell(self._line(row))

    def _line(self, row: Row) -> str:
        parts = [f"{row.name:<8}", f"{row.state_text:<8}"]
        if row.folder is not None:
            run = self._run(row.folder)
            share = None if row.state == "done" else run.share
            parts += [
                f"{run.environment_steps:,} steps",
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
        self.environment_steps = 0
        self.share: float | None = None
        """The share of the run that is done; None where that isn't known."""
        self.speed_text = self.score_text = self.left_text = ""

    def look(self) -> None:
        """Take in what has been written since."""
        for record in self._log.read():
            self.environment_steps = record.environment_steps
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
