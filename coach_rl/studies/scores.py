"""The scores of runs, read from their folders, whether they are finished or not.

for run in map(read_scores, runs_below(Path("experiments/Mujoco_PPO"))):
    print(run.seed, run.state, run.final.get("reward_mean"))

A run's folder is the only truth about it. Folders of earlier versions are read as well.
"""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coach_rl.configuration.parameters_json import decode
from coach_rl.configuration.strict_json import Json, read_json, require_regular_file
from coach_rl.core.errors import CheckpointError
from coach_rl.core.level_name import shown_level
from coach_rl.core.printable_text import printable
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.runs.folder import MANIFEST, RunFolder, read_manifest
from coach_rl.runs.lock import Holder, holder_of
from coach_rl.studies.settings_compared import Settings, settings_of
from coach_rl.studies.stop_note import stop_note

SUCCESS = "success_rate"
_SUCCESSES = "success_"
_NOTHING = {"environment_steps": 0, "training_steps": 0, "episodes": 0, "wall_seconds": 0.0}
"""The counters of a run without a log."""
_OF_ANOTHER_SHAPE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)
"""Errors of reading a document that has another shape."""

RunState = Literal["running", "done", "stopped", "pruned", "failed"]
"""The state of a run: held by a process, ended with a summary, ended by an error, or neither.

A run that was killed is `stopped`, like one that was asked to stop; `pruned` if a sweep did so.
"""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A run's evaluations while training, E of them."""

    steps: IntArray
    """[E] environment steps."""
    hours: FloatArray
    """[E] hours since the run began, evaluations included."""
    metrics: Mapping[str, FloatArray]
    """[E] by name: `reward_mean`, `success_rate`, `low/goal_share`; NaN where there was none."""

    def __len__(self) -> int:
        """The number of evaluations."""
        return len(self.steps)


@dataclass(frozen=True, kw_only=True)
class RunScores:
    """A run in numbers."""

    path: Path
    """Its folder."""
    experiment: str
    """The experiment's name, usually that of the folder above."""
    labels: Mapping[str, str]
    """The purpose of the run: `study`, `variant`; empty for a run on its own."""
    preset: str
    """The preset's name; empty where it was made in a program."""
    level: str
    """The level of its environment (the task)."""
    seed: int
    created: str
    """The time at which it was begun, ISO 8601."""
    state: RunState
    holder: Holder | None
    """The process that holds it; None where none does."""
    environment_steps: int
    """Environment steps so far."""
    training_steps: int
    """Gradient updates so far."""
    episodes: int
    """Training episodes so far."""
    wall_seconds: float
    """Seconds so far."""
    steps_per_second: float | None
    """Environment steps per second of training; None before its end."""
    curve: Curve
    """Its evaluations while training."""
    final: Mapping[str, float]
    """Metrics of the evaluation at its end, by the names of the curve; empty before that.

    Those of the levels of a hierarchy (`low/goal_share`) are missing in early runs."""
    final_episodes: Mapping[str, FloatArray] = field(default_factory=dict)
    """Its episodes: `reward`, `length`, `success`, ..."""
    thresholds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Largest differences at which a goal counts as reached, one per element, by level."""
    settings: Settings = field(default_factory=Settings)
    """Settings that it was trained with."""

    def best(self, metric: str, *, smallest: bool = False) -> float | None:
        """The best value of a metric among the evaluations while training; None without any."""
        values = self.curve.metrics.get(metric, np.empty(0))
        values = values[np.isfinite(values)]
        if not len(values):
            return None
        return float(values.min() if smallest else values.max())

    def last(self, metric: str) -> float | None:
        """A metric at the end: of the final evaluation, or of the last one while training."""
        if metric in self.final:
            return self.final[metric]
        values = self.curve.metrics.get(metric, np.empty(0))
        values = values[np.isfinite(values)]
        return float(values[-1]) if len(values) else None


def runs_below(folder: Path) -> list[Path]:
    """The folders of all runs in a folder, however deep, itself included, sorted by path."""
    runs = []
    for path, folders, files in os.walk(folder.expanduser()):
        if MANIFEST in files:
            runs.append(Path(path))
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(runs)


def read_scores(run: Path) -> RunScores:
    """Read a run's folder.

    Raises:
        CheckpointError: Its manifest, summary or log is damaged.
    """
    folder = RunFolder(run)
    manifest = read_manifest(folder)
    holder = holder_of(run)  # before the log, which a run that ends now completes
    log = _read_log(run / "log.jsonl")
    summary = read_json(folder.summary) if folder.summary.exists() else {}
    try:
        counters, labels = _NOTHING | (log.last or {}), manifest.get("job", {}).get("labels", {})
        speed, done = summary.get("steps_per_second"), _count(counters, "environment_steps")
        return RunScores(
            path=run,
            experiment=printable(manifest["name"]),
            labels={printable(name): printable(label) for name, label in labels.items()},
            preset=printable((manifest["preset"] or {}).get("name", "")),
            level=printable(_level(manifest)),
            seed=_count(manifest["task"], "seed"),
            created=printable(manifest["created"]),
            state=_state(folder, holder, done),
            holder=holder,
            environment_steps=done,
            training_steps=_count(counters, "training_steps"),
            episodes=_count(counters, "episodes"),
            wall_seconds=float(counters["wall_seconds"]),
            steps_per_second=None if speed is None else _number(speed),
            curve=_curve(log.evaluations),
            final=_final(summary),
            final_episodes=_episodes(summary.get("evaluated_episodes", {})),
            thresholds=_thresholds(manifest["parameters"]),
            settings=settings_of(manifest),
        )
    except _OF_ANOTHER_SHAPE as error:
        raise CheckpointError(f"the run {run} is damaged: {_reason(error)}") from error


def is_success(metric: str) -> bool:
    """True for the shares of an evaluation's episodes with success, at the end or at any step."""
    return metric.startswith(_SUCCESSES)


