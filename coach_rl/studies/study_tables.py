"""A study's report in Markdown: what its variants came to, and what is missing."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from coach_rl.core.records import FloatArray, IntArray
from coach_rl.studies.interval_text import difference_text, with_interval
from coach_rl.studies.level_figures import GOALS, level_figures, levels_with_goals
from coach_rl.studies.run_groups import difference_of, episodes_behind, estimate_of
from coach_rl.studies.scores import RunScores
from coach_rl.studies.statistics import (
    NOT_FINITE,
    TOO_FEW,
    probability_of_improvement,
    standard_deviation,
)
from coach_rl.studies.study import Study, Variant
from coach_rl.studies.study_runs import StudyRun

TAIL = 20
"""Evaluations at the end of a run that are averaged, where it has twice as many or more."""
MARKS = 6
"""Evaluations of a run that its curve is shown at, where no published curve says otherwise."""
ANY, PUBLISHED = "success at any step", "published"
"""Columns of some studies: success at any step of an episode, and scores of others."""


@dataclass(frozen=True)
class _Group:
    """A variant's finished runs that have a score."""

    variant: Variant
    runs: list[StudyRun]
    numbers: list[RunScores]
    """Their evaluations and counters."""
    scores: FloatArray
    """[seeds]"""
    episodes: IntArray | None
    """[seeds], the episodes of which each score is the share of successes; None where the scores
    are something else."""
    at_any_step: list[float | None]
    """Shares of episodes with success at any step; see `StudyRun.success_at_any_step`."""


def report(study: Study, runs: Sequence[StudyRun], *, brief: bool = False) -> str:
    """The tables of a study, as Markdown.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
        brief: Whether to leave out curves, and what each run came to.
    """
    groups = [_group(study, variant, runs) for variant in study.variants]
    present = [group for group in groups if group.runs]
    parts = [study.question]
    if present:
        parts += [_scores(study, present), _levels(present), _comparison(study, groups)]
        parts += [] if brief else [_curves(study, present), _singly(study, present)]
    parts += [_versions(present), _missing(study, runs)]
    return "\n\n".join(part for part in parts if part)


def _group(study: Study, variant: Variant, runs: Sequence[StudyRun]) -> _Group:
    found = []
    for run in runs:
        score = run.score(study) if run.variant == variant.name else None
        if score is not None and math.isfinite(score) and run.scores is not None:
            found.append((run, run.scores, score))
    return _Group(
        variant,
        [run for run, _, _ in found],
        [numbers for _, numbers, _ in found],
        np.array([score for _, _, score in found], np.float64),
        episodes_behind(study.metric, [run.evaluation(study) for run, _, _ in found]),
        [run.success_at_any_step(study) for run, _, _ in found],
    )


def _scores(study: Study, groups: Sequence[_Group]) -> str:
    """A line for each variant; the columns are explained in docs/studies.md."""
    shown = _shape(study.metric)
    head = ["variant", "steps", "seeds", "mean", "median", "IQM (95 %)", ANY, "best point"]
    head += ["at step", "tail", "hours", "updates", "steps/s", PUBLISHED]
    rows = []
    for group in groups:
        steps, values = _common_curve(study.metric, group)
        best = int(np.nanargmax(values.mean(axis=0))) if values.size else None
        hours = np.mean([run.wall_seconds / 3600 for run in group.numbers])
        speeds = [run.steps_per_second for run in group.numbers if run.steps_per_second]
        others = group.variant.published
        any_step = [share for share in group.at_any_step if share is not None]
        row = [
            group.variant.name,
            _range([run.environment_steps for run in group.numbers]),
            str(len(group.runs)),
            _mean(group.scores, shown),
            shown(float(np.median(group.scores))),
            with_interval(estimate_of(study.metric, group.scores, episodes=group.episodes), shown),
            _mean(any_step, _percent) if any_step else "",
            "" if best is None else _mean(values[:, best], shown),
            "" if best is None else f"{steps[best]:,}",
            _mean(values[:, -TAIL:].mean(axis=1), shown) if len(steps) >= 2 * TAIL else "",
            _hours(float(hours)),
            _range([run.training_steps for run in group.numbers]),
            f"{np.median(speeds):,.0f}" if speeds else "",
            "" if others is None else f"{shown(others.score)} ({others.source})",
        ]
        rows.append(row)
    return _table(*filled(head, rows, ANY, PUBLISHED), left=1)


