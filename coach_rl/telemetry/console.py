"""A run as people watch it: a live panel on a terminal, plain lines elsewhere."""

import time
from collections import deque

import numpy as np
from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from coach_rl.telemetry.records import LogRecord

REFRESH_SECONDS = 0.25
PLAIN_SECONDS = 10.0
RECENT_EPISODES = 100
LOSSES = 4
"""Training metrics shown at a time; the files have all."""


class ConsoleSink:
    """Shows phase, progress with the time left, speed, rewards and losses.

    On a terminal a panel that refreshes four times a second; elsewhere, or with `plain`, a line at
    phase changes and evaluations and about every ten seconds in between.

    Args:
        planned_steps: Environment steps of the whole run; None leaves the bar without an end.
        console: Where to; None for standard output.
        plain: Lines even on a terminal.
    """

    def __init__(
        self,
        *,
        planned_steps: int | None = None,
        console: Console | None = None,
        plain: bool = False,
    ) -> None:
        self._console = console or Console()
        self._planned = planned_steps
        self._live: Live | None = None
        self._last: LogRecord | None = None
        """The newest record; None before the first."""
        self._plain = plain or not self._console.is_terminal
        self._rewards: deque[float] = deque(maxlen=RECENT_EPISODES)
        self._speeds: deque[tuple[float, int]] = deque(maxlen=20)
        self._evaluated: float | None = None
        self._best: float | None = None
        self._losses: dict[str, float] = {}
        self._shown = 0.0
        self._progress = Progress(
            TextColumn("[bold]{task.fields[phase]:<7}"),
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[left]}"),
            TimeElapsedColumn(),
            console=self._console,
            expand=True,
        )
        self._task = self._progress.add_task("", total=planned_steps, phase="", left="")

    def plan(self, planned_steps: int) -> None:
        """Say how many environment steps the run has in all, once that is known."""
        self._planned = planned_steps
        self._progress.update(self._task, total=planned_steps)

    def write(self, record: LogRecord) -> None:
        """Take in a record; shows it when it is time to."""
        self._take_in(record)
        self._last = record
        now = time.monotonic()
        if self._plain:
            important = record.kind in ("phase", "evaluation")
            if important or now - self._shown >= PLAIN_SECONDS:
                self._shown = now
                self._console.print(self._line(record), highlight=False, soft_wrap=True)
        elif now - self._shown >= REFRESH_SECONDS:
            self._shown = now
            self._refresh(record)

    def close(self) -> None:
        """Leave the newest numbers standing and give the terminal back."""
        if self._live is not None:
            assert self._last is not None
            self._refresh(self._last)
            self._live.stop()
            self._live = None

    def _take_in(self, record: LogRecord) -> None:
        scalars = record.scalars
        match record.kind:
            case "episode":
                self._rewards.append(scalars["episode/reward"])
            case "progress":
                self._speeds.append((scalars["time/training_seconds"], record.environment_steps))
            case "evaluation":
                self._evaluated = scalars["evaluation/reward_mean"]
                best = self._evaluated if self._best is None else self._best
                self._best = max(best, self._evaluated)
            case "train":
                shown = ("policy_loss", "value_loss", "entropy", "approx_kl")
                self._losses = {
                    name.removeprefix("train/"): value
                    for name, value in scalars.items()
                    if name.removeprefix("train/") in shown
                }

    def _refresh(self, record: LogRecord) -> None:
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, transient=False)
            self._live.start()
        self._progress.update(
            self._task,
            completed=record.environment_steps,
            phase=record.phase.value,
            left=self._left(record),
        )
        self._live.update(Group(self._progress, self._numbers(record)), refresh=True)

    def _numbers(self, record: LogRecord) -> Table:
        table = Table.grid(padding=(0, 2), expand=True)
        for _ in range(4):
            table.add_column(justify="left", ratio=1)
        planned = f" / {self._planned:,}" if self._planned else ""
        cells = {
            "steps": f"{record.environment_steps:,}{planned}",
            "steps/s": _number(self._speed(), ",.0f"),
            "updates": f"{record.training_steps:,}",
            "episodes": f"{record.episodes:,}",
            "episode reward": _number(self._episode_reward(), ",.1f"),
            "evaluation": _number(self._evaluated, ",.1f"),
            "best": _number(self._best, ",.1f"),
        }
        cells |= {
            name.replace("_", " "): _number(value, ".3g")
            for name, value in list(self._losses.items())[:LOSSES]
        }
        pairs = [f"[dim]{name}[/dim]\n{value}" for name, value in cells.items()]
        for begin in range(0, len(pairs), 4):
            table.add_row(*pairs[begin : begin + 4])
        return table

    def _line(self, record: LogRecord) -> str:
        parts = [f"{record.phase.value:<7}", f"{record.environment_steps:>10,} steps"]
        if self._planned:
            parts.append(f"{record.environment_steps / self._planned:4.0%}")
        if (speed := self._speed()) is not None:
            parts += [f"{speed:,.0f} steps/s", self._left(record)]
        if record.training_steps:
            parts.append(f"{record.training_steps:,} updates")
        if (reward := self._episode_reward()) is not None:
            parts.append(f"episode reward {reward:,.1f}")
        if self._evaluated is not None:
            parts.append(f"evaluation {self._evaluated:,.1f} (best {self._best:,.1f})")
        parts += [
            f"{name.replace('_', ' ')} {value:.3g}"
            for name, value in self._losses.items()
            if name.endswith("loss")
        ]
        return "  ".join(part for part in parts if part)

    def _speed(self) -> float | None:
        if len(self._speeds) < 2:
            return None
        (begin, before), (end, after) = self._speeds[0], self._speeds[-1]
        return (after - before) / (end - begin) if end > begin else None

    def _episode_reward(self) -> float | None:
        return float(np.mean(self._rewards)) if self._rewards else None

    def _left(self, record: LogRecord) -> str:
        speed = self._speed()
        if not speed or not self._planned:
            return ""
        seconds = int(max(0, self._planned - record.environment_steps) / speed)
        minutes, seconds = divmod(seconds, 60)
        hours, minutes = divmod(minutes, 60)
        return (
            f"{hours}:{minutes:02}:{seconds:02} left" if hours else f"{minutes}:{seconds:02} left"
        )


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)
