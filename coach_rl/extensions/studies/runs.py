"""The table of runs, the score of each, and lists of runs.

frame, notes = find_runs([Path("experiments/flat"), Path("experiments/two_levels")])
scores, notes = group_scores(frame, metric="success_rate")

Seeds, the variants of a study, comparisons, pictures and reports are views of such a frame.
"""

import math
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import numpy as np

from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError
from coach_rl.core.records import Array, FloatArray, IntArray
from coach_rl.core.shown_text import printable
from coach_rl.extensions.studies.scores import (
    SUCCESS,
    RunScores,
    differing_settings,
    failures_counted,
    is_success,
    later_evaluations,
    metrics_of,
    read_scores,
    required_runs,
    runs_below,
    success_metrics,
    with_failures,
)
from coach_rl.extensions.studies.statistics import (
    CONFIDENCE,
    STATISTICS,
    Difference,
    Estimate,
    difference,
    estimate,
)
from coach_rl.runs.folder import MANIFEST

REWARD = "reward_mean"
IQM = "iqm"
_ANY_STEP = "success_any_rate"
_RATES = (SUCCESS, _ANY_STEP)
_SHARES_BY_NAME = ("option_share", "option_ended_share", "selected_share")
"""Shares of each option or level, whose name comes last: `low/option_share/0`."""
FINAL = "final"
LAST = "last"
AFTERWARDS = "afterwards"
MOMENTS = {
    FINAL: "the evaluation at a run's end",
    LAST: "the last evaluation while training",
    AFTERWARDS: "the last evaluation made by `coach evaluate` without other options",
}
"""The evaluations that can score a run, besides the one after so many environment steps."""
_ADVICE = (
    "give a run's folder, or a folder with runs in it, such as experiments/NAME (`coach runs "
    "FOLDER` lists them)"
)
DAMAGED = "damaged"
STATES = ("running", "done", "stopped", "pruned", "failed", DAMAGED)


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run in a frame."""

    group: str
    """The variant of a study, or a folder."""
    run: RunScores
    """Its seed, settings, state, and evaluations."""
    evaluation: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the evaluation that scores it; empty while there is none."""


@dataclass(frozen=True, kw_only=True)
class RunFrame:
    """The table of runs: a row for each, in groups that differ in their seeds only."""

    groups: tuple[str, ...]
    """Names of the groups, in order; a part of a frame may have none of their runs."""
    rows: tuple[Row, ...]

    @property
    def runs(self) -> tuple[RunScores, ...]:
        """The runs."""
        return tuple(row.run for row in self.rows)

    @property
    def levels(self) -> list[str]:
        """The levels of their environments."""
        return sorted({run.level for run in self.runs})

    @property
    def metrics(self) -> set[str]:
        """The metrics that any of their evaluations has."""
        return {name for row in self.rows for name in (*metrics_of(row.run), *row.evaluation)}

    def where(self, *, group: str | None = None, level: str | None = None) -> Self:
        """The rows of a group, of a level, or both."""
        kept = (
            row
            for row in self.rows
            if group in (None, row.group) and level in (None, row.run.level)
        )
        return replace(self, rows=tuple(kept))

    def scored(self, metric: str) -> "list[Scored]":
        """The finite scores of each group on each level, level by level.

        Args:
            metric: Which metric of the evaluations scores the runs.
        """
        found = []
        for level in self.levels:
            for group in self.groups:
                here = self.where(group=group, level=level).rows
                kept = [row for row in here if math.isfinite(row.evaluation.get(metric, math.nan))]
                if kept:
                    evaluations = [row.evaluation for row in kept]
                    is_at_the_end = metric == SUCCESS
                    found.append(
                        Scored(
                            group=group,
                            level=level,
                            runs=tuple(row.run for row in kept),
                            scores=np.array([of[metric] for of in evaluations], np.float64),
                            episodes=episodes_behind(metric, evaluations),
                            any_step=tuple(
                                of.get(_ANY_STEP) if is_at_the_end else None for of in evaluations
                            ),
                        )
                    )
        return found


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The scores of a group's runs on one level, one per seed."""

    group: str
    level: str
    runs: tuple[RunScores, ...]
    """The runs."""
    scores: FloatArray
    """[n], the score of each."""
    episodes: IntArray | None = None
    """[n], the episodes of which each score is the share of successes; None where the scores are
    something else, or a number is not known."""
    any_step: tuple[float | None, ...] = ()
    """[n], the share of episodes with success at any step, beside scores that are shares of success
    at the last step; None where it is not known."""