def metrics_of(run: RunScores) -> set[str]:
    """The metrics that any of a run's evaluations has."""
    return {*run.curve.metrics, *run.final}


def success_metrics(runs: Iterable[RunScores]) -> set[str]:
    """The success metrics that any of some runs on the same level reports."""
    return {name for run in runs for name in metrics_of(run) if is_success(name)}


def failures_counted(metrics: Mapping[str, float], names: Iterable[str]) -> Mapping[str, float]:
    """An evaluation's metrics with success 0 where it reports none, as many environments do.

    Args:
        metrics: Of the evaluation; empty where there was none, which stays so.
        names: The success metrics that are reported on this level; none where it has no success.
    """
    if not metrics or SUCCESS in metrics:
        return metrics
    return {**metrics, **dict.fromkeys(names, 0.0)}


def with_failures(runs: Sequence[RunScores]) -> list[RunScores]:
    """Runs with success 0 in the evaluations that report none, where another on its level does.

    An environment may report success only when there is one, so a run, or the beginning of one,
    without success has no such metric. Runs on levels on which none reports it stay as they are.
    """
    levels: dict[str, list[RunScores]] = {}
    for run in runs:
        levels.setdefault(run.level, []).append(run)
    names = {level: success_metrics(own) for level, own in levels.items()}
    return [_with_failures(run, names[run.level]) for run in runs]


def _with_failures(run: RunScores, names: set[str]) -> RunScores:
    curve, missing = run.curve, np.full(len(run.curve), math.nan)
    is_missing = np.isnan(curve.metrics.get(SUCCESS, missing))
    filled = {
        name: np.where(is_missing, 0.0, curve.metrics.get(name, missing))
        for name in sorted(names)
        if len(curve)
    }
    curve = replace(curve, metrics={**curve.metrics, **filled})
    return replace(run, curve=curve, final=failures_counted(run.final, sorted(names)))


def later_evaluations(run: Path) -> list[dict[str, float]]:
    """Metrics of the evaluations that were made of a run afterwards, by `coach evaluate`.

    They are named as in a curve, with `environment_steps` of the checkpoint besides.

    Raises:
        CheckpointError: One of the files is damaged.
    """
    found = []
    for path in sorted(RunFolder(run).evaluations.glob("*.json")):
        document = read_json(path)
        try:
            metrics = _numbers(document["scalars"])
            for level, scalars in document.get("levels", {}).items():
                metrics |= _numbers(scalars, level)
            steps = _count(document, "environment_steps")
            found.append({**metrics, "environment_steps": steps})
        except _OF_ANOTHER_SHAPE as error:
            raise CheckpointError(f"{path} is damaged: {_reason(error)}") from error
    return found


@dataclass(frozen=True)
class _Log:
    evaluations: list[tuple[Json, dict[str, float]]]
    """The record and the metrics of each, those of its levels included."""
    last: Json | None
    """The last record."""


