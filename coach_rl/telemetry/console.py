"""Progress of a run on the console: a live panel on a terminal, plain lines elsewhere."""

import math
import os
import sys
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coach_rl.core.clock import Phase
from coach_rl.core.log_records import LogRecord
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    Hours,
    RunLength,
    StepUnit,
    TrainingSteps,
)
from coach_rl.telemetry.figures import (
    REWARD,
    SUCCESS,
    Best,
    BestPolicy,
    Figures,
    Learner,
    unit_name,
)

SHOWN = ("policy_loss", "value_loss", "entropy", "approx_kl")
"""Metrics shown in the panel besides other losses; log files contain all."""
MAX_SHOWN = 4
"""Training metrics of an agent in a line of text."""
_OF_LEVELS = {
    "level/goal_share": "goals",
    "evaluation_level/goal_share": "in evaluation",
    "final_evaluation_level/goal_share": "in final evaluation",
}
"""Shares of a level's sub-episodes that reached its goal, and what to call them."""
_NARROW = 70
_WIDE = 120
"""Columns of a terminal below which the panel has one figure a line, and those it takes at most."""
_CELL = 19
"""Columns that a metric of an agent takes."""


_STDERR = 2
REFRESH_SECONDS = 0.25
PLAIN_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class LivePanel:
    """Progress, figures, a line for each agent, and notices; fits any width."""

    figures: Figures
    activity: str = ""
    """The activity of the run that takes long; empty while there is none."""
    activity_seconds: float = 0.0
    """Seconds that it has taken, which come on top of the newest record's time."""
    notices: Sequence[str] = ()
    """Lines at the bottom."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render it in the width there is."""
        width = min(options.max_width, _WIDE)
        figures = self.figures
        last = self.figures.last
        if last is not None:
            last = replace(last, wall_seconds=last.wall_seconds + self.activity_seconds)
        if last is not None:
            own = options.update(width=width)
            for table in (
                _bar(figures, last),
                _numbers(figures, last, narrow=width < _NARROW),
                _agents(figures, width),
            ):
                if table.row_count:
                    yield from console.render(table, own)
            if figures.observed:
                yield Text(_observed(figures.observed))
            if figures.problems:
                yield Text(figures.problems, style="yellow")
        for line in (self.activity, *self.notices):
            if line:
                yield Text(line)


def plain_line(figures: Figures, *, shown_until: int = 0) -> str:
    """The figures in one line; there must be some.

    Args:
        figures: The figures.
        shown_until: The moment of a line before; losses from before it are marked with theirs.
    """
    record = figures.last
    assert record is not None, "there are no figures yet"
    unit = unit_name(record)
    parts = [f"{record.phase.value:<7}", f"{record.moment:>10,} {unit}"]
    if (share := figures.share) is not None:
        parts.append(f"{share:4.0%}")
    if speed := figures.speed:
        parts.append(f"{speed:,.0f} {unit}/s")
    parts.append(_left(figures))
    if record.training_steps and record.unit is not TrainingSteps:
        parts.append(f"{record.training_steps:,} updates")
    if figures.episode_reward is not None:
        parts.append(f"episode reward {number_text(figures.episode_reward)}")
    if not math.isnan(figures.evaluated):
        best = "" if figures.best is None else f" (best {best_text(figures.best)})"
        parts.append(f"evaluation {_evaluation(figures)}{best}")
    if figures.final is not None:
        parts.append(f"final evaluation {_final(figures)}")
    for learner in figures.learners():
        losses = [
            f"{learner.name} {of} {value}".lstrip()
            for of, value in _losses(learner.trained)[:MAX_SHOWN]
            if of.endswith("loss")
        ]
        if losses and learner.trained_at < shown_until:
            losses[-1] += f" (at {learner.trained_at:,} {unit})"
        parts += losses
    return "  ".join(part for part in parts if part)


