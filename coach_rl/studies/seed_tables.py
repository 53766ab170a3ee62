"""Runs that differ by their seed alone, in two tables: each of them, and what they say together."""

from collections.abc import Mapping, Sequence

import numpy as np
from rich.table import Table

from coach_rl.studies.interval_text import with_interval
from coach_rl.studies.level_figures import GOALS, levels_with_goals
from coach_rl.studies.run_groups import episodes_behind, estimate_of
from coach_rl.studies.scores import RunScores, with_failures
from coach_rl.studies.statistics import NOT_FINITE, standard_deviation
from coach_rl.telemetry.live_panel import duration_text


def seed_tables(runs: Sequence[RunScores]) -> list[Table]:
    """A table with a line for each run, and one with a line for each metric over the seeds.

    Args:
        runs: Finished runs, one or more.
    """
    runs = with_failures(runs)
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
        finals = [run.final for run in runs if metric in run.final]
        together.add_row(name, str(len(finals)), *_over_seeds(metric, finals))
    return [singly, together]


def _metrics(runs: Sequence[RunScores]) -> dict[str, str]:
    """Metrics of the final evaluations that are shown, and their names for people."""
    known = list(dict.fromkeys(metric for run in runs for metric in run.final))
    names = {"reward_mean": "mean reward", "success_rate": "success rate"}
    for level in levels_with_goals(runs):
        names[f"{level}{GOALS}"] = f"{level} reaches its goal"
    return {metric: name for metric, name in names.items() if metric in known}


def _over_seeds(metric: str, finals: Sequence[Mapping[str, float]]) -> list[str]:
    values = np.array([final[metric] for final in finals], np.float64)
    if not np.isfinite(values).all():
        return [NOT_FINITE, "", ""]
    mean, std = float(values.mean()), standard_deviation(values)
    iqm = estimate_of(metric, values, episodes=episodes_behind(metric, finals))
    interval = with_interval(iqm, lambda value: _text(metric, value))
    return [_text(metric, mean), _text(metric, std), interval]


def _text(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if metric == "reward_mean" else f"{value:.1%}"


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index else "left")
    return table
