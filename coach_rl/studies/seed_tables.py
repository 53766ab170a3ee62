"""Runs that differ by their seed alone, in two tables: each of them, and what they say together."""

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from coach_rl.core.records import FloatArray
from coach_rl.studies.level_figures import GOALS, levels_with_goals
from coach_rl.studies.scores import RunScores
from coach_rl.studies.statistics import estimate, standard_deviation
from coach_rl.telemetry.live_panel import duration_text


def seed_tables(runs: Sequence[RunScores]) -> list[Table]:
    """A table with a line for each run, and one with a line for each metric over the seeds.

    Args:
        runs: Finished runs, one or more.
    """
    metrics = _metrics(runs)
    singly = _table("Final evaluation of each seed", ["seed", *metrics.values()])
    singly.add_column("steps", justify="right")
    singly.add_column("time", justify="right")
    for run in runs:
        cells = [_text(metric, run.final.get(metric)) for metric in metrics]
        steps, time = f"{run.environment_steps:,}", duration_text(run.wall_seconds)
        singly.add_row(str(run.seed), *cells, steps, time)
    columns = ["metric", "seeds", "mean", "standard deviation", "IQM (95 % interval)"]
    together = _table(f"Over {len(runs)} seeds" if len(runs) > 1 else "Over one seed", columns)
    for metric, name in metrics.items():
        values = np.array([run.final[metric] for run in runs if metric in run.final], np.float64)
        together.add_row(name, str(len(values)), *_over_seeds(metric, values))
    return [singly, together]


def _metrics(runs: Sequence[RunScores]) -> dict[str, str]:
    """Metrics of the final evaluations that are shown, and their names for people."""
    known = list(dict.fromkeys(metric for run in runs for metric in run.final))
    names = {"reward_mean": "mean reward", "success_rate": "success rate"}
    for level in levels_with_goals(runs):
        names[f"{level}{GOALS}"] = f"{level} reaches its goal"
    return {metric: name for metric, name in names.items() if metric in known}


def _over_seeds(metric: str, values: FloatArray) -> list[str]:
    if not np.isfinite(values).all():
        return ["not finite", "", ""]
    mean, std = float(values.mean()), standard_deviation(values)
    iqm = estimate(values)
    ends = "" if iqm.low is None else f" ({_text(metric, iqm.low)} to {_text(metric, iqm.high)})"
    return [_text(metric, mean), _text(metric, std), _text(metric, iqm.value) + ends]


def _text(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if metric == "reward_mean" else f"{value:.1%}"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    return table