def final_line(figures: Figures) -> str:
    """The final evaluation alone, to follow the line of the same steps; there must be one."""
    record = figures.last
    assert record is not None, "there are no figures yet"
    begin = f"{record.phase.value:<7}  {record.moment:>10,} {unit_name(record)}"
    return f"{begin}  final evaluation {_final(figures)}"


def number_text(value: float | None) -> str:
    """A number with few digits; a dash for None and NaN."""
    if value is None or math.isnan(value):
        return "-"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def best_text(best: Best | None) -> str:
    """The value of the best evaluation, with its metric unless that is the mean reward."""
    if best is None:
        return "-"
    if best.metric == REWARD:
        return number_text(best.value)
    if best.metric == SUCCESS:
        return f"{best.value:.0%} success"
    return f"{number_text(best.value)} {best.metric}"


def duration_text(seconds: float) -> str:
    """Seconds as hours, minutes and seconds: `1:02:03`, `2:03`."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"


def success_text(rate: float | None) -> str:
    """The success rate, to follow a reward; empty if it is not reported."""
    return "" if rate is None else f", {rate:.0%} success"


def _bar(figures: Figures, record: LogRecord) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(width=6, style="bold")
    table.add_column(ratio=1)
    table.add_column(justify="right")
    table.add_column(justify="right", min_width=12)
    share = figures.share
    table.add_row(
        record.phase.value,
        ProgressBar(total=1.0, completed=share or 0.0),
        "" if share is None else f"{share:4.0%}",
        _left(figures),
    )
    return table


def _numbers(figures: Figures, record: LogRecord, *, narrow: bool) -> Table:
    """Progress on the left and results on the right, or below each other."""
    speed = figures.speed
    progress = [
        ("steps", _of(figures, record, EnvironmentSteps)),
        (f"{unit_name(record)}/s", f"{speed:,.0f}" if speed else "-"),
        ("updates", _of(figures, record, TrainingSteps)),
        ("episodes", _of(figures, record, EnvironmentEpisodes)),
    ]
    results = [
        ("episode reward", number_text(figures.episode_reward)),
        ("evaluation", _evaluation(figures)),
        ("best", best_text(figures.best)),
        ("elapsed", _of(figures, record, Hours)),
    ]
    if figures.final is not None:
        progress.append(("", ""))
        results.append(("final evaluation", _final(figures)))
    table = Table.grid(padding=(0, 1), expand=True)
    for width in (16,) if narrow else (8, 16):  # of the longest names
        table.add_column(style="dim", width=width, no_wrap=True)
        table.add_column(ratio=1)
    if narrow:
        for pair in [*progress, *results]:
            if any(pair):
                table.add_row(*pair)
    else:
        for left, right in zip(progress, results, strict=True):
            table.add_row(*left, *right)
    return table


def _agents(figures: Figures, width: int) -> Table:
    """A line for each agent, with as many metrics as there is room for."""
    learners = list(figures.learners(levels=True))
    longest = max((len(learner.name) for learner in learners), default=0)
    room = max(1, min(2 + MAX_SHOWN, (width - longest) // _CELL))
    rows = [_metrics(learner)[:room] for learner in learners]
    table = Table.grid(padding=(0, 1))
    if longest:
        table.add_column(style="bold", no_wrap=True)
    for _ in range(room):
        table.add_column(min_width=_CELL - 2, no_wrap=True)
    for learner, metrics in zip(learners, rows, strict=True):
        cells = [Text.assemble((f"{of} ", "dim"), value) for of, value in metrics]
        cells += [Text()] * (room - len(cells))
        table.add_row(*([learner.name] if longest else []), *cells)
    return table


def _metrics(learner: Learner) -> list[tuple[str, str]]:
    """Names and values of an agent's line, the most important first."""
    shares = [
        (of, f"{share:.0%}")
        for name, of in _OF_LEVELS.items()
        if not math.isnan(share := learner.level.get(name, math.nan))
    ]
    idle = [("learns", "no")] if learner.level.get("level/learns") == 0 else []
    return idle + shares[:2] + _losses(learner.trained)[:MAX_SHOWN]


