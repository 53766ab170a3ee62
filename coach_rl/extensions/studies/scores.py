"""The scores of runs, read from their folders, whether they are finished or not.

for run in map(read_scores, runs_below(Path("experiments/Mujoco_PPO"))):
    print(run.seed, run.state, run.final.get("reward_mean"))

A run's folder is the only truth about it.
"""

import json
import math
import os
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np

from coach_rl.configuration.parameters_json import decode, reference
from coach_rl.configuration.strict_json import Json, read_json, require_regular_file, write_text
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.log_records import LogRecord
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.shown_text import one_line, printable, shown_level
from coach_rl.core.steps import EnvironmentSteps, TrainingSteps
from coach_rl.graph_managers.parameters import Moments
from coach_rl.runs.folder import (
    MANIFEST,
    RunFolder,
    TakenCheckpoint,
    facts_of_evaluation,
    read_manifest,
)
from coach_rl.runs.lock import Holder, holder_of
from coach_rl.runs.manifest import flat
from coach_rl.runs.shown_facts import ShowsFacts

SUCCESS = "success_rate"
_SUCCESSES = "success_"
_NOTHING = {"environment_steps": 0, "training_steps": 0, "episodes": 0, "wall_seconds": 0.0}
"""The counters of a run without a log."""
_OF_ANOTHER_SHAPE = (KeyError, TypeError, AttributeError, ValueError, OverflowError)
"""Errors of reading a document that has another shape."""

RunState = Literal["running", "done", "stopped", "pruned", "failed"]
"""The state of a run: held by a process, ended with a summary, ended by an error, or neither.

A run that was killed is `stopped`, like one stopped by a note; `pruned` if a sweep did so.
"""


_MOST = 6
"""Largest number of settings that are named."""
NOTE = "stop_note.txt"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides the numbers of a run, except its seed."""

    chosen: Mapping[str, Json] = field(default_factory=dict)
    """The values of the preset's panel by name, and those set by path."""
    resolved: Mapping[str, Json] = field(default_factory=dict)
    """All parameters by path."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A run's evaluations while training, E of them."""

    steps: IntArray
    """[E] environment steps; updates of a run from data."""
    hours: FloatArray
    """[E] hours since the run began, evaluations included."""
    metrics: Mapping[str, FloatArray]
    """[E] by name: `reward_mean`, `success_rate`, `low/goal_share`; NaN where there was none."""

    def __len__(self) -> int:
        """The number of evaluations."""
        return len(self.steps)


