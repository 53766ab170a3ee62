"""The levels of a hierarchy in numbers, from the evaluations at the end of runs."""

from collections.abc import Sequence

import numpy as np

from coach_rl.core.records import FloatArray
from coach_rl.studies.scores import RunScores

GOALS = "/goal_share"
"""The end of the name of a level's share of goals that it reaches."""
_MEANS = {
    "distance at the end": ("distance", 1, ".3g"),
    "places": ("graph_places", 1, ",.0f"),
    "edges": ("graph_edges", 1, ",.0f"),
    "ms of planning a decision": ("planning_seconds", 1000, ".3g"),
}
"""Metrics of a level with their factor and format, by the heads of their columns."""


def levels_with_goals(runs: Sequence[RunScores]) -> list[str]:
    """The levels that have goals, top first; one without reaches none and is nowhere near one."""
    names = dict.fromkeys(name for run in runs for name in run.final)
    levels = [name.removesuffix(GOALS) for name in names if name.endswith(GOALS)]
    return [
        level
        for level in levels
        if _values(runs, f"{level}{GOALS}").any() or _values(runs, f"{level}/distance").any()
    ]


def level_figures(levels: Sequence[tuple[Sequence[RunScores], str]]) -> dict[str, list[str]]:
    """Columns about levels, to stand beside the shares of goals that they reach.

    Args:
        levels: Runs and the name of a level of theirs, for each line of a table.

    Returns:
        The cells of each column, by its head: means over the runs, empty for a level without such
        a number. Columns that would be empty are left out.
    """
    columns = {"reached within": [_threshold(*each) for each in levels]}
    for head, (metric, factor, shape) in _MEANS.items():
        found = [_values(runs, f"{level}/{metric}") for runs, level in levels]
        columns[head] = [format(factor * of.mean(), shape) if of.size else "" for of in found]
    return {head: cells for head, cells in columns.items() if any(cells)}


def _values(runs: Sequence[RunScores], metric: str) -> FloatArray:
    """A metric of the runs that have it."""
    return np.array([run.final[metric] for run in runs if metric in run.final], np.float64)


def _threshold(runs: Sequence[RunScores], level: str) -> str:
    """The level's threshold; the least and the greatest where elements or runs differ in it."""
    found = [value for run in runs for value in run.thresholds.get(level, ())]
    if not found:
        return ""
    low, high = min(found), max(found)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"
