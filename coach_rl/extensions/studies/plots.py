"""Pictures of groups of runs: curves, probabilities of improvement, profiles, levels.

    plots = Plots(frame, metric="success_rate", axis="steps", statistic="iqm")
    plots.write(Path("plots"), scored=scored, comparisons=comparisons)

The colours are those of Okabe and Ito, which the colour-blind can distinguish.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from coach_rl.configuration.file_writing import replacing
from coach_rl.configuration.strict_json import write_text
from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.records import Array, FloatArray, IntArray
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.studies.comparison import Comparison, comparison_table, score_table
from coach_rl.extensions.studies.runs import RunFrame, Scored, bounds_of, estimate_of
from coach_rl.extensions.studies.scores import RunScores
from coach_rl.extensions.studies.statistics import STATISTICS, Statistic, band, performance_profile
from coach_rl.telemetry.tables import csv_text, markdown, without_tags, written

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#A6761D")
DASHES = ("-", "--", "-.", ":")
"""Lines of groups beyond the colours."""
FORMATS = ("png", "svg")

_PANEL = (4.6, 3.3)
"""Inches of one panel."""
_COLUMNS = 3
_SEEDS_OF_A_BAND = 5
"""Seeds of a curve with a band; of fewer, whose intervals are very wide, each seed is drawn."""
_LETTERS_IN_AN_INCH = 13
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "coach_rl",
    "savefig.dpi": 110,
}
_OF_LEVELS = "/goal_share"
_NAMES = {"iqm": "interquartile mean", "mean": "mean"}
_UNITS = {
    "reward_mean": "reward of an episode",
    "success_rate": "share of episodes that end in success",
    "length_mean": "steps of an episode",
}


Axis = Literal["steps", "hours"]

_POINTS_OF_HOURS = 100


@dataclass(frozen=True, kw_only=True)
class GroupCurve:
    """A group's curve on one level, P points long."""

    where: FloatArray
    """[P] environment steps or hours."""
    value: FloatArray
    """[P] the statistic over the seeds that have reached the point."""
    low: FloatArray
    """[P] lower ends of its intervals; NaN where there are none."""
    high: FloatArray
    """[P] upper ends."""
    seeds: IntArray
    """[P] seeds that have reached the point."""
    each: FloatArray
    """[P, n] the value of each seed; NaN before its first evaluation and after its last."""