def estimate_of(
    metric: str, scores: Array, *, episodes: IntArray | None = None, statistic: str = IQM
) -> Estimate:
    """A statistic over the seeds of a group, with its interval within the metric's bounds.

    Args:
        metric: What the scores are.
        scores: [n], one per seed.
        episodes: [n], of each score, or None; see `Scored`.
        statistic: One of `STATISTICS`.
    """
    bounds = bounds_of(metric, scores)
    return estimate(scores, STATISTICS[statistic], bounds=bounds, episodes=episodes)


def difference_of(
    metric: str,
    scores: Array,
    baseline: Array,
    *,
    episodes: tuple[IntArray | None, IntArray | None] = (None, None),
    statistic: str = IQM,
    confidence: float = CONFIDENCE,
) -> Difference:
    """The difference of two groups, with its interval within what the metric allows.

    Args:
        metric: What the scores are.
        scores: [n], one per seed.
        baseline: [m], of the group it is compared with.
        episodes: [n] and [m], of each score, or None; see `Scored`.
        statistic: One of `STATISTICS`.
        confidence: The share of intervals that hold the true difference.
    """
    return difference(
        scores,
        baseline,
        STATISTICS[statistic],
        bounds=bounds_of(metric, scores, baseline),
        confidence=confidence,
        episodes=episodes,
    )


def episodes_behind(metric: str, evaluations: Sequence[Mapping[str, float]]) -> IntArray | None:
    """The episodes of which some scores are the shares of successes, [n].

    Args:
        metric: What the scores are.
        evaluations: The metrics of the evaluation of each score.

    Returns:
        None where the metric is no share of episodes, or a number of episodes is not known.
    """
    counts = [evaluation.get("episodes", math.nan) for evaluation in evaluations]
    if not is_success(metric) or not all(math.isfinite(count) and count > 0 for count in counts):
        return None
    return np.array(counts, np.int64)


def find_runs(paths: Sequence[Path]) -> tuple[RunFrame, list[str]]:
    """The frame of the runs in some folders.

    Runs of a study are grouped by variant; where several of the folders, or several studies, have
    one of this name, the folder's or the study's name stands before it. Other runs are grouped by
    the folder they were found with; where there is only one, by the folders in it.

    Args:
        paths: Runs, experiments, studies, or folders of any of them.

    Returns:
        The runs, with groups in the order of the folders, and notes on them, a line each.

    Raises:
        ConfigurationError: There are no runs.
        CheckpointError: All runs are damaged.
    """
    found: list[tuple[_Origin, RunScores]] = []
    seen: set[Path] = set()
    damaged: list[CheckpointError] = []
    full = [path.expanduser() for path in paths]
    names = _distinct_names(full)
    above = _distinct_names([path.parent if (path / MANIFEST).is_file() else path for path in full])
    for path, name, of_variants in zip(full, names, above, strict=True):
        for folder in required_runs(path, _ADVICE):
            if folder.resolve() not in seen:
                seen.add(folder.resolve())
                try:
                    run = read_scores(folder)
                except CheckpointError as error:
                    damaged.append(error)
                    continue
                variant = run.labels.get("variant")
                default = name if len(paths) > 1 else _folder_in(path, run)
                origin = _Origin(
                    name=printable(default if variant is None else variant),
                    folder=printable(name if variant is None else of_variants),
                    study=run.labels.get("study", run.labels.get("sweep", "")),
                    is_variant=variant is not None,
                )
                found.append((origin, run))
    if damaged and not found:
        raise damaged[0]
    named: dict[str, list[RunScores]] = {}
    counted = with_failures([run for _, run in found])
    groups = _group_names([origin for origin, _ in found])
    for group, run in zip(groups, counted, strict=True):
        named.setdefault(group, []).append(run)
    notes = [f"a damaged run is left out: {error}" for error in damaged]
    rows = [
        Row(group=name, run=run)
        for name, runs in named.items()
        for run in _one_per_seed(name, runs, notes)
    ]
    return RunFrame(groups=tuple(named), rows=tuple(rows)), notes