def _levels(groups: Sequence[_Group]) -> str:
    """The levels of hierarchies in the evaluation at the end, a line for each."""
    rows, levels = [], []
    for group in groups:
        for level in levels_with_goals(group.numbers):
            name = f"{level}{GOALS}"
            shares = [run.final[name] for run in group.numbers if name in run.final]
            rows.append([group.variant.name, level, str(len(shares)), _mean(shares, _percent)])
            levels.append((group.numbers, level))
    figures = level_figures(levels)
    head = ["variant", "level", "seeds", "sub-episodes that reach their goal", *figures]
    lines = [[*row, *cells] for row, *cells in zip(rows, *figures.values(), strict=True)]
    return _table(head, lines, left=2) if rows else ""


def _comparison(study: Study, groups: Sequence[_Group]) -> str:
    """Differences from the baseline, of the variants on its level."""
    if study.baseline is None:
        return ""
    baseline = next(group for group in groups if group.variant.name == study.baseline)
    if not baseline.runs:
        return f"The baseline, {study.baseline}, has no finished run to compare with."
    shown, rows = _shape(study.metric), []
    for group in groups:
        is_other = group is not baseline and bool(group.runs)
        if not is_other or group.numbers[0].level != baseline.numbers[0].level:
            continue
        found = difference_of(
            study.metric,
            group.scores,
            baseline.scores,
            episodes=(group.episodes, baseline.episodes),
        )
        chance = probability_of_improvement([(group.scores, baseline.scores)])
        if found.reason in (TOO_FEW, NOT_FINITE):
            verdict = found.reason
        elif not found.is_clear:
            verdict = "no clear difference"
        else:
            verdict = "higher" if found.value > 0 else "lower"
        interval = f"{shown(found.value)} ({difference_text(found, shown)})"
        rows.append([group.variant.name, interval, with_interval(chance, _percent)])
        rows[-1] += ["" if found.detectable is None else shown(found.detectable), verdict]
    head = [f"against {study.baseline}", "difference of IQMs (95 %)"]
    head += ["chance that a run scores higher (95 %)", "detectable difference", "verdict"]
    return _table(head, rows, left=1) if rows else ""


def _curves(study: Study, groups: Sequence[_Group]) -> str:
    """Means over seeds on the way, beside published ones; a table for each set of steps."""
    shown = _shape(study.metric)
    tables: dict[tuple[int, ...], list[list[str]]] = {}
    for group in groups:
        steps, values = _common_curve(study.metric, group)
        published = group.variant.published
        curve = {} if published is None else published.curve
        marks = [step for step in steps.tolist() if step in curve] or _spread(steps.tolist())
        if not marks:
            continue
        rows = tables.setdefault(tuple(marks), [])
        means = [_mean(values[:, steps == mark].ravel(), shown) for mark in marks]
        rows.append([group.variant.name, str(len(group.runs)), *means])
        if published is not None and marks[0] in curve:
            theirs = [f"{shown(curve[mark][0])} ± {shown(curve[mark][1])}" for mark in marks]
            rows.append([f"{group.variant.name}: {published.source}", "", *theirs])
    return "\n\n".join(
        _table(["after steps", "seeds", *(f"{mark:,}" for mark in marks)], rows, left=1)
        for marks, rows in tables.items()
    )