def _losses(scalars: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and values of the training metrics that are shown."""
    names = {name: name.removeprefix("train/") for name in scalars}
    chosen = [name for name, short in names.items() if short in SHOWN or short.endswith("_loss")]
    return [(names[name].replace("_", " "), f"{scalars[name]:.3g}") for name in chosen]


def _observed(ranges: Mapping[str, tuple[float, float]]) -> str:
    """The newest ranges of observations, in one line."""
    shown = (f"{name} {low:.3g} to {high:.3g}" for name, (low, high) in ranges.items())
    return ", ".join(name.replace("/observations/", " ") for name in shown)


def _evaluation(figures: Figures) -> str:
    return number_text(figures.evaluated) + success_text(figures.success)


def _final(figures: Figures) -> str:
    assert figures.final is not None
    return number_text(figures.final) + success_text(figures.final_success)


def _left(figures: Figures) -> str:
    seconds = figures.seconds_left
    return "" if seconds is None else f"{duration_text(seconds)} left"


def _of(figures: Figures, record: LogRecord, unit: type[StepUnit]) -> str:
    """The amount of a unit that is done, and the total where the run is measured in it."""
    parts = [unit.counted(record)]
    parts += [length.count for length in figures.planned if type(length) is unit]
    if unit is Hours:
        return " of ".join(duration_text(3600 * hours) for hours in parts)
    return " of ".join(f"{count:,}" for count in parts)


class ConsoleSink:
    """Shows phase, progress with the time left, speed, rewards, and every agent's losses.

    On a terminal a panel that refreshes four times a second at most; elsewhere, or with `plain`, a
    line at phase changes and evaluations and about every ten seconds in between. While no
    records arrive because something takes long, a thread shows that activity and its duration.

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
        self._activity = ""
        self._since = 0.0
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
        figures.levels = tuple(levels)
        figures.best = best
        figures.policy = figures.policy if policy is None else policy

    def announce(self, text: str) -> None:
        """Show a line below the panel from its next refresh on, or at once where there is none.

        May be called inside a signal handler: it writes past Python's buffers.
        """
        if self._live is not None:
            self._notice = text
        else:
            os.write(_STDERR, f"{text}\n".encode())

    def show_activity(self, activity: str, *, for_seconds: float = 0.0) -> None:
        """Show what takes long and for how long, until the next record or an empty text.

        The thread that shows it reads state that only `write` changes, so no records arrive then.

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
        """Add a record, and refresh the output if that is due."""
        self._end_activity()
        self._figures.add(record)
        now = time.monotonic()
        if self._plain:
            if record.kind == "level_phase":
                self._print(f"step {record.environment_steps:,}: {record.text}")
            begins = record.kind == "phase" and record.phase is not Phase.TEST
            important = begins or record.kind in ("evaluation", "final_evaluation")
            is_time = important or now - self._shown >= PLAIN_SECONDS
            if is_time and self._figures.last is not None:
                self._shown = now
                is_final = record.kind == "final_evaluation"
                if is_final and self._printed_at == self._figures.last.moment:
                    self._print(final_line(self._figures))
                else:
                    self._print_figures()
        elif now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._refresh()

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        """Start over from the records of a run so far, and show its progress."""
        self._end_activity()
        before = self._figures
        self._figures = Figures(before.planned, before.levels, before.policy)
        for record in records:
            self._figures.add(record)
        self._shown = time.monotonic()
        if self._figures.last is None:
            return
        if self._plain:
            self._print_figures()
        else:
            self._refresh()

    def close(self) -> None:
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
        self._watcher = None
        self._activity = ""
        if self._live is not None and self._figures.last is None:  # nothing to leave standing
            self._live.transient = True
            self._live.stop()
            self._live = None

    def _doing(self) -> str:
        return f"{self._activity}, {duration_text(time.monotonic() - self._since)}"

    def _print_figures(self) -> None:
        """Print the line of the figures, of which there must be some."""
        assert self._figures.last is not None
        steps = self._figures.last.moment
        before = self._printed_at
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