def default_metric(frame: RunFrame) -> str:
    """Success where every run that was evaluated reports it, the mean reward elsewhere."""
    has_success = [SUCCESS in metrics for run in frame.runs if (metrics := metrics_of(run))]
    return SUCCESS if has_success and all(has_success) else REWARD


def group_scores(
    frame: RunFrame, *, metric: str, at: str | int | None = FINAL
) -> tuple[list[Scored], list[str]]:
    """The score of each run that has one, by level and group.

    Args:
        frame: The runs.
        metric: Which metric scores them.
        at: Of which evaluation: one of `MOMENTS`, or that at so many environment steps; None: the
            one in the frame.

    Returns:
        Those of each level that have runs with a score, level by level, and notes, a line each.

    Raises:
        UnknownNameError: No run has this metric.
        ConfigurationError: No run has been evaluated then.
    """
    require_metric(frame, metric)
    notes: list[str] = []
    if at is None:
        found = frame.scored(metric)
    else:
        found = replace(frame, rows=tuple(_rows_at(frame, metric, at, notes))).scored(metric)
    if not found:
        raise ConfigurationError(
            f"no run has the metric {metric} {_when(at)}; unfinished runs, and levels of runs of "
            f"earlier versions, have one with --at {LAST}"
        )
    with_score = {run.path for each in found for run in each.runs}
    for level in frame.levels:
        for group in frame.groups:
            runs = frame.where(group=group, level=level).runs
            states = Counter(run.state for run in runs if run.path not in with_score)
            if states:
                counts = ", ".join(f"{count} {state}" for state, count in states.items())
                notes.append(
                    f"{group} on {level}: {states.total()} of {len(runs)} runs have no such score "
                    f"and are left out ({counts})"
                )
    return found, notes


def require_metric(frame: RunFrame, metric: str) -> None:
    """Raise `UnknownNameError` where no run has a metric."""
    known = frame.metrics
    if not known:
        raise ConfigurationError("none of the runs has been evaluated yet")
    if metric not in known:
        raise UnknownNameError("metric", metric, known)


def is_share(metric: str) -> bool:
    """True for the metrics that are shares of episodes, of sub-episodes or of decisions."""
    *above, name = metric.split("/")
    of = above[-1] if above else ""
    return name in _RATES or name.endswith("_share") or of in _SHARES_BY_NAME


def bounds_of(metric: str, *values: Array) -> tuple[float, float]:
    """The least and the greatest value that a metric can have.

    Args:
        metric: The metric.
        values: Some of its values; one outside of [0, 1] shows that it is no share.
    """
    outside = [of for of in values if (np.less(of, 0.0) | np.greater(of, 1.0)).any()]
    return (0.0, 1.0) if is_share(metric) and not outside else (-np.inf, np.inf)


def _rows_at(frame: RunFrame, metric: str, at: str | int, notes: list[str]) -> list[Row]:
    """The rows with the evaluation of a moment, and notes on differences between these."""
    if at == AFTERWARDS:
        rows = _rows_afterwards(frame, notes)
    else:
        rows = [replace(row, evaluation=_evaluation(row.run, metric, at)) for row in frame.rows]
    for level in frame.levels:
        here = [row for row in rows if row.run.level == level]
        names = success_metrics([row.run for row in here])
        names |= {name for row in here for name in row.evaluation if is_success(name)}
        rows = [
            replace(row, evaluation=failures_counted(row.evaluation, names))
            if row.run.level == level
            else row
            for row in rows
        ]
    return rows