@dataclass(frozen=True, kw_only=True, repr=False)
class RunScores(ShowsFacts):
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
    """Moments per second of training; None before its end."""
    curve: Curve
    """Its evaluations while training."""
    final: Mapping[str, float]
    """Metrics of the evaluation at its end, by the names of the curve; empty before that."""
    final_episodes: Mapping[str, FloatArray] = field(default_factory=dict)
    """Its episodes: `reward`, `length`, `success`, ..."""
    thresholds: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Largest differences at which a goal counts as reached, one per element, by level."""
    settings: Settings = field(default_factory=Settings)
    """Settings that it was trained with."""
    code: tuple[str, ...] = ()
    """Versions of the code that it was made with; several where it was resumed by another."""
    hosts: tuple[str, ...] = ()
    """The machines that it was made on."""
    command: tuple[str, ...] = ()
    """The command line that began it; empty where it is not recorded."""
    frames_per_step: int | None = None
    """Frames of an environment step, where its environment counts frames; None elsewhere."""
    unit: type[Moments] = EnvironmentSteps
    """Unit of its moments, which curves are drawn over: updates where it learns from data."""

    @property
    def moments(self) -> int:
        """Environment steps so far, or updates of a run that learns from data."""
        counts: int = getattr(self, counter_of(self.unit))
        return counts

    @property
    def frames(self) -> int | None:
        """Frames so far; None where they are not counted."""
        per_step = self.frames_per_step
        return None if per_step is None else per_step * self.environment_steps

    def facts(self) -> Mapping[str, object]:
        """Its task, seed and state, its length, and its scores."""
        return {
            "run": self.path,
            "preset": self.preset or None,
            "task": shown_level(self.level),
            "seed": self.seed,
            "state": self.state,
            self.unit.noun: f"{self.moments:,}",
            "evaluations while training": len(self.curve.steps),
            **facts_of_evaluation(self.final),
        }

    def best(self, metric: str) -> float | None:
        """The largest value of a metric among the evaluations while training; None without any."""
        values = self._known(metric)
        return float(values.max()) if len(values) else None

    def last(self, metric: str) -> float | None:
        """A metric at the end: of the final evaluation, or of the last one while training."""
        if metric in self.final:
            return self.final[metric]
        values = self._known(metric)
        return float(values[-1]) if len(values) else None

    def _known(self, metric: str) -> FloatArray:
        """The values of a metric among the evaluations while training."""
        values = self.curve.metrics.get(metric, np.empty(0))
        return values[np.isfinite(values)]


def runs_below(folder: Path) -> list[Path]:
    """The folders of all runs in a folder, however deep, itself included, sorted by path."""
    runs = []
    for path, folders, files in os.walk(folder.expanduser()):
        if MANIFEST in files:
            runs.append(Path(path))
            folders.clear()
        folders[:] = [name for name in folders if not name.startswith(".")]
    return sorted(runs)


def required_runs(folder: Path, advice: str) -> list[Path]:
    """The folders of all runs in a folder; ConfigurationError, with the advice, without any."""
    runs = runs_below(folder)
    if not runs:
        path = folder.expanduser()
        missing = "is a file" if path.is_file() else "does not exist"
        problem = "holds no runs" if path.is_dir() else missing
        raise ConfigurationError(f"{folder} {problem}; {advice}")
    return runs


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
        parts = (manifest, *manifest.get("resumes", ()))
        counters = _NOTHING | (log.last or {})
        labels = manifest.get("job", {}).get("labels", {})
        speed = summary.get("steps_per_second")
        done = _count(counters, "environment_steps")
        unit = unit_of(manifest["parameters"])
        return RunScores(
            path=run,
            experiment=printable(manifest["name"]),
            labels={printable(name): printable(label) for name, label in labels.items()},
            preset=printable((manifest["preset"] or {}).get("name", "")),
            level=printable(str(manifest["level"])),
            seed=_count(manifest["task"], "seed"),
            created=printable(manifest["created"]),
            state=_state(folder, holder, done),
            holder=holder,
            environment_steps=done,
            training_steps=_count(counters, "training_steps"),
            episodes=_count(counters, "episodes"),
            wall_seconds=float(counters["wall_seconds"]),
            steps_per_second=None if speed is None else _number(speed),
            curve=_curve(log.evaluations, counter_of(unit)),
            final=_final(summary, log.final),
            final_episodes=_episodes(summary.get("evaluated_episodes", {})),
            thresholds=_thresholds(manifest["parameters"]),
            settings=settings_of(manifest),
            code=tuple(dict.fromkeys(map(_code, parts))),
            hosts=tuple(dict.fromkeys(filter(None, map(_host, parts)))),
            command=tuple(map(printable, manifest.get("command", ()))),
            frames_per_step=_frames_per_step(manifest["parameters"]),
            unit=unit,
        )
    except _OF_ANOTHER_SHAPE as error:
        raise CheckpointError(f"the run {run} is damaged: {_reason(error)}") from error


def unit_of(parameters: Json) -> type[Moments]:
    """The unit in which a run with these parameters counts its moments."""
    interval = parameters.get("schedule", {}).get("progress_interval", {})
    is_updates = str(interval.get("$type", "")).endswith(f":{TrainingSteps.__name__}")
    return TrainingSteps if is_updates else EnvironmentSteps


def counter_of(unit: type[Moments]) -> str:
    """The counter of a log's lines that a unit counts."""
    return "training_steps" if unit is TrainingSteps else "environment_steps"


def _frames_per_step(parameters: Json) -> int | None:
    """The `frames_per_step` of an environment's parameters; None where they have none."""
    environment = parameters.get("environment")
    has_frames = isinstance(environment, dict) and "frames_per_step" in environment
    return _count(environment, "frames_per_step") if has_frames else None


def _code(part: Json) -> str:
    """The commit that a part of a run was made with, `*` where files differed; else the version."""
    git = (part.get("git") or {}).get("coach_rl")
    if git is None:
        return printable(f"version {part.get('versions', {}).get('coach-rl', 'unknown')}")
    return printable(f"{git['commit'][:8]}{'*' if git['dirty'] else ''}")


def _host(part: Json) -> str:
    """The host of a part of a run; empty where none is recorded."""
    return printable(part.get("hardware", {}).get("host", ""))


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
    curve = run.curve
    missing = np.full(len(run.curve), math.nan)
    is_missing = np.isnan(curve.metrics.get(SUCCESS, missing))
    filled = {
        name: np.where(is_missing, 0.0, curve.metrics.get(name, missing))
        for name in sorted(names)
        if len(curve)
    }
    curve = replace(curve, metrics={**curve.metrics, **filled})
    return replace(run, curve=curve, final=failures_counted(run.final, sorted(names)))