def _spread(steps: list[int]) -> list[int]:
    """A few of a curve's steps, evenly spread, the last among them."""
    count = min(MARKS, len(steps))
    return [steps[len(steps) * part // count - 1] for part in range(1, count + 1)]


def _singly(study: Study, groups: Sequence[_Group]) -> str:
    """Each run."""
    shown, rows = _shape(study.metric), []
    for group in groups:
        for run, numbers, score, any_step in zip(
            group.runs, group.numbers, group.scores, group.at_any_step, strict=True
        ):
            values = numbers.curve.metrics.get(study.metric, np.empty(0))
            row = [group.variant.name, str(run.seed), shown(float(score))]
            row += ["" if any_step is None else _percent(any_step)]
            if np.isfinite(values).any():
                best = int(np.nanargmax(values))
                row += [f"{shown(float(values[best]))} ({numbers.curve.steps[best]:,})"]
                tail = shown(float(np.nanmean(values[-TAIL:]))) if len(values) >= 2 * TAIL else ""
                row += [shown(float(values[-1])), tail]
            else:
                row += ["", "", ""]
            row += [f"{numbers.environment_steps:,}", _hours(numbers.wall_seconds / 3600)]
            rows.append([*row, f"{numbers.training_steps:,}"])
    head = ["variant", "seed", "score", ANY, "best evaluation (at)", "last", "tail"]
    return _table(*filled([*head, "steps", "hours", "updates"], rows, ANY), left=1)


def _versions(groups: Sequence[_Group]) -> str:
    """Say where the runs of a variant were made with different versions of the code."""
    lines = version_lines([run for group in groups for run in group.runs])
    if not lines:
        return ""
    head = "Made with different versions of the code (commits; `*`: with files changed since):"
    return "\n".join([head, "", *(f"- {line}" for line in lines)])


def version_lines(runs: Sequence[StudyRun]) -> list[str]:
    """The versions of the code of each variant whose runs have several, a line each."""
    lines = []
    for variant in dict.fromkeys(run.variant for run in runs):
        own = [run for run in runs if run.variant == variant and run.code]
        codes = {run.seed: ", ".join(run.code) for run in own}
        if len({*codes.values()}) > 1 or any(len(run.code) > 1 for run in own):
            each = "; ".join(
                f"{code}: {_seeds([seed for seed, of in codes.items() if of == code])}"
                for code in dict.fromkeys(codes.values())
            )
            lines.append(f"{variant}: {each}")
    return lines


def _missing(study: Study, runs: Sequence[StudyRun]) -> str:
    """Say which runs are missing, and which have no score."""
    lines = missing_lines(study, runs)
    if not lines:
        return ""
    count = sum(why_missing(study, run) is not None for run in runs)
    head = f"Missing: {count} of {len(runs)} runs."
    return "\n".join([head, "", *(f"- {line}" for line in lines)])


def why_missing(study: Study, run: StudyRun) -> str | None:
    """The reason why a run has no score, in words; None where it has one."""
    if run.score(study) is not None:
        return None
    if run.scores is None:
        return "not begun"
    if not run.is_done:
        return run.scores.state
    if study.episodes is not None:
        return f"not evaluated over {study.episodes} episodes"
    return f"done, without {study.metric}"


def missing_lines(study: Study, runs: Sequence[StudyRun]) -> list[str]:
    """The runs without a score and why they have none, a line for each variant and reason."""
    reasons: dict[tuple[str, str], list[int]] = {}
    for run in runs:
        why = why_missing(study, run)
        if why is not None:
            reasons.setdefault((run.variant, why), []).append(run.seed)
    return [f"{variant}: {_seeds(seeds)} {why}" for (variant, why), seeds in reasons.items()]


def _common_curve(metric: str, group: _Group) -> tuple[IntArray, FloatArray]:
    """A metric at the evaluations that all runs of a variant have, [E] steps, [seeds, E]."""
    curves = [run.curve for run in group.numbers if metric in run.curve.metrics]
    if len(curves) < len(group.numbers):
        return np.empty(0, np.int64), np.empty((0, 0))
    steps = curves[0].steps
    for curve in curves[1:]:
        steps = np.intersect1d(steps, curve.steps)
    values = [curve.metrics[metric][np.isin(curve.steps, steps)] for curve in curves]
    return steps, np.array(values)


def _shape(metric: str) -> Callable[[float], str]:
    """The format of a metric's values: rates as percentages."""
    return _percent if metric.endswith(("_rate", "_share")) else _number


def _percent(value: float) -> str:
    return f"{value:.1%}".replace(".0%", "%").replace("%", " %")


def _number(value: float) -> str:
    return f"{value:,.1f}"


def _hours(hours: float) -> str:
    return f"{hours:,.2f}" if hours >= 0.1 else f"{hours:.1g}"


def _mean(values: Sequence[float] | FloatArray, shown: Callable[[float], str]) -> str:
    """Mean and standard deviation over seeds."""
    spread = standard_deviation(np.asarray(values))
    mean = shown(float(np.mean(values)))
    return mean if spread is None else f"{mean} ± {shown(spread)}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _seeds(seeds: Sequence[int]) -> str:
    return f"seed{'s' if len(seeds) > 1 else ''} {', '.join(map(str, seeds))}"


def filled(
    head: Sequence[str], rows: Sequence[Sequence[str]], *optional: str
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """A table's head and rows without those optional columns that are empty in all rows."""
    columns = zip(head, *rows, strict=True)
    kept = [column for column in columns if column[0] not in optional or any(column[1:])]
    first, *others = zip(*kept, strict=True)
    return first, others


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A Markdown table whose first `left` columns are aligned to the left."""

    def lines() -> Iterator[Sequence[str]]:
        yield head
        yield ["---" if column < left else "---:" for column in range(len(head))]
        yield from rows

    return "\n".join(f"| {' | '.join(line)} |" for line in lines())
