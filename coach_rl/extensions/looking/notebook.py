"""Curves of a run in a notebook, redrawn while it lasts."""

import math
import time
from collections.abc import Iterable
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING

from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.log_records import LogRecord
from coach_rl.telemetry.figures import Figures

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_POINTS = 1_000
"""Points that a curve has at most; a curve that is full loses every second one."""
_TITLES = ("reward", "success", "losses")
"""Axes from left to right; one without curves is left out."""


class NotebookSink:
    """Draws rewards, successes and losses over the moments of a run, in the output of a cell.

        sink = NotebookSink()
        for record in graph_manager.improve():
            sink.write(record)
        sink.close()

    It is given to `run_experiment` as well, and to `watch`, for the run of another process.

    Args:
        every_seconds: Seconds between two drawings.

    Raises:
        ConfigurationError: matplotlib or IPython is not installed.
    """

    def __init__(self, *, every_seconds: float = 5.0) -> None:
        try:
            self._ipython = import_module("IPython.display")
            from matplotlib.figure import Figure as MatplotlibFigure
        except ImportError as error:
            raise ConfigurationError(
                "a NotebookSink draws in a Jupyter notebook, with IPython and matplotlib, and "
                f"{error.name} is missing; {how_to_install('plot')}; elsewhere `coach watch RUN` "
                "shows a run"
            ) from error
        self._every_seconds = every_seconds
        self._drawn_at = -math.inf
        self._curves: dict[tuple[str, str], _Curve] = {}
        """The curves, by the title of their axes and their own name."""
        self._figures = Figures()
        self._activity = ""
        self.figure: Figure = MatplotlibFigure(figsize=(12, 3), layout="constrained")
        """The newest drawing, e.g. for `figure.savefig`."""
        self._output = self._ipython.display(self._picture(), display_id=True)

    def write(self, record: LogRecord) -> None:
        self._activity = ""
        self._add_record(record)
        if time.monotonic() - self._drawn_at >= self._every_seconds:
            self._draw()

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        """Start over from the records of a run so far."""
        self._curves = {}
        self._figures = Figures()
        for record in records:
            self._add_record(record)
        self._draw()

    def show_activity(self, activity: str, *, for_seconds: float = 0.0) -> None:
        """Show what takes long, at the next drawing."""
        self._activity = activity and f"{activity}, {for_seconds:.0f} s"
        if time.monotonic() - self._drawn_at >= self._every_seconds:
            self._draw()

    def close(self) -> None:
        self._activity = ""
        self._draw()

    def _add_record(self, record: LogRecord) -> None:
        self._figures.add(record)
        steps = record.moment
        scalars = record.scalars
        match record.kind:
            case "episode":
                assert self._figures.episode_reward is not None
                self._add_point("reward", "training episodes", steps, self._figures.episode_reward)
            case "evaluation":
                self._add_point("reward", "evaluation", steps, scalars["evaluation/reward_mean"])
                if "evaluation/success_rate" in scalars:
                    self._add_point(
                        "success", "evaluation", steps, scalars["evaluation/success_rate"]
                    )
            case "level" if "level/goal_share" in scalars:
                self._add_point("success", record.level, steps, scalars["level/goal_share"])
            case "train":
                of = " ".join(part for part in (record.level, record.agent) if part)
                for name, value in scalars.items():
                    if name.endswith("_loss"):
                        short = name.removeprefix("train/").replace("_", " ")
                        self._add_point("losses", f"{of} {short}", steps, value)

    def _add_point(self, title: str, name: str, steps: int, value: float) -> None:
        self._curves.setdefault((title, name), _Curve()).add(steps, value)

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self.figure.clear()
        there = {title for title, _ in self._curves}
        titles = [title for title in _TITLES if title in there]
        for position, title in enumerate(titles, start=1):
            axes = self.figure.add_subplot(1, len(titles), position)
            self._draw_axes(axes, title)
        if self._figures.last is not None:
            last = self._figures.last
            steps = f"{last.moment:,} {last.unit.noun}"
            final = self._figures.final
            result = "" if final is None else f"final evaluation {final:,.4g}"
            parts = [steps, result, self._activity, self._figures.problems]
            self.figure.suptitle("  ".join(part for part in parts if part), fontsize="medium")
        self._output.update(self._picture())

    def _picture(self) -> object:
        """The drawing as a picture, which every notebook shows, whatever its matplotlib is."""
        file = BytesIO()
        self.figure.savefig(file, format="png")
        return self._ipython.Image(data=file.getvalue(), format="png")

    def _draw_axes(self, axes: "Axes", title: str) -> None:
        axes.set_title(title)
        assert self._figures.last is not None
        axes.set_xlabel(self._figures.last.unit.noun)
        for (of, name), curve in self._curves.items():
            if of == title:
                marker = "o" if name == "evaluation" else ""
                axes.plot(curve.steps, curve.values, label=name, marker=marker, markersize=3)
        axes.legend(fontsize="small")
        axes.grid(alpha=0.3)


class _Curve:
    """Values over steps, no more than `MOST_POINTS` of them."""

    def __init__(self) -> None:
        self.steps: list[int] = []
        self.values: list[float] = []
        self._skip = 1
        self._seen = 0
        """Number of values of which one is kept, and of those so far."""

    def add(self, steps: int, value: float) -> None:
        self._seen += 1
        if self._seen % self._skip:
            return
        self.steps.append(steps)
        self.values.append(value)
        if len(self.steps) == MOST_POINTS:
            self.steps, self.values = self.steps[1::2], self.values[1::2]
            self._skip *= 2