@dataclass(frozen=True, kw_only=True)
class LaterEvaluation:
    """An evaluation of a run that `coach evaluate` has made."""

    metrics: Mapping[str, float]
    """Its metrics, named as in a curve."""
    environment_steps: int
    """Environment steps of the checkpoint."""
    is_plain: bool
    """True without other options: greedy, in the run's own environment, on the usual starts."""


def later_evaluations(run: Path) -> list[LaterEvaluation]:
    """The evaluations that were made of a run after its training, in their order.

    Raises:
        CheckpointError: One of the files is damaged.
    """
    found = []
    for path in sorted(RunFolder(run).evaluations.glob("*.json"), key=_written_at):
        document = read_json(path)
        try:
            metrics = _numbers(document["scalars"])
            for level, scalars in document.get("levels", {}).items():
                metrics |= _numbers(scalars, level)
            options = (document.get(name) for name in ("sampling", "overrides"))
            found.append(
                LaterEvaluation(
                    metrics=metrics,
                    environment_steps=_count(document, "environment_steps"),
                    is_plain=document.get("seed") is None and not any(options),
                )
            )
        except _OF_ANOTHER_SHAPE as error:
            raise CheckpointError(f"{path} is damaged: {_reason(error)}") from error
    return found


def _written_at(path: Path) -> tuple[int, str]:
    return path.stat().st_mtime_ns, path.name


@dataclass(frozen=True)
class _Log:
    evaluations: list[tuple[Json, dict[str, float]]]
    """The counters and the metrics of each, those of its levels included."""
    last: Json | None
    """The last record."""
    final: tuple[int, dict[str, float]] | None
    """The environment steps and the metrics of the last evaluation at an end; None without one."""


def _read_log(path: Path) -> _Log:
    """Evaluations and the last record."""
    evaluations: list[tuple[Json, dict[str, float]]] = []
    final: tuple[int, dict[str, float]] | None = None
    of_levels: dict[str, float] = {}
    last = b""
    for number, line in _lines(path):
        last = line
        if b"evaluation" not in line:  # spares reading most of a log
            continue
        record = _record(line, path, number)
        try:
            if record["kind"] == "level":
                of_levels |= _numbers(record["scalars"], record["level"])
            elif record["kind"] in ("evaluation", "final_evaluation"):
                metrics = {**_numbers(record["scalars"]), **of_levels}
                of_levels = {}
                if record["kind"] == "evaluation":
                    counters = {name: of for name, of in record.items() if name in _NOTHING}
                    evaluations.append((counters, metrics))
                else:
                    final = (_count(record, "environment_steps"), metrics)
        except _OF_ANOTHER_SHAPE as error:
            raise CheckpointError(f"{path} is damaged: line {number}: {_reason(error)}") from error
    return _Log(evaluations, _record(last, path, -1) if last else None, final)


