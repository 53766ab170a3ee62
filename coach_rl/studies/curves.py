"""Curves of groups of runs: a statistic over seeds at each evaluation, with its intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from coach_rl.core.records import FloatArray, IntArray
from coach_rl.studies.run_groups import bounds_of
from coach_rl.studies.scores import RunScores
from coach_rl.studies.statistics import Statistic, band

Axis = Literal["steps", "hours"]

_POINTS_OF_HOURS = 100


@dataclass(frozen=True, kw_only=True)
class GroupCurve:
    """A group's curve on one level, P points long."""

    where: FloatArray
    """[P] environment steps or hours."""
    value: FloatArray
    """[P] the statistic over the seeds that have come so far."""
    low: FloatArray
    """[P] lower ends of its intervals; NaN where there are none."""
    high: FloatArray
    """[P] upper ends."""
    seeds: IntArray
    """[P] seeds that have come so far."""
    each: FloatArray
    """[P, n] the value of each seed; NaN before its first evaluation and after its last."""


def group_curve(
    runs: Sequence[RunScores], *, metric: str, axis: Axis, statistic: Statistic
) -> GroupCurve | None:
    """The curve of a group; None where no run has the metric.

    Each run counts from its first evaluation to its last, with straight lines in between, so runs
    that evaluate at different times can be put together.

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
        where = np.linspace(float(first), float(last), _POINTS_OF_HOURS)
    values = np.stack(
        [np.interp(where, *line, left=np.nan, right=np.nan) for line in lines], axis=-1
    )  # [P, n]
    present = np.isfinite(values)
    value, low, high = (np.full(len(where), np.nan) for _ in range(3))
    for mask in np.unique(present, axis=0):  # the points that the same runs have come to
        at = (present == mask).all(axis=-1)
        if mask.any():
            found = band(values[at][:, mask], statistic, bounds=bounds_of(metric))
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
