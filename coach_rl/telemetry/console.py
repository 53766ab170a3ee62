"""A run as people watch it: a live panel on a terminal, plain lines elsewhere."""

import math
import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from coach_rl.core.clock import Phase
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    Hours,
    RunLength,
    StepUnit,
    TrainingSteps,
)
from coach_rl.telemetry.records import LogRecord

_STDERR = 2
REFRESH_SECONDS = 0.25
PLAIN_SECONDS = 10.0
RECENT_EPISODES = 100
RECENT_SPEEDS = 20
"""Progress records over which the speed is taken."""
SHOWN = ("policy_loss", "value_loss", "entropy", "approx_kl")
"""Training metrics shown, besides other losses; the files have all."""
MAX_SHOWN = 4
"""Training metrics an agent has room for."""


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
        self._planned: tuple[RunLength, ...] = () if planned is None else (planned,)
        """Lengths of which the first to be reached ends the run; none where they aren't known."""
        self._notice = ""
        self._activity, self._since = "", 0.0
        """The activity that takes long, and when it began."""
        self._activity_over = threading.Event()
        self._watcher: threading.Thread | None = None
        """Shows the activity; None while there is none."""
        self._live: Live | None = None
        """None until the panel is first shown, and after `close`."""
        self._last: LogRecord | None = None
        """The newest record; None before the first."""
        self._shown = -math.inf
        self._rewards: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._progress: deque[LogRecord] = deque(maxlen=RECENT_SPEEDS)
        self._evaluated = math.nan
        self._best = math.nan
        self._success = ""
        """Share of successes in the newest evaluation; empty where nobody says."""
        self._final = ""
        """Result of the final evaluation; empty before."""
        self._learned: dict[tuple[str, str], Mapping[str, float]] = {}
        """The newest training metrics by level and agent."""

    def plan(self, *lengths: RunLength | None) -> None:
        """Say how long the run is in all, once that is known; the length reached first ends it."""
        self._planned = tuple(length for length in lengths if length is not None)

    def announce(self, text: str) -> None:
        """Show a line below the panel from its next refresh on, or at once where there is none.

        May be called inside a signal handler: it writes past Python's buffers.
        """
        if self._live is not None:
            self._notice = text
        else:
            os.write(_STDERR, f"{text}\n".encode())

    def tell(self, activity: str) -> None:
        """Show what takes long and for how long, until the next record or an empty text.

        The thread that shows it reads what only `write` changes, so no record comes in meanwhile.
        """
        if not activity:
            self._end_activity()
            return
        self._activity = activity
        if self._watcher is None:
            self._since = time.monotonic()
            self._activity_over.clear()
            self._watcher = threading.Thread(target=self._watch_activity, daemon=True)
            self._watcher.start()

    def write(self, record: LogRecord) -> None:
        """Take in a record; shows it when it is time to."""
        self._end_activity()
        self._take_in(record)
        self._last = record
        now = time.monotonic()
        if self._plain:
            begins = record.kind == "phase" and record.phase is not Phase.TEST
            important = begins or record.kind in ("evaluation", "final_evaluation")
            if important or now - self._shown >= PLAIN_SECONDS:
                self._shown = now
                self._print(self._line(record))
        elif now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._refresh(record)

    def close(self) -> None:
        """Leave the newest numbers standing and give the terminal back."""
        self._end_activity()
        if self._live is not None:
            assert self._last is not None
            self._refresh(self._last)
            self._live.stop()
            self._live = None

    def _watch_activity(self) -> None:
        """Show the activity until it is over."""
        while not self._activity_over.wait(REFRESH_SECONDS):
            now = time.monotonic()
            if not self._plain and self._last is not None:
                self._refresh(self._last)
            elif now - max(self._since, self._shown) >= PLAIN_SECONDS:
                self._shown = now
                self._print(self._doing())

    def _end_activity(self) -> None:
        if self._watcher is not None:
            self._activity_over.set()
            self._watcher.join()
            self._watcher, self._activity = None, ""

    def _doing(self) -> str:
        return f"{self._activity}, {duration_text(time.monotonic() - self._since)}"

    def _print(self, line: str) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _take_in(self, record: LogRecord) -> None:
        scalars = record.scalars
        match record.kind:
            case "episode":
                self._rewards.append(scalars["episode/reward"])
            case "progress":
                self._progress.append(record)
            case "evaluation":
                self._evaluated = scalars["evaluation/reward_mean"]
                self._best = float(np.fmax(self._best, self._evaluated))
                self._success = _success(scalars.get("evaluation/success_rate"))
            case "final_evaluation":
                reward = number_text(scalars["final_evaluation/reward_mean"])
                self._final = reward + _success(scalars.get("final_evaluation/success_rate"))
            case "train":
                self._learned[record.level, record.agent] = scalars

    def _refresh(self, record: LogRecord) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        lines = [self._doing() if self._activity else "", self._notice]
        texts = [Text(line) for line in lines if line]
        panel = Group(self._bar(record), self._numbers(record), self._losses(), *texts)
        self._live.update(panel, refresh=True)

    def _bar(self, record: LogRecord) -> Table:
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(width=6, style="bold")
        table.add_column(ratio=1)
        table.add_column(justify="right")
        table.add_column(justify="right", min_width=12)
        share = self._share(record)
        table.add_row(
            record.phase.value,
            ProgressBar(total=1.0, completed=share or 0.0),
            "" if share is None else f"{share:4.0%}",
            self._left(record),
        )
        return table

    def _numbers(self, record: LogRecord) -> Table:
        table = Table.grid(padding=(0, 1), expand=True)
        for ratio in (2, 3, 2, 2):
            table.add_column(style="dim" if len(table.columns) % 2 == 0 else "", ratio=ratio)
        table.add_row(
            "steps",
            self._of(record, EnvironmentSteps),
            "episode reward",
            number_text(self._episode_reward()),
        )
        speed = self._speed(EnvironmentSteps)
        table.add_row(
            "steps/s",
            f"{speed:,.0f}" if speed else "-",
            "evaluation",
            f"{number_text(self._evaluated)}{self._success}",
        )
        updates, episodes = self._of(record, TrainingSteps), self._of(record, EnvironmentEpisodes)
        table.add_row("updates", updates, "best", number_text(self._best))
        table.add_row("episodes", episodes, "elapsed", self._of(record, Hours))
        if self._final:
            table.add_row("", "", "final evaluation", self._final)
        return table

    def _losses(self) -> Table:
        """A line for each agent."""
        table = Table.grid(padding=(0, 1), expand=True)
        for name, scalars in self._learners():
            cells = [Text.assemble((f"{of} ", "dim"), value) for of, value in _shown(scalars)]
            cells += [Text()] * (MAX_SHOWN - len(cells))
            table.add_row(*([Text(name, "bold")] if name else []), *cells)
        return table

    def _line(self, record: LogRecord) -> str:
        parts = [f"{record.phase.value:<7}", f"{record.environment_steps:>10,} steps"]
        if (share := self._share(record)) is not None:
            parts.append(f"{share:4.0%}")
        if speed := self._speed(EnvironmentSteps):
            parts.append(f"{speed:,.0f} steps/s")
        parts.append(self._left(record))
        if record.training_steps:
            parts.append(f"{record.training_steps:,} updates")
        if self._rewards:
            parts.append(f"episode reward {number_text(self._episode_reward())}")
        if not math.isnan(self._evaluated):
            best = f"(best {number_text(self._best)})"
            parts.append(f"evaluation {number_text(self._evaluated)}{self._success} {best}")
        if self._final:
            parts.append(f"final evaluation {self._final}")
        for name, scalars in self._learners():
            parts += [
                f"{name} {of} {value}".lstrip()
                for of, value in _shown(scalars)
                if of.endswith("loss")
            ]
        return "  ".join(part for part in parts if part)

    def _learners(self) -> Iterator[tuple[str, Mapping[str, float]]]:
        """Every agent's newest metrics, under as much of its name as tells it from the others."""
        levels = {level for level, _ in self._learned}
        for (level, agent), scalars in self._learned.items():
            parts = [
                level if len(levels) > 1 else "",
                agent if len(levels) < len(self._learned) else "",
            ]
            yield " ".join(part for part in parts if part), scalars

    def _share(self, record: LogRecord) -> float | None:
        """The share of the run that is done; None where its length is not known."""
        return max((length.share(record) for length in self._planned), default=None)

    def _of(self, record: LogRecord, unit: type[StepUnit]) -> str:
        """The amount of a unit that is done, and the total where the run is measured in it."""
        parts = [unit.counted(record)]
        parts += [length.count for length in self._planned if type(length) is unit]
        if unit is Hours:
            return " of ".join(duration_text(3600 * hours) for hours in parts)
        return " of ".join(f"{count:,}" for count in parts)

    def _speed(self, unit: type[StepUnit]) -> float | None:
        """The recent amount of a unit per second of training; None while it is not known."""
        if len(self._progress) < 2:
            return None
        first, last = self._progress[0], self._progress[-1]
        seconds = _training_seconds(last) - _training_seconds(first)
        return (unit.counted(last) - unit.counted(first)) / seconds if seconds > 0 else None

    def _left(self, record: LogRecord) -> str:
        """The time left at the recent speed, evaluations taking the share they have had so far."""
        left = [
            seconds
            for length in self._planned
            if (seconds := self._seconds_left(length, record)) is not None
        ]
        return f"{duration_text(min(left))} left" if left else ""

    def _seconds_left(self, length: RunLength, record: LogRecord) -> float | None:
        remaining = max(0, length.count - length.counted(record))
        if isinstance(length, Hours):
            return 3600 * remaining
        speed = self._speed(type(length))
        if not speed:
            return None
        last = self._progress[-1]
        slower = max(1.0, last.wall_seconds / _training_seconds(last))
        return remaining / speed * slower

    def _episode_reward(self) -> float:
        return float(np.mean(self._rewards)) if self._rewards else math.nan


def _shown(scalars: Mapping[str, float]) -> list[tuple[str, str]]:
    """Names and values of the training metrics there is room for."""
    names = {name: name.removeprefix("train/") for name in scalars}
    chosen = [name for name, short in names.items() if short in SHOWN or short.endswith("_loss")]
    return [(names[name].replace("_", " "), f"{scalars[name]:.3g}") for name in chosen[:MAX_SHOWN]]


def _training_seconds(record: LogRecord) -> float:
    return record.scalars["time/training_seconds"]


def _success(rate: float | None) -> str:
    """The share of successes, to stand behind a reward; empty where nobody says."""
    return "" if rate is None else f", {rate:.0%} success"


def number_text(value: float) -> str:
    """A number as people read it; a dash where there is none."""
    if math.isnan(value):
        return "-"
    return f"{value:,.1f}" if abs(value) >= 10 else f"{value:.3g}"


def duration_text(seconds: float) -> str:
    """Seconds as hours, minutes and seconds: `1:02:03`, `2:03`."""
    minutes, seconds = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