def log_records(path: Path) -> Iterator[tuple[int, Json]]:
    """The records of a log with the numbers of their lines; none where there is no such file.

    Raises:
        CheckpointError: A line is no record.
    """
    for number, line in _lines(path):
        yield number, _record(line, path, number)


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a log with their numbers, from 1; one that is being written is left out."""
    if not path.exists():
        return
    require_regular_file(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                return
            yield number, line


def _record(line: bytes, path: Path, number: int) -> Json:
    try:
        record = json.loads(line, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        where = "its last line" if number < 0 else f"line {number}"
        raise CheckpointError(f"{path} is damaged: {where} is no record: {error}") from error
    if not isinstance(record, dict) or "kind" not in record:
        raise CheckpointError(f"{path} is damaged: line {number} is no record")
    return record


def _curve(evaluations: list[tuple[Json, dict[str, float]]], counter: str) -> Curve:
    names = dict.fromkeys(name for _, metrics in evaluations for name in metrics)
    return Curve(
        steps=np.array([_count(each, counter) for each, _ in evaluations], np.int64),
        hours=np.array([record["wall_seconds"] / 3600 for record, _ in evaluations], np.float64),
        metrics={
            name: np.array([metrics.get(name, math.nan) for _, metrics in evaluations], np.float64)
            for name in names
        },
    )


def _final(summary: Json, logged: tuple[int, dict[str, float]] | None) -> dict[str, float]:
    """The metrics in a summary, with those of the same evaluation that only the log has.

    Args:
        summary: The summary; empty before the run's end.
        logged: The environment steps and the metrics of the log's last evaluation at an end.
    """
    metrics = _numbers(summary.get("evaluation", {}), has_room=False)
    for level, scalars in summary.get("levels", {}).items():
        metrics |= _numbers(scalars, level, has_room=False)
    if metrics and logged is not None and summary.get("env_steps", logged[0]) == logged[0]:
        return {**logged[1], **metrics}
    return metrics


def _episodes(arrays: Json) -> dict[str, FloatArray]:
    return {
        _short(name): np.array([math.nan if isinstance(each, dict) else each for each in values])
        for name, values in arrays.items()
    }


def _numbers(
    scalars: Mapping[str, Json], level: str = "", *, has_room: bool = True
) -> dict[str, float]:
    """Scalars by their names in a curve; what is no finite number is NaN, what is None missing.

    Args:
        scalars: Numbers by name.
        level: The level that they are about; empty for all levels.
        has_room: Whether a room stands before each name, as in logs.
    """
    prefix = f"{level}/" if level else ""
    short = _short if has_room else str
    return {
        sys.intern(prefix + short(printable(name))): _number(value)  # logs have the same thousands
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


def decisive(manifest: Json) -> tuple[Json, Json, Json]:
    """The entries of a manifest that decide its run's numbers: class, parameters, task.

    Where a run is computed, which checkpoints it keeps, and where it found those of other runs is
    no part of them.
    """
    parameters = _unrecorded(manifest["parameters"])
    task = dict(manifest["task"])
    parameters.pop("checkpoints", None)
    parameters.pop("threads", None)  # the task has those of the run
    task.pop("device", None)
    return manifest["graph_manager"], parameters, task


def _unrecorded(document: Json) -> Json:
    """Parameters as JSON, without the checkpoints of other runs that are recorded in them."""
    match document:
        case {"$type": kind} if kind == reference(TakenCheckpoint):
            return None
        case dict():
            return {name: _unrecorded(part) for name, part in document.items()}
        case list():
            return [_unrecorded(part) for part in document]
    return document


def settings_of(manifest: Json) -> Settings:
    """The settings in a manifest."""
    graph_manager, parameters, task = decisive(manifest)
    task.pop("seed", None)
    resolved = {**flat(parameters), **flat(task, "task"), "graph_manager": graph_manager}
    panel = flat(manifest.get("panel") or {})
    by_path = [name for name in manifest.get("differences", {}) if name in resolved]
    chosen = {**panel, **{name: resolved[name] for name in by_path}}
    return Settings(chosen=chosen, resolved=resolved)


def differing_settings(runs: Sequence[RunScores]) -> str:
    """The settings in which runs differ, with the seeds of each value; empty where none does.

    They are named as they were given, by panel name or path, and by the paths of the resolved
    parameters where that shows no difference, as between presets or versions of the code. What a
    run of an earlier version does not have is no difference.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.settings.chosen))
    documents = [{**run.settings.resolved, **run.settings.chosen} for run in runs]
    found = _differing(names, documents, runs)
    if not found:
        resolved = [run.settings.resolved for run in runs]
        found = _differing(list(dict.fromkeys(n for of in resolved for n in of)), resolved, runs)
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def _differing(
    names: Sequence[str], documents: Sequence[Mapping[str, Json]], runs: Sequence[RunScores]
) -> list[str]:
    """A text for each name whose value differs among the documents that have it."""
    found = []
    for name in names:
        seeds: dict[str, list[int]] = {}
        for document, run in zip(documents, runs, strict=True):
            if name in document:
                value = json.dumps(document[name], sort_keys=True)
                seeds.setdefault(value, []).append(run.seed)
        if len(seeds) > 1:
            each = ", ".join(
                f"{value} with {seeds_text(sorted(set(of)))}" for value, of in seeds.items()
            )
            found.append(f"{name} {each}")
    return found


def seeds_text(seeds: Sequence[int]) -> str:
    """Seeds as text: `seed 3`, `seeds 0, 1`."""
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def write_stop_note(run: Path, why: str) -> None:
    """Make the job of a run stop.

    Args:
        run: The run's folder.
        why: The reason in a line; its first word is the state of the run, e.g. `pruned`.
    """
    write_text(run / NOTE, f"{why}\n")


def stop_note(run: Path) -> str:
    """The reason in a run's stop note; empty where there is none."""
    try:
        return one_line((run / NOTE).read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return ""


class StopOnNote:
    """A sink that stops its run, in this process, once there is a stop note."""

    def __init__(self) -> None:
        self.run: Path | None = None
        """The run's folder; None until it has one."""

    def write(self, record: LogRecord) -> None:
        """Check for the note about every thousand steps."""
        if (
            record.kind in ("progress", "evaluation")
            and self.run is not None
            and stop_note(self.run)
        ):
            signal.raise_signal(signal.SIGTERM)

    def close(self) -> None:
        """Close nothing."""