def _read_log(path: Path) -> _Log:
    """Evaluations and the last record; a line that is being written is left out."""
    evaluations: list[tuple[Json, dict[str, float]]] = []
    of_levels: dict[str, float] = {}
    last = b""
    if not path.exists():
        return _Log([], None)
    require_regular_file(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                break
            last = line
            if b"evaluation" not in line:  # spares reading most of a log
                continue
            record = _record(line, path, number)
            try:
                if record["kind"] == "level":
                    of_levels |= _numbers(record["scalars"], record["level"])
                elif record["kind"] == "evaluation":
                    evaluations.append((record, {**_numbers(record["scalars"]), **of_levels}))
                    of_levels = {}
            except _OF_ANOTHER_SHAPE as error:
                raise CheckpointError(
                    f"{path} is damaged: line {number}: {_reason(error)}"
                ) from error
    return _Log(evaluations, _record(last, path, -1) if last else None)


def _record(line: bytes, path: Path, number: int) -> Json:
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        where = "its last line" if number < 0 else f"line {number}"
        raise CheckpointError(f"{path} is damaged: {where} is no record: {error}") from error
    if not isinstance(record, dict) or "kind" not in record:
        raise CheckpointError(f"{path} is damaged: line {number} is no record")
    return record


def _curve(evaluations: list[tuple[Json, dict[str, float]]]) -> Curve:
    names = dict.fromkeys(name for _, metrics in evaluations for name in metrics)
    return Curve(
        steps=np.array([_count(each, "environment_steps") for each, _ in evaluations], np.int64),
        hours=np.array([record["wall_seconds"] / 3600 for record, _ in evaluations], np.float64),
        metrics={
            name: np.array([metrics.get(name, math.nan) for _, metrics in evaluations], np.float64)
            for name in names
        },
    )


def _final(summary: Json) -> dict[str, float]:
    metrics = _numbers(summary.get("evaluation", {}))
    for level, scalars in summary.get("levels", {}).items():
        metrics |= _numbers(scalars, level)
    return metrics


def _episodes(arrays: Json) -> dict[str, FloatArray]:
    return {
        _short(name): np.array([math.nan if isinstance(each, dict) else each for each in values])
        for name, values in arrays.items()
    }


def _numbers(scalars: Mapping[str, Json], level: str = "") -> dict[str, float]:
    """Scalars by their names in a curve; what is no finite number is NaN, what is None missing."""
    prefix = f"{level}/" if level else ""
    return {
        prefix + _short(printable(name)): _number(value)
        for name, value in scalars.items()
        if isinstance(value, int | float | dict)
    }


def _number(value: Json) -> float:
    """A finite number, or NaN."""
    number = math.nan if isinstance(value, dict) else float(value)
    return number if math.isfinite(number) else math.nan


def _count(document: Json, key: str) -> int:
    """A count in a document of a run.

    Raises:
        ValueError: It is no whole number from 0 to 2**63 - 1.
    """
    count = document[key]
    if type(count) is not int or not 0 <= count < 2**63:
        raise ValueError(f"'{key}' is no whole number from 0 to 2**63 - 1")
    return count


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is no number of JSON")


def _reason(error: Exception) -> str:
    """The words of an error of reading a document that has another shape."""
    return f"it has no {error}" if isinstance(error, KeyError) else str(error)


def _short(name: str) -> str:
    """A metric's name without its room."""
    return name.partition("/")[2] or name


def _level(manifest: Json) -> str:
    if "level" in manifest:
        return str(manifest["level"])
    return shown_level(manifest["parameters"]["environment"]["level"])  # of an earlier version


def _thresholds(parameters: Json) -> dict[str, tuple[float, ...]]:
    """The thresholds of goals by level; flat experiments and options have none."""
    levels = parameters.get("levels", parameters.get("stack", ()))
    goals = {level["name"]: level.get("goal_space") or {} for level in levels}
    return {name: tuple(decode(of["threshold"])) for name, of in goals.items() if "threshold" in of}


def _state(folder: RunFolder, holder: Holder | None, environment_steps: int) -> RunState:
    if holder is not None:
        return "running"
    if folder.summary.exists():
        return "done"
    faults = folder.path.glob("faults/step_*.txt")
    at = [int(path.stem.removeprefix("step_")) for path in faults]
    if at and max(at) >= environment_steps:
        return "failed"
    return "pruned" if stop_note(folder.path).startswith("pruned") else "stopped"