def _rows_afterwards(frame: RunFrame, notes: list[str]) -> list[Row]:
    """The rows with the last evaluation that `coach evaluate` made without other options."""
    rows = []
    with_options = 0
    earlier = 0
    for row in frame.rows:
        made = later_evaluations(row.run.path)
        plain = [each for each in made if each.is_plain]
        with_options += made[-1:] != plain[-1:]
        earlier += any(each.environment_steps < row.run.environment_steps for each in plain[-1:])
        rows.append(replace(row, evaluation=plain[-1].metrics if plain else {}))
    if with_options:
        notes.append(
            f"of {with_options} runs the last evaluation is not taken, which was made with --seed, "
            "sampled actions or a changed environment"
        )
    if earlier:
        notes.append(f"of {earlier} runs the evaluation is of an earlier checkpoint than the last")
    played = [row.evaluation.get("episodes", math.nan) for row in rows if row.evaluation]
    counts = sorted({int(count) for count in played if math.isfinite(count)})
    if len(counts) > 1:
        notes.append(
            f"the evaluations differ in their episodes: {', '.join(f'{of:,}' for of in counts)}"
        )
    return rows


def _evaluation(run: RunScores, metric: str, at: str | int) -> Mapping[str, float]:
    """Metrics of the evaluation that scores a run; empty where there is none."""
    if at == FINAL:
        return run.final
    if at == LAST:
        (index,) = np.nonzero(np.isfinite(run.curve.metrics.get(metric, np.empty(0))))
    else:
        (index,) = np.nonzero(run.curve.steps == at)
    if not len(index):
        return {}
    values = {name: float(of[index[-1]]) for name, of in run.curve.metrics.items()}
    return {name: value for name, value in values.items() if np.isfinite(value)}


def _when(at: str | int | None) -> str:
    if at is None:
        return "in the evaluation that scores a run"
    return f"in {MOMENTS[at]}" if isinstance(at, str) else f"at step {at:,}"


def _distinct_names(paths: Sequence[Path]) -> list[str]:
    """The folders' names, with as many parents as distinguish them."""
    parts = [path.expanduser().absolute().resolve().parts for path in paths]
    for length in range(1, max(map(len, parts), default=0) + 1):
        names = ["/".join(each[-length:]) for each in parts]
        if len(set(names)) == len({tuple(each) for each in parts}):
            return names
    return [str(path) for path in paths]


def _folder_in(path: Path, run: RunScores) -> str:
    """The folder in a folder that leads to a run; the run's experiment where it is right in it."""
    inside = run.path.relative_to(path).parts
    return inside[0] if len(inside) > 1 else run.experiment


@dataclass(frozen=True, kw_only=True)
class _Origin:
    """The group of a run, before groups of one name get different ones."""

    name: str
    """Its variant, or the folder that names its group."""
    folder: str
    """The folder that it was found with."""
    study: str
    """Its study or sweep; empty where it has none."""
    is_variant: bool


def _group_names(origins: Sequence[_Origin]) -> list[str]:
    """The name of each run's group: a variant's alone, or after its folder or its study."""
    alike: dict[str, set[tuple[str, str]]] = {}
    for each in origins:
        alike.setdefault(each.name, set()).add((each.folder, each.study))
    names = []
    for each in origins:
        places = alike[each.name]
        has_folders = len({folder for folder, _ in places}) > 1
        of_folder = {study for folder, study in places if folder == each.folder}
        has_studies = len(of_folder) > 1
        parts = [each.folder] if has_folders else []
        parts += [each.study] if has_studies and each.study else []
        names.append("/".join([*parts, each.name]) if each.is_variant else each.name)
    return names


def _begun(run: RunScores) -> float:
    """The time at which a run was begun, in seconds; the earliest of all where it is unknown."""
    try:
        return datetime.fromisoformat(run.created).timestamp()
    except (ValueError, OverflowError):
        return -math.inf


def _one_per_seed(name: str, runs: list[RunScores], notes: list[str]) -> tuple[RunScores, ...]:
    """The runs without those of a seed that is there twice, which would count one result twice.

    A finished one stays, then the newest.
    """
    best: dict[tuple[str, int], RunScores] = {}
    for run in sorted(runs, key=lambda run: (run.state == "done", _begun(run), str(run.path))):
        best[run.level, run.seed] = run
    if len(best) < len(runs):
        again = sorted({run.seed for run in runs if best[run.level, run.seed] is not run})
        notes.append(
            f"{name} has several runs of the seeds {', '.join(map(str, again))}; the newest "
            "finished one of each counts"
        )
    presets = sorted({run.preset for run in runs})
    if len(presets) > 1:
        notes.append(f"{name} holds runs of different presets: {', '.join(presets)}")
    for level in sorted({run.level for run in runs}):
        settings = differing_settings([run for run in runs if run.level == level])
        if settings:
            notes.append(f"{name} holds runs with different settings: {settings}")
    return tuple(best[key] for key in sorted(best))