@dataclass(frozen=True, kw_only=True)
class Plots:
    """Pictures of the same groups of runs."""

    frame: RunFrame
    metric: str
    axis: Axis = "steps"
    statistic: str = "iqm"
    least_width: float = 5.6
    """Inches of a picture with one panel; the title needs them."""

    def write(
        self,
        folder: Path,
        *,
        scored: Sequence[Scored],
        comparisons: Sequence[Comparison],
        notes: Sequence[str] = (),
    ) -> list[Path]:
        """Write all that there is to draw, as PNG and SVG, with the numbers as CSV and Markdown.

        Args:
            folder: Where to; files of the same names are replaced.
            scored: The score of each run; empty where none is known.
            comparisons: With the baseline; empty where there is nothing to compare.
            notes: What a reader should know.

        Returns:
            The files.

        Raises:
            ConfigurationError: matplotlib is not installed, or the folder cannot be written.
        """
        with drawing():
            pictures = self.pictures(scored, comparisons)
            try:
                folder.mkdir(parents=True, exist_ok=True)
                files = [
                    file
                    for name, figure in pictures.items()
                    for file in _save(figure, folder, name)
                ]
                files += self._write_tables(folder, scored)
                page = folder / "plots.md"
                write_text(page, self._page(list(pictures), scored, comparisons, notes))
            except OSError as error:
                raise ConfigurationError(
                    f"cannot write plots to {folder}: {error.strerror}; choose another folder with "
                    "--to"
                ) from error
        return [*files, page]

    def pictures(
        self, scored: Sequence[Scored], comparisons: Sequence[Comparison]
    ) -> "dict[str, Figure]":
        """All that there is to draw, by name; call it, and save them, while `drawing`."""
        figures = {
            "curves": self.curves(self.metric),
            "seeds": self.seeds(scored),
            **{f"level_{name}": self.curves(metric) for name, metric in self.hierarchy_metrics},
            "profiles": self.profiles(scored),
            "improvement": self.improvement(comparisons),
        }
        return {name: figure for name, figure in figures.items() if figure is not None}

    def curves(self, metric: str) -> "Figure | None":
        """The curves of a metric, a panel per environment; None where no run has it."""
        found = {
            level: own for level in self.frame.levels if (own := self._curves_on(level, metric))
        }
        if not found:
            return None

        def draw(axes: "Axes", level: str) -> None:
            for name, curve in found[level].items():
                self._draw_curve(axes, name, curve)
            axes.set_title(level)
            axes.set_xlabel(self._axis_label(level))
            axes.set_ylabel(_label(metric))
            axes.set_xlim(left=0)
            _limit(axes, metric, list(found[level].values()))
            if self.axis == "steps":
                axes.xaxis.set_major_formatter(_thousands)
                self._add_frames(axes, level)

        counts = {int(curve.seeds.max()) for own in found.values() for curve in own.values()}
        spread = [
            text
            for text, is_drawn in (
                ("thin lines: seeds", min(counts) < _SEEDS_OF_A_BAND),
                ("band: 95 % interval", max(counts) >= _SEEDS_OF_A_BAND),
            )
            if is_drawn
        ]
        separator = ", " if len(spread) == 1 else "\n"  # both are too wide for one panel
        title = f"{metric}: {_NAMES[self.statistic]} over seeds{separator}{', '.join(spread)}"
        return self._panels(list(found), draw, title)

    def _axis_label(self, level: str) -> str:
        units = {run.unit.noun for run in self.frame.runs if run.level == level}
        return "hours" if self.axis == "hours" else " or ".join(sorted(units))

    def _add_frames(self, axes: "Axes", level: str) -> None:
        """Add an axis with frames above that of steps, where all runs on a level count as many."""
        runs = [run for run in self.frame.runs if run.level == level]
        counted = {run.frames_per_step if run.unit is EnvironmentSteps else None for run in runs}
        if len(counted) == 1 and (frames := counted.pop()) is not None:
            both = (lambda steps: steps * frames, lambda shown: shown / frames)
            above = axes.secondary_xaxis("top", functions=both)
            above.set_xlabel("frames")
            above.xaxis.set_major_formatter(_thousands)

    def seeds(self, scored: Sequence[Scored]) -> "Figure | None":
        """The score of each seed, beside their statistic; None where there are no scores."""
        if not scored:
            return None
        names = self.frame.groups

        def draw(axes: "Axes", level: str) -> None:
            here = [each for each in scored if each.level == level]
            for row, each in enumerate(here):
                colour = COLOURS[names.index(each.group) % len(COLOURS)]
                found = estimate_of(self.metric, each.scores, statistic=self.statistic)
                if found.low is not None and found.high is not None:
                    ends = [found.low, found.high]
                    axes.plot(ends, [row, row], color=colour, linewidth=5, alpha=0.25)
                axes.plot([found.value] * 2, [row - 0.3, row + 0.3], color=colour, linewidth=2)
                axes.scatter(each.scores, _apart(each.scores, row), 22, color=colour, alpha=0.8)
            axes.set_yticks(
                range(len(here)), [f"{each.group} ({len(each.scores)})" for each in here]
            )
            axes.set_ylim(len(here) - 0.4, -0.6)
            axes.grid(visible=False, axis="y")
            axes.set_title(level)
            axes.set_xlabel(_label(self.metric))
            low, high = bounds_of(self.metric, *(each.scores for each in here))
            if np.isfinite(high):
                axes.set_xlim(low - 0.03, high + 0.03)

        title = f"{self.metric}: a dot for each seed, {_NAMES[self.statistic]}, bar: 95 % interval"
        return self._panels(list(dict.fromkeys(each.level for each in scored)), draw, title)

    def profiles(self, scored: Sequence[Scored]) -> "Figure | None":
        """The share of seeds above each score; None where there are no scores."""
        if not scored:
            return None
        levels = list(dict.fromkeys(each.level for each in scored))

        def draw(axes: "Axes", level: str) -> None:
            here = [each for each in scored if each.level == level]
            every = np.concatenate([each.scores for each in here])
            margin = 0.05 * (np.ptp(every) or abs(every[0]) or 1.0)
            least, most = bounds_of(self.metric, every)
            ends = max(least, every.min() - margin), min(most, every.max() + margin)
            at = np.linspace(*ends, 400)
            for each in here:
                colour, dash = self._style_of(each.group)
                share, low, high = performance_profile(each.scores, at)
                label = f"{each.group} ({len(each.scores)})"
                axes.step(at, share, dash, color=colour, label=label, where="post")
                axes.fill_between(at, low, high, color=colour, alpha=0.12, linewidth=0, step="post")
            axes.set_title(level)
            axes.set_xlabel(f"{_label(self.metric)}, τ")
            axes.set_ylabel("seeds that score above τ")
            axes.set_ylim(-0.03, 1.03)

        drawn = [performance_profile(each.scores, each.scores)[1] for each in scored]
        band = ", band: 95 % interval" if np.isfinite(np.concatenate(drawn)).any() else ""
        title = f"{self.metric}: performance profiles{band}"
        return self._panels(levels, draw, title)

    def improvement(self, comparisons: Sequence[Comparison]) -> "Figure | None":
        """The probability that a run scores higher than one of the baseline; None without any."""
        from matplotlib.figure import Figure

        if not comparisons:
            return None
        size = (self.least_width + 0.8, 1.3 + 0.42 * len(comparisons))
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.subplots()
        several = len({each.level for each in comparisons}) > 1
        for row, each in enumerate(comparisons):
            colour, _ = self._style_of(each.group)
            chance = each.improvement
            if chance.low is not None and chance.high is not None:
                axes.plot(
                    [chance.low, chance.high], [row, row], color=colour, linewidth=5, alpha=0.4
                )
            axes.plot(chance.value, row, "o", color=colour)
        names = [f"{each.group}, {each.level}" if several else each.group for each in comparisons]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(-0.02, 1.02)
        axes.axvline(0.5, color="black", linewidth=0.8)
        axes.set_xlabel(f"probability of a higher {self.metric} than {comparisons[0].baseline}")
        axes.set_title("Probability of improvement, bar: 95 % interval", loc="left")
        return figure

    @property
    def hierarchy_metrics(self) -> list[tuple[str, str]]:
        """Names of the levels of hierarchies, and the metrics of the goals that they reach."""
        metrics = {
            metric: None
            for run in self.frame.runs
            for metric in run.curve.metrics
            if metric.endswith(_OF_LEVELS)
        }
        return [(each.removesuffix(_OF_LEVELS), each) for each in metrics if each != self.metric]

    def _curves_on(self, level: str, metric: str) -> dict[str, GroupCurve]:
        statistic = STATISTICS[self.statistic]
        found = {
            group: group_curve(
                self.frame.where(group=group, level=level).runs,
                metric=metric,
                axis=self.axis,
                statistic=statistic,
            )
            for group in self.frame.groups
        }
        return {name: curve for name, curve in found.items() if curve is not None}

    def _draw_curve(self, axes: "Axes", name: str, curve: GroupCurve) -> None:
        """Draw a line, thin where some of the seeds have not arrived, and its band or its seeds."""
        colour, dash = self._style_of(name)
        most = int(curve.seeds.max())
        seeds = f"{most} seed" if most == 1 else f"{most} seeds"
        whole = np.where(curve.seeds == most, curve.value, np.nan)
        few = len(curve.where) <= 30
        axes.plot(curve.where, curve.value, dash, color=colour, linewidth=0.8, alpha=0.6)
        axes.plot(
            curve.where, whole, dash, color=colour, linewidth=1.8, label=f"{name} ({seeds})",
            marker="o" if few else None, markersize=3,
        )  # fmt: skip
        _draw_points_alone(axes, curve.where, curve.value, colour)
        if most < _SEEDS_OF_A_BAND:
            axes.plot(curve.where, curve.each, color=colour, linewidth=0.7, alpha=0.45)
            for values in curve.each.T:
                _draw_points_alone(axes, curve.where, values, colour)
        else:
            axes.fill_between(
                curve.where, curve.low, curve.high, color=colour, alpha=0.15, linewidth=0
            )

    def _style_of(self, name: str) -> tuple[str, str]:
        """The colour and the dashes of a group."""
        index = self.frame.groups.index(name)
        return COLOURS[index % len(COLOURS)], DASHES[index // len(COLOURS) % len(DASHES)]

    def _panels(
        self, names: Sequence[str], draw: "Callable[[Axes, str], None]", title: str
    ) -> "Figure":
        """A figure with a panel for each name and one legend below."""
        from matplotlib.figure import Figure

        columns = min(_COLUMNS, len(names))
        rows = -(-len(names) // columns)
        width = max(_PANEL[0] * columns, self.least_width)
        longest = max(map(len, self.frame.groups)) + len("      (10 seeds)")
        side_by_side = max(1, int(width * _LETTERS_IN_AN_INCH / longest))
        lines = -(-len(self.frame.groups) // side_by_side)
        size = (width, _PANEL[1] * rows + 0.4 + 0.2 * lines)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.subplots(rows, columns, squeeze=False)
        labels: dict[str, Any] = {}
        for axes, name in zip(grid.flat, names, strict=False):
            draw(axes, name)
            for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
                labels.setdefault(label, handle)
        for axes in list(grid.flat)[len(names) :]:
            axes.set_axis_off()
        figure.suptitle(title, fontsize=10)
        if labels:
            figure.legend(
                list(labels.values()), list(labels), loc="outside lower center", ncols=side_by_side
            )
        return figure

    def _write_tables(self, folder: Path, scored: Sequence[Scored]) -> list[Path]:
        """The numbers of the curves and of each run."""
        curves = folder / "curves.csv"
        runs = folder / "runs.csv"
        header = ("metric", "level", "group", self.axis, "seeds", self.statistic, "low", "high")
        rows = [
            (metric, level, name, *numbers)
            for metric in (self.metric, *(metric for _, metric in self.hierarchy_metrics))
            for level in self.frame.levels
            for name, curve in self._curves_on(level, metric).items()
            for numbers in zip(
                curve.where.astype(np.int64 if self.axis == "steps" else np.float64).tolist(),
                curve.seeds.tolist(),
                *(_cells(part) for part in (curve.value, curve.low, curve.high)),
                strict=True,
            )
        ]
        write_text(curves, csv_text(written(header, rows)))
        columns = ("group", "level", "seed", "state", "environment_steps", self.metric, "path")
        lines = [
            (each.group, run.level, run.seed, run.state, run.environment_steps, score, run.path)
            for each in scored
            for run, score in zip(each.runs, each.scores.tolist(), strict=True)
        ]
        write_text(runs, csv_text(written(columns, lines)))
        return [curves, runs]

    def _page(
        self,
        pictures: Sequence[str],
        scored: Sequence[Scored],
        comparisons: Sequence[Comparison],
        notes: Sequence[str],
    ) -> str:
        """The page with all tables and pictures."""
        parts = [f"# {self.metric}"]
        if scored:
            parts.append(markdown(score_table(scored, metric=self.metric)))
        if comparisons:
            parts.append(markdown(comparison_table(comparisons)))
            parts += [f"On {each.level}: {each.verdict()}." for each in comparisons]
        parts += [f"Note: {note}." for note in notes]
        parts += [f"![{name}]({name}.png)" for name in pictures]
        return without_tags("\n\n".join(parts) + "\n")


@contextmanager
def drawing() -> Iterator[None]:
    """The style of all pictures, while entered.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    require_matplotlib()
    import matplotlib as mpl

    with mpl.rc_context(_STYLE):
        yield


def require_matplotlib() -> None:
    """Raise `ConfigurationError` where matplotlib is not installed; load it for files.

    Jupyter names a backend for what its cells start, which another environment may lack.
    """
    if "matplotlib" not in sys.modules:
        os.environ["MPLBACKEND"] = "agg"
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ConfigurationError(
            f"plots need matplotlib; {how_to_install('plot')}; `coach compare` works without"
        ) from error


def _save(figure: "Figure", folder: Path, name: str) -> list[Path]:
    """Write a picture in every format, each whole or not at all."""
    files = []
    for ending in FORMATS:
        path = folder / f"{name.replace('/', '_')}.{ending}"
        metadata = {"Date": None} if ending == "svg" else {}
        with replacing(path) as unfinished:
            figure.savefig(unfinished, format=ending, metadata=metadata)
        files.append(path)
    return files


def _apart(scores: FloatArray, row: int) -> FloatArray:
    """Heights of dots around a row, so that those of equal scores don't hide each other."""
    order = np.argsort(np.argsort(scores, kind="stable"))
    return np.asarray(row + 0.12 * (order % 3 - 1))


def _cells(values: Array) -> list[float | str]:
    """Numbers as text; empty if missing."""
    return ["" if value != value else value for value in values.tolist()]


def _label(metric: str) -> str:
    level, slash, _ = metric.rpartition(_OF_LEVELS)
    if slash:
        return f"share of its goals that {level} reaches"
    return _UNITS.get(metric, metric)


def _limit(axes: "Axes", metric: str, curves: Sequence[GroupCurve]) -> None:
    """Limit an axis to what the metric can be, or to the lines: few seeds have very wide bands."""
    low, high = bounds_of(metric, *(curve.each for curve in curves))
    margin = 0.03
    if not np.isfinite(high):
        values = [
            curve.each.ravel() if curve.seeds.max() < _SEEDS_OF_A_BAND else curve.value
            for curve in curves
        ]
        low, high = (float(end(np.concatenate(values))) for end in (np.nanmin, np.nanmax))
        margin = 0.25 * ((high - low) or abs(high) or 1.0)
    axes.set_ylim(low - margin, high + margin)


def _draw_points_alone(axes: "Axes", where: FloatArray, values: FloatArray, colour: str) -> None:
    """Draw the values, [P], between two that are missing, which a line doesn't show."""
    known = np.pad(np.isfinite(values), 1)
    alone = known[1:-1] & ~known[:-2] & ~known[2:]
    if alone.any():
        axes.plot(where[alone], values[alone], "o", color=colour, markersize=3)


def _thousands(steps: float, _position: float) -> str:
    if steps >= 1e6:
        return f"{steps / 1e6:g}M"
    return f"{steps / 1e3:g}k" if steps >= 1e3 else f"{steps:g}"


def group_curve(
    runs: Sequence[RunScores], *, metric: str, axis: Axis, statistic: Statistic
) -> GroupCurve | None:
    """The curve of a group; None where no run has the metric.

    Each run counts from its first evaluation to its last, with straight lines in between, so runs
    that evaluate at different times can be put together. Points of hours are evenly spread, and
    those of each run's first and last evaluation.

    Args:
        runs: Those of a group on one level.
        metric: Of their evaluations.
        axis: What it is drawn against.
        statistic: Over seeds.
    """
    lines = [line for run in runs if len((line := _line(run, metric, axis))[0])]
    if not lines:
        return None
    if axis == "steps":
        where = np.unique(np.concatenate([line[0] for line in lines]))
    else:  # no two runs are equally fast
        first, last = min(line[0][0] for line in lines), max(line[0][-1] for line in lines)
        grid = np.linspace(float(first), float(last), _POINTS_OF_HOURS)
        where = np.unique([*grid, *(line[0][end] for line in lines for end in (0, -1))])
    values = np.stack(
        [np.interp(where, *line, left=np.nan, right=np.nan) for line in lines], axis=-1
    )  # [P, n]
    present = np.isfinite(values)
    bounds = bounds_of(metric, values)
    value, low, high = (np.full(len(where), np.nan) for _ in range(3))
    for mask in np.unique(present, axis=0):  # the points that the same runs have reached
        at = (present == mask).all(axis=-1)
        if mask.any():
            found = band(values[at][:, mask], statistic, bounds=bounds)
            value[at], low[at], high[at] = found
    return GroupCurve(
        where=where, value=value, low=low, high=high, seeds=present.sum(axis=-1), each=values
    )


def _line(run: RunScores, metric: str, axis: Axis) -> tuple[FloatArray, FloatArray]:
    """A run's evaluations that have the metric, against steps or hours, [E] each."""
    values = run.curve.metrics.get(metric, np.empty(0))
    known = np.isfinite(values)
    where = run.curve.steps if axis == "steps" else run.curve.hours
    return where[: len(values)][known].astype(np.float64), values[known]
