"""A run as people watch it: a live panel on a terminal, plain lines elsewhere."""

import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.live import Live

from coach_rl.core.clock import Phase
from coach_rl.core.steps import RunLength
from coach_rl.telemetry.best_evaluation import Best, BestPolicy
from coach_rl.telemetry.figures import Figures
from coach_rl.telemetry.live_panel import LivePanel, duration_text, plain_line
from coach_rl.telemetry.records import LogRecord

_STDERR = 2
REFRESH_SECONDS = 0.25
PLAIN_SECONDS = 10.0


class ConsoleSink:
    """Shows phase, progress with the time left, speed, rewards, and every agent's losses.

    On a terminal a panel that refreshes four times a second at most; elsewhere, or with `plain`, a
    line at phase changes and evaluations and about every ten seconds in between. While the run says
    nothing because something takes long, a thread keeps showing what that is, and for how long.

    Args:
        planned: Length of the whole run; None where it is not known yet.
        console: Where to; None for standard output.
        plain: Lines even on a terminal.
    """

    def __init__(
        self,
        *,
        planned: RunLength | None = None,
        console: Console | None = None,
        plain: bool = False,
    ) -> None:
        self._console = console or Console()
        self._plain = plain or not self._console.is_terminal or self._console.is_dumb_terminal
        self._figures = Figures(planned=() if planned is None else (planned,))
        self._notice = ""
        self._activity, self._since = "", 0.0
        """The activity that takes long, and when it began."""
        self._activity_over = threading.Event()
        self._watcher: threading.Thread | None = None
        """Shows the activity; None while there is none."""
        self._live: Live | None = None
        """None until the panel is first shown, and after `close`."""
        self._shown = -math.inf
        self._printed_at, self._printed_before = 0, 0
        """Environment steps of the newest line of figures, and of the newest with fewer steps."""

    def plan(
        self,
        *lengths: RunLength | None,
        levels: Sequence[str] = (),
        policy: BestPolicy | None = None,
        best: Best | None = None,
    ) -> None:
        """Set what is known of the run before its records, which do not contain it.

        Args:
            *lengths: Lengths of which the first to be reached ends the run.
            levels: Names of its levels.
            policy: The metric by which an evaluation is the best; None for success where it is
                reported, and the mean reward elsewhere.
            best: The best evaluation so far, of a run that is resumed.
        """
        figures = self._figures
        figures.planned = tuple(length for length in lengths if length is not None)
        figures.levels, figures.best = tuple(levels), best
        figures.policy = figures.policy if policy is None else policy

    def announce(self, text: str) -> None:
        """Show a line below the panel from its next refresh on, or at once where there is none.

        May be called inside a signal handler: it writes past Python's buffers.
        """
        if self._live is not None:
            self._notice = text
        else:
            os.write(_STDERR, f"{text}\n".encode())

    def tell(self, activity: str, *, for_seconds: float = 0.0) -> None:
        """Show what takes long and for how long, until the next record or an empty text.

        The thread that shows it reads what only `write` changes, so no record comes in meanwhile.

        Args:
            activity: What takes long; empty when it is over.
            for_seconds: Seconds that it has already taken.
        """
        if not activity:
            self._end_activity()
            return
        self._activity = activity
        if self._watcher is None:
            self._since = time.monotonic() - for_seconds
            self._activity_over.clear()
            self._watcher = threading.Thread(target=self._watch_activity, daemon=True)
            self._watcher.start()

    def write(self, record: LogRecord) -> None:
        """Take in a record; shows it when it is time to."""
        self._end_activity()
        self._figures.take_in(record)
        now = time.monotonic()
        if self._plain:
            if record.kind == "level_phase":
                self._print(f"step {record.environment_steps:,}: {record.text}")
            begins = record.kind == "phase" and record.phase is not Phase.TEST
            important = begins or record.kind in ("evaluation", "final_evaluation")
            is_time = important or now - self._shown >= PLAIN_SECONDS
            if is_time and self._figures.last is not None:
                self._shown = now
                self._print_figures()
        elif now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._refresh()

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        """Start over from the records of a run so far, and show where it stands."""
        self._end_activity()
        before = self._figures
        self._figures = Figures(before.planned, before.levels, before.policy)
        for record in records:
            self._figures.take_in(record)
        self._shown = time.monotonic()
        if self._figures.last is None:
            return
        if self._plain:
            self._print_figures()
        else:
            self._refresh()

    def close(self) -> None:
        """Leave the newest numbers standing and give the terminal back."""
        self._end_activity()
        if self._live is not None:
            self._live.vertical_overflow = "visible"
            self._refresh()
            self._live.stop()
            self._live = None

    def _watch_activity(self) -> None:
        """Show the activity until it is over."""
        while not self._activity_over.wait(REFRESH_SECONDS):
            now = time.monotonic()
            if not self._plain:
                self._refresh()
            elif now - max(self._since, self._shown) >= PLAIN_SECONDS:
                self._shown = now
                self._print(self._doing())

    def _end_activity(self) -> None:
        if self._watcher is None:
            return
        self._activity_over.set()
        self._watcher.join()
        self._watcher, self._activity = None, ""
        if self._live is not None and self._figures.last is None:  # nothing to leave standing
            self._live.transient = True
            self._live.stop()
            self._live = None

    def _doing(self) -> str:
        return f"{self._activity}, {duration_text(time.monotonic() - self._since)}"

    def _print_figures(self) -> None:
        """Print the line of the figures, of which there must be some."""
        assert self._figures.last is not None
        steps, before = self._figures.last.environment_steps, self._printed_at
        if steps != before:
            self._printed_at, self._printed_before = steps, before if before < steps else 0
        self._print(plain_line(self._figures, shown_until=self._printed_before))

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _refresh(self) -> None:
        if self._live is None:
            # Warnings go above the panel, unless the user sends them elsewhere.
            self._live = Live(
                console=self._console, auto_refresh=False, redirect_stderr=sys.stderr.isatty()
            )
            self._live.start()
        panel = LivePanel(
            figures=self._figures,
            activity=self._doing() if self._activity else "",
            activity_seconds=time.monotonic() - self._since if self._activity else 0.0,
            notices=[self._notice] if self._notice else [],
        )
        self._live.update(panel, refresh=True)
