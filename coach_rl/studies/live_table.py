"""Many runs as people watch them: a live table on a terminal, plain lines elsewhere."""

import json
import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coach_rl.core.errors import CoachError
from coach_rl.experiment.parameters_json import decode
from coach_rl.experiment.run_folder import RunFolder, read_manifest
from coach_rl.graph_managers.parameters import ScheduleParameters
from coach_rl.studies.conduct import JobStatus
from coach_rl.telemetry.console import duration_text, number_text

PLAIN_SECONDS = 60.0
"""Time between two plain lines about a run whose state stays the same."""
_OTHER_LINES = 6
"""Lines of a terminal that rows of the table cannot have."""
_STYLES = {"running": "bold", "done": "green", "failed": "red", "stopped": "yellow"}


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
        self._newest: Sequence[JobStatus] = ()

    def show(self, statuses: Sequence[JobStatus]) -> None:
        """Show where the jobs stand."""
        self._newest = statuses
        for status in statuses:
            if status.folder is not None:
                self._run(status.folder).look()
        if self._plain:
            self._say(statuses)
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(self._in_view(statuses)), refresh=True)

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

    def _in_view(self, statuses: Sequence[JobStatus]) -> list[JobStatus]:
        """The jobs that the terminal has lines for: those that run or failed before the others."""
        room = max(1, self._console.size.height - _OTHER_LINES)
        order = ("running", "failed", "stopped", "done", "waiting")
        ranked = sorted(range(len(statuses)), key=lambda i: order.index(statuses[i].state))
        return [statuses[i] for i in sorted(ranked[:room])]

    def _table(self, statuses: Sequence[JobStatus]) -> Group:
        table = Table(box=None, padding=(0, 2, 0, 0))
        for name in ("run", "state"):
            table.add_column(name, no_wrap=True)
        table.add_column("progress", width=18)
        for name in ("steps", "steps/s", "evaluation", "left"):
            table.add_column(name, justify="right", no_wrap=True)
        for status in statuses:
            table.add_row(*self._cells(status))
        counts = Counter(status.state for status in self._newest)
        said = ", ".join(f"{count} {state}" for state, count in counts.items())
        failures = [Text(f"{_name(each)}: {each.error}") for each in statuses if each.error]
        return Group(table, *failures, Text(f"{len(self._newest)} runs: {said}", style="dim"))

    def _cells(self, status: JobStatus) -> list[Text | ProgressBar]:
        run = None if status.folder is None else self._run(status.folder)
        state = Text(_state(status), style=_STYLES.get(status.state, "dim"))
        if run is None:
            return [Text(_name(status)), state]
        share = 1.0 if status.state == "done" else run.share
        is_running = status.state == "running"
        return [
            Text(_name(status)),
            state,
            Text("") if share is None else ProgressBar(total=1.0, completed=share, width=18),
            Text(f"{run.environment_steps:,}"),
            Text(run.speed_text),
            Text(run.score_text),
            Text(run.left_text if is_running else ""),
        ]

    def _say(self, statuses: Sequence[JobStatus]) -> None:
        now = time.monotonic()
        for index, status in enumerate(statuses):
            said, when = self._said.get(index, ("waiting", now))
            key = f"{status.state} {status.losses}"
            is_due = status.state == "running" and now - when >= PLAIN_SECONDS
            if (key != said and key != "waiting 0") or is_due:
                self._said[index] = (key, now)
                self.tell(self._line(status))

    def _line(self, status: JobStatus) -> str:
        parts = [f"{_name(status):<8}", f"{_state(status):<8}"]
        if status.folder is not None:
            run = self._run(status.folder)
            share = None if status.state == "done" else run.share
            parts += [
                f"{run.environment_steps:,} steps",
                "" if share is None else f"{share:.0%}",
                f"{run.speed_text} steps/s" if run.speed_text else "",
                f"evaluation {run.score_text}" if run.score_text else "",
            ]
        return "  ".join(part for part in [*parts, status.error] if part).rstrip()


class _WatchedRun:
    """A run as far as its log has been written."""

    def __init__(self, folder: Path) -> None:
        self._log = folder / "log.jsonl"
        self._read = 0
        """Bytes of the log that have been read."""
        self.environment_steps = 0
        self.share: float | None = None
        """The share of the run that is done; None where that isn't known."""
        self.speed_text = self.score_text = self.left_text = ""
        try:
            schedule = decode(read_manifest(RunFolder(folder))["parameters"]["schedule"])
            assert isinstance(schedule, ScheduleParameters)
            self._lengths = [each for each in (schedule.training, schedule.stop_after) if each]
        except (CoachError, KeyError, AssertionError):
            self._lengths = []

    def look(self) -> None:
        """Take in what has been written since."""
        try:
            if self._log.stat().st_size < self._read:  # resumed from a checkpoint before it
                self._read = 0
            with self._log.open("rb") as file:
                file.seek(self._read)
                text = file.read()
        except OSError:
            return
        text = text[: text.rfind(b"\n") + 1]
        self._read += len(text)
        for line in text.splitlines():
            if b'"progress"' in line or b'evaluation"' in line:
                self._take_in(line)

    def _take_in(self, line: bytes) -> None:
        try:
            record = json.loads(line)
            scalars = {name.rpartition("/")[2]: each for name, each in record["scalars"].items()}
            self.environment_steps = record["environment_steps"]
            match record["kind"]:
                case "progress":
                    self._progress(record, scalars)
                case "evaluation" | "final_evaluation":
                    self.score_text = _score(scalars)
        except (ValueError, KeyError, TypeError):
            self._read = 0  # in the middle of a line that has been replaced

    def _progress(self, record: dict[str, float], scalars: dict[str, float]) -> None:
        speed = scalars.get("steps_per_second")
        self.speed_text = "" if not speed else f"{speed:,.0f}"
        counters = _Counters(record)
        shares = [length.share(counters) for length in self._lengths]
        self.share = max(shares, default=None)
        seconds = record["wall_seconds"]
        self.left_text = (
            duration_text(seconds / self.share - seconds) if self.share and seconds else ""
        )


class _Counters:
    """The counters of a record in a log."""

    def __init__(self, record: dict[str, float]) -> None:
        self.environment_steps = int(record["environment_steps"])
        self.episodes = int(record["episodes"])
        self.training_steps = int(record["training_steps"])
        self.wall_seconds = record["wall_seconds"]


def _score(scalars: dict[str, float]) -> str:
    reward, success = scalars.get("reward_mean"), scalars.get("success_rate")
    rate = "" if success is None else f", {success:.0%} success"
    return number_text(math.nan if reward is None else reward) + rate


def _name(status: JobStatus) -> str:
    variant = status.job.labels.get("variant", "")
    return f"{variant} seed {status.job.task.seed}".strip()


def _state(status: JobStatus) -> str:
    return f"{status.state}, {status.losses + 1}. time" if status.losses else status.state
