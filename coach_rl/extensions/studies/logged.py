"""Curves of numbers that runs have logged while training, such as `train/entropy`.

    frame = with_logged(frame, "train/entropy")
    frame = with_logged(frame, "low/train/q_loss")          # of one level of a hierarchy

The curves of evaluations are replaced, so a frame is drawn as before.
"""

import math
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError
from coach_rl.core.records import FloatArray
from coach_rl.extensions.studies.runs import RunFrame
from coach_rl.extensions.studies.scores import Curve, counter_of, log_records

MOST_POINTS = 200
"""Points of a curve; more records are averaged over equal parts of the run."""


def with_logged(frame: RunFrame, metric: str) -> RunFrame:
    """The runs with the curve of a logged number instead of those of their evaluations.

    Args:
        frame: The runs.
        metric: Its name in the logs, with the level or the agent in front where several log it.

    Raises:
        UnknownNameError: No run has logged it.
        ConfigurationError: Several levels or agents of a run have.
        CheckpointError: A log is damaged.
    """
    rows = [
        replace(
            row,
            run=replace(
                row.run, curve=_curve(row.run.path, metric, counter_of(row.run.unit)), final={}
            ),
        )
        for row in frame.rows
    ]
    if not any(len(row.run.curve) for row in rows):
        logged = {name for row in frame.rows for name in _names(row.run.path)}
        raise UnknownNameError("metric", metric, frame.metrics | logged)
    return replace(frame, rows=tuple(rows))


def _curve(run: Path, metric: str, counter: str = "environment_steps") -> Curve:
    """The curve of a logged number over a counter; empty where the run has none."""
    points = array("d")
    origins = set()
    for record in _records(run):
        for name, value in record.get("scalars", {}).items():
            if metric in _spellings(record, name) and isinstance(value, int | float):
                origins.add(_spellings(record, name)[-1])
                step = record[counter]
                hours = record["wall_seconds"] / 3600
                points.extend((float(step), hours, float(value)))
    if len(origins) > 1:
        raise ConfigurationError(
            f"several agents of {run} log '{metric}'; give one of {', '.join(sorted(origins))}"
        )
    steps, hours, values = _averaged(np.array(points).reshape(-1, 3))
    return Curve(steps=steps.round().astype(np.int64), hours=hours, metrics={metric: values})


def _averaged(points: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Steps, hours and values, [P] each, of [n, 3] points; averaged over equal parts of the run."""
    points = points[np.isfinite(points[:, 2])]
    if not len(points):
        return points[:, 0], points[:, 1], points[:, 2]
    part = points[:, 0]
    if len(np.unique(part)) > MOST_POINTS:
        part = np.ceil(part / part.max() * MOST_POINTS)
    _, index = np.unique(part, return_inverse=True)
    counts = np.bincount(index)
    steps, hours, values = (np.bincount(index, weights=each) / counts for each in points.T)
    return steps, hours, values


def _records(run: Path) -> Iterator[Json]:
    """The records of a run's training."""
    path = run / "log.jsonl"
    for number, record in log_records(path):
        try:
            is_final = record["kind"].startswith("final_")
            if not is_final and math.isfinite(record["environment_steps"] + record["wall_seconds"]):
                yield record
        except (KeyError, TypeError, AttributeError) as error:
            raise CheckpointError(f"{path} is damaged: line {number} is no record") from error


def _spellings(record: Json, name: str) -> list[str]:
    """The names of a logged number, the whole one last."""
    level, agent = record.get("level"), record.get("agent")
    above = [f"{part}/" for part in (level, agent) if part]
    return [name, *(f"{part}{name}" for part in above), f"{''.join(above)}{name}"]


def _names(run: Path) -> set[str]:
    return {name for record in _records(run) for name in record.get("scalars", {})}