@dataclass(frozen=True, kw_only=True)
class ListedRun:
    """A run of the list."""

    path: Path
    """Its folder."""
    size: int
    """Bytes on the disk, checkpoints included."""
    age_seconds: float
    """Seconds since it was begun."""
    scores: RunScores | None
    """Its numbers; None where its folder is damaged."""
    damage: str = ""
    """The damage of the folder, in a line; empty if there is none."""

    @property
    def state(self) -> str:
        """One of `STATES`."""
        return DAMAGED if self.scores is None else self.scores.state

    def best(self, metric: str) -> float | None:
        """The best evaluation while training."""
        return None if self.scores is None else self.scores.best(metric)

    def last(self, metric: str) -> float | None:
        """The final evaluation, or the last one so far."""
        return None if self.scores is None else self.scores.last(metric)


def list_runs(folder: Path) -> list[ListedRun]:
    """All runs in a folder, however deep, sorted by path."""
    runs = [listed_run(path) for path in runs_below(folder)]
    counted = iter(with_failures([run.scores for run in runs if run.scores is not None]))
    return [run if run.scores is None else replace(run, scores=next(counted)) for run in runs]


def listed_run(path: Path) -> ListedRun:
    """A run of the list; damage is noted, not raised."""
    size = _size(path)
    try:
        scores = read_scores(path)
        begun = datetime.fromisoformat(scores.created)
    except (CheckpointError, ValueError) as error:
        begun = datetime.fromtimestamp((path / MANIFEST).lstat().st_mtime, UTC)
        return ListedRun(
            path=path, size=size, age_seconds=_since(begun), scores=None, damage=str(error)
        )
    return ListedRun(path=path, size=size, age_seconds=_since(begun), scores=scores)


def selected(
    runs: Sequence[ListedRun],
    *,
    states: Sequence[str] = (),
    preset: str = "",
    level: str = "",
    study: str = "",
) -> list[ListedRun]:
    """The runs that match all filters; an empty filter matches any.

    Args:
        runs: Of which.
        states: One of these.
        preset: The name of their preset contains it, in any case.
        level: The level of their environment contains it, in any case.
        study: The study that they belong to.
    """
    return [
        run
        for run in runs
        if (not states or run.state in states)
        and (not preset or _contains(run, lambda scores: scores.preset, preset))
        and (not level or _contains(run, lambda scores: scores.level, level))
        and (not study or (run.scores and run.scores.labels.get("study") == study))
    ]


def sort_keys(metric: str = REWARD) -> dict[str, Callable[[ListedRun], tuple[bool, float | str]]]:
    """The keys that a list can be sorted by, each ascending; runs without a value come last.

    Args:
        metric: Of evaluations.
    """

    def number(value: float | None, sign: float = 1.0) -> tuple[bool, float]:
        return (value is None, 0.0 if value is None else sign * value)

    return {
        "path": lambda run: (False, str(run.path)),
        "age": lambda run: number(run.age_seconds),
        "state": lambda run: (False, run.state),
        "steps": lambda run: number(run.scores and run.scores.moments, -1.0),
        "best": lambda run: number(run.best(metric), -1.0),
        "last": lambda run: number(run.last(metric), -1.0),
        "size": lambda run: number(run.size, -1.0),
    }


def _contains(run: ListedRun, text: Callable[[RunScores], str], word: str) -> bool:
    return run.scores is not None and word.lower() in text(run.scores).lower()


def _since(begun: datetime) -> float:
    return (datetime.now(UTC) - begun.astimezone(UTC)).total_seconds()


def _size(folder: Path) -> int:
    """Bytes of all files; one that several names share counts once."""
    sizes: dict[tuple[int, int], int] = {}
    for path, _, names in os.walk(folder):
        for name in names:
            try:
                info = os.lstat(os.path.join(path, name))
            except OSError:  # a checkpoint that was thinned out meanwhile
                continue
            sizes[info.st_dev, info.st_ino] = info.st_size
    return sum(sizes.values())
