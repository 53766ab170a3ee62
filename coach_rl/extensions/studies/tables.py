"""Tables of studies and of seeds: scores of groups of runs, their levels, and missing runs."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from coach_rl.configuration.strict_json import write_text
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.extensions.studies.comparison import Comparison, possible_comparisons
from coach_rl.extensions.studies.reference_scores import normalised_score
from coach_rl.extensions.studies.runs import Scored, episodes_behind, estimate_of, is_share
from coach_rl.extensions.studies.scores import RunScores, seeds_text, with_failures
from coach_rl.extensions.studies.statistics import (
    NOT_FINITE,
    TOO_FEW,
    difference_text,
    standard_deviation,
    with_interval,
)
from coach_rl.extensions.studies.study import Published, Study
from coach_rl.extensions.studies.study_runs import StudyRun, study_frame
from coach_rl.telemetry.console import duration_text
from coach_rl.telemetry.tables import Column, Table, markdown, table, written

TAIL = 20
"""Evaluations at the end of a run that are averaged, where it has twice as many or more."""
MARKS = 6
"""Evaluations of a run that its curve is shown at, without a published curve."""
ANY = "success at any step"
PUBLISHED = "published"
"""Columns of some studies: success at any step of an episode, and scores of others."""
GOALS = "/goal_share"
"""The end of the name of a level's share of goals that it reaches."""

END = "<!-- /study -->"
"""End of a block that a report writes into a page, between it and `mark_of` the study.

The second line of a block has the number of runs that its tables are about, so that they aren't
replaced by those of fewer where the others are not at hand.
"""

Shown = Callable[[float], str]


def report(study: Study, runs: Sequence[StudyRun], *, brief: bool = False) -> str:
    """The tables of a study, as Markdown.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
        brief: Whether to leave out curves, and the scores of each run.
    """
    names = [variant.name for variant in study.variants]
    groups = study_frame(study, runs).scored(study.metric)
    groups.sort(key=lambda each: names.index(each.group))
    parts = [study.question]
    if groups:
        parts += [_scores(study, groups), _levels(groups), _comparison(study, groups)]
        parts += [] if brief else [_curves(study, groups), _singly(study, groups)]
    scored = {run.path for group in groups for run in group.runs}
    versions = version_lines([run for run in runs if run.scores and run.scores.path in scored])
    head = "Made with different versions of the code (commits; `*`: with files changed since):"
    parts.append(_listed(head, versions))
    missing = sum(why_missing(study, run) is not None for run in runs)
    parts.append(_listed(f"Missing: {missing} of {len(runs)} runs.", missing_lines(study, runs)))
    return "\n\n".join(part for part in parts if part)


def _scores(study: Study, groups: Sequence[Scored]) -> str:
    """A row for each variant; the columns are explained in docs/studies.md."""
    shown = _shape(study.metric)
    head = ["variant", "steps", "seeds", "mean", "median", "IQM (95 %)", ANY, "best point"]
    head += ["at step", "tail", "hours", "updates", "steps/s", PUBLISHED]
    rows = []
    for group in groups:
        steps, values = _common_curve(study.metric, group.runs)
        best = _best(values)
        hours = np.mean([run.wall_seconds / 3600 for run in group.runs])
        speeds = [run.steps_per_second for run in group.runs if run.steps_per_second]
        others = _published(study, group.group)
        any_step = [share for share in group.any_step if share is not None]
        row = [
            group.group,
            _range([run.moments for run in group.runs]),
            len(group.runs),
            _mean(group.scores, shown),
            shown(float(np.median(group.scores))),
            with_interval(estimate_of(study.metric, group.scores, episodes=group.episodes), shown),
            _mean(any_step, _percent) if any_step else "",
            "" if best is None else _mean(values[:, best], shown),
            "" if best is None else f"{steps[best]:,}",
            _mean(values[:, -TAIL:].mean(axis=1), shown) if len(steps) >= 2 * TAIL else "",
            _hours(float(hours)),
            _range([run.training_steps for run in group.runs]),
            f"{np.median(speeds):,.0f}" if speeds else "",
            "" if others is None else f"{shown(others.score)} ({others.source})",
        ]
        rows.append(row)
    return markdown(written(head, rows, texts=1, optional=(ANY, PUBLISHED)))


def _best(values: FloatArray) -> int | None:
    """The evaluation with the largest mean over seeds, of [seeds, E]; None without a finite one."""
    means = values.mean(axis=0) if values.size else np.empty(0)
    is_finite = np.isfinite(means)
    return int(np.argmax(np.where(is_finite, means, -math.inf))) if is_finite.any() else None


@dataclass(frozen=True)
class GroupLevel:
    """A level of a hierarchy, in the final evaluations of a group of runs."""

    group: Scored
    name: str

    @property
    def metric(self) -> str:
        return f"{self.name}{GOALS}"

    @property
    def shares(self) -> FloatArray:
        """The share of its goals that it reaches, of each run."""
        return level_values(self.group.runs, self.metric)


def group_levels(groups: Sequence[Scored]) -> list[GroupLevel]:
    """The levels with goals of each group."""
    return [GroupLevel(each, name) for each in groups for name in levels_with_goals(each.runs)]


def levels_with_goals(runs: Sequence[RunScores]) -> list[str]:
    """The levels that have goals, top first; one without reaches none and is nowhere near one."""
    names = dict.fromkeys(name for run in runs for name in run.final)
    levels = [name.removesuffix(GOALS) for name in names if name.endswith(GOALS)]
    ends = (GOALS, "/distance")
    return [
        level for level in levels if any(level_values(runs, f"{level}{end}").any() for end in ends)
    ]


def level_values(runs: Sequence[RunScores], metric: str) -> FloatArray:
    """A metric of the final evaluations of the runs that have it."""
    return np.array([run.final[metric] for run in runs if metric in run.final], np.float64)


def _threshold(of: GroupLevel) -> str:
    """The level's threshold; the least and the greatest where elements or runs differ in it."""
    found = [value for run in of.group.runs for value in run.thresholds.get(of.name, ())]
    if not found:
        return ""
    low, high = min(found), max(found)
    return f"{low:.3g}" if low == high else f"{low:.3g} to {high:.3g}"


def _mean_of(metric: str, shape: str, factor: int = 1) -> Callable[[GroupLevel], str]:
    """The text of a metric's mean over the runs of a level; empty for one without it."""

    def text(of: GroupLevel) -> str:
        values = level_values(of.group.runs, f"{of.name}/{metric}")
        return format(factor * values.mean(), shape) if values.size else ""

    return text


LEVEL_COLUMNS = (
    Column("reached within", _threshold, is_optional=True),
    Column("distance at the end", _mean_of("distance", ".3g"), is_optional=True),
    Column("places", _mean_of("graph_places", ",.0f"), is_optional=True),
    Column("edges", _mean_of("graph_edges", ",.0f"), is_optional=True),
    Column(
        "ms of planning a decision", _mean_of("planning_seconds", ".3g", 1000), is_optional=True
    ),
)
"""Columns about a `GroupLevel`, beside the share of its goals that it reaches."""


def _levels(groups: Sequence[Scored]) -> str:
    """The levels of hierarchies in the evaluation at the end, a row for each."""
    columns = (
        Column("variant", lambda of: of.group.group, is_text=True),
        Column("level", lambda of: of.name, is_text=True),
        Column("seeds", lambda of: len(of.shares)),
        Column("sub-episodes that reach their goal", lambda of: _mean(of.shares, _percent)),
        *LEVEL_COLUMNS,
    )
    levels = group_levels(groups)
    return markdown(table(columns, levels)) if levels else ""


def _comparison(study: Study, groups: Sequence[Scored]) -> str:
    """Differences from the baseline, of the variants on its level."""
    if study.baseline is None:
        return ""
    if not any(group.group == study.baseline for group in groups):
        return f"The baseline, {study.baseline}, has no finished run to compare with."
    shown = _shape(study.metric)
    columns = (
        Column(f"against {study.baseline}", lambda each: each.group, is_text=True),
        Column(
            "difference of IQMs (95 %)",
            lambda each: (
                f"{shown(each.difference.value)} ({difference_text(each.difference, shown)})"
            ),
        ),
        Column(
            "chance that a run scores higher (95 %)",
            lambda each: with_interval(each.improvement, _percent),
        ),
        Column(
            "detectable difference",
            _detectable,
            lambda size: "none" if math.isinf(size) else shown(size),
        ),
        Column("verdict", _verdict),
    )
    found = possible_comparisons(groups, study.baseline, metric=study.metric)
    return markdown(table(columns, found)) if found else ""


def _detectable(each: Comparison) -> float | None:
    """The difference that would be found; infinite where none would be, None where unknown."""
    found = each.difference
    return math.inf if found.detectable is None and found.low is not None else found.detectable


def _verdict(each: Comparison) -> str:
    found = each.difference
    if found.reason in (TOO_FEW, NOT_FINITE):
        return found.reason
    if not found.is_clear:
        return "no clear difference"
    return "higher" if found.value > 0 else "lower"


def _curves(study: Study, groups: Sequence[Scored]) -> str:
    """Means over seeds while training, beside published ones; a table for each set of steps."""
    shown = _shape(study.metric)
    tables: dict[tuple[int, ...], list[list[object]]] = {}
    for group in groups:
        steps, values = _common_curve(study.metric, group.runs)
        published = _published(study, group.group)
        curve = {} if published is None else published.curve
        marks = [step for step in steps.tolist() if step in curve] or _spread(steps.tolist())
        if not marks:
            continue
        rows = tables.setdefault(tuple(marks), [])
        means = [_mean(values[:, steps == mark].ravel(), shown) for mark in marks]
        rows.append([group.group, len(group.runs), *means])
        if published is not None and marks[0] in curve:
            theirs = [f"{shown(curve[mark][0])} ± {shown(curve[mark][1])}" for mark in marks]
            rows.append([f"{group.group}: {published.source}", "", *theirs])
    return "\n\n".join(
        markdown(written(["after steps", "seeds", *(f"{mark:,}" for mark in marks)], rows, texts=1))
        for marks, rows in tables.items()
    )


def _published(study: Study, variant: str) -> Published | None:
    return next(each.published for each in study.variants if each.name == variant)


def _spread(steps: list[int]) -> list[int]:
    """A few of a curve's steps, evenly spread, the last among them."""
    count = min(MARKS, len(steps))
    return [steps[len(steps) * part // count - 1] for part in range(1, count + 1)]


def _singly(study: Study, groups: Sequence[Scored]) -> str:
    """Each run."""
    shown = _shape(study.metric)

    def curve(run: RunScores) -> FloatArray:
        return run.curve.metrics.get(study.metric, np.empty(0))

    def best(run: RunScores) -> str:
        values = curve(run)
        if not np.isfinite(values).any():
            return ""
        at = int(np.nanargmax(values))
        return f"{shown(float(values[at]))} ({run.curve.steps[at]:,})"

    def last(run: RunScores) -> str:
        values = curve(run)
        return shown(float(values[-1])) if np.isfinite(values[-1:]).any() else ""

    def tail(run: RunScores) -> str:
        values = curve(run)
        if len(values) < 2 * TAIL or not np.isfinite(values).any():
            return ""
        return shown(float(np.nanmean(values[-TAIL:])))

    columns = (
        Column("variant", lambda row: row[0].group, is_text=True),
        Column("seed", lambda row: row[1].seed),
        Column("score", lambda row: shown(float(row[2]))),
        Column(ANY, lambda row: row[3], _percent, is_optional=True),
        Column("best evaluation (at)", lambda row: best(row[1])),
        Column("last", lambda row: last(row[1])),
        Column("tail", lambda row: tail(row[1])),
        Column("steps", lambda row: row[1].moments, "{:,}".format),
        Column("hours", lambda row: _hours(row[1].wall_seconds / 3600)),
        Column("updates", lambda row: row[1].training_steps, "{:,}".format),
    )
    rows = [
        (group, *each)
        for group in groups
        for each in zip(group.runs, group.scores, group.any_step, strict=True)
    ]
    return markdown(table(columns, rows))


def _listed(head: str, lines: Sequence[str]) -> str:
    """Lines of a list below a sentence; empty where there are none."""
    return "\n".join([head, "", *(f"- {line}" for line in lines)]) if lines else ""


def version_lines(runs: Sequence[StudyRun]) -> list[str]:
    """The versions of the code of each variant whose runs have several, a line each."""
    lines = []
    for variant in dict.fromkeys(run.variant for run in runs):
        codes = {
            run.seed: run.scores.code
            for run in runs
            if run.variant == variant and run.scores is not None and run.scores.code
        }
        if len({*codes.values()}) > 1 or any(len(code) > 1 for code in codes.values()):
            each = (
                f"{', '.join(code)}: {seeds_text([seed for seed in codes if codes[seed] == code])}"
                for code in dict.fromkeys(codes.values())
            )
            lines.append(f"{variant}: {'; '.join(each)}")
    return lines


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
    return [f"{variant}: {seeds_text(seeds)} {why}" for (variant, why), seeds in reasons.items()]


def _common_curve(metric: str, runs: Sequence[RunScores]) -> tuple[IntArray, FloatArray]:
    """A metric at the evaluations that all runs of a variant have, [E] steps, [seeds, E].

    Of several evaluations at one step, such as before and after the data, the last one counts.
    """
    curves = [run.curve for run in runs if metric in run.curve.metrics]
    if len(curves) < len(runs):
        return np.empty(0, np.int64), np.empty((0, 0))
    steps = np.unique(curves[0].steps)
    for curve in curves[1:]:
        steps = np.intersect1d(steps, curve.steps)
    values = []
    for curve in curves:
        last = {step: index for index, step in enumerate(curve.steps.tolist())}
        values.append(curve.metrics[metric][[last[step] for step in steps.tolist()]])
    return steps, np.array(values)


def _shape(metric: str) -> Shown:
    """The format of a metric's values: shares as percentages."""
    return _percent if is_share(metric) else _number


def _percent(value: float) -> str:
    return f"{value:.1%}".replace(".0%", "%").replace("%", " %")


def _number(value: float) -> str:
    return f"{value:,.1f}"


def _hours(hours: float) -> str:
    return f"{hours:,.2f}" if hours >= 0.1 else f"{hours:.1g}"


def _mean(values: Sequence[float] | FloatArray, shown: Shown) -> str:
    """Mean and standard deviation over seeds; empty where a value is not finite."""
    if not np.isfinite(values).all():
        return ""
    spread = standard_deviation(np.asarray(values))
    mean = shown(float(np.mean(values)))
    return mean if spread is None else f"{mean} ± {shown(spread)}"


def _range(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def seed_tables(runs: Sequence[RunScores]) -> list[Table]:
    """A table with a row for each run, and one with a row for each metric over the seeds.

    Args:
        runs: Finished runs, one or more.
    """
    runs = with_failures(runs)
    known = {metric for run in runs for metric in run.final}
    names = {"reward_mean": "mean reward", "success_rate": "success rate"}
    names |= {f"{level}{GOALS}": f"{level} reaches its goal" for level in levels_with_goals(runs)}
    metrics = {metric: name for metric, name in names.items() if metric in known}
    singly = (
        Column("seed", lambda run: run.seed, is_text=True),
        *(_seed_column(metric, name) for metric, name in metrics.items()),
        Column("normalised", normalised_score, "{:.3f}".format, is_optional=True),
        Column("steps", lambda run: run.moments, "{:,}".format),
        Column("frames", lambda run: run.frames, "{:,}".format, is_optional=True),
        Column("time", lambda run: run.wall_seconds, duration_text),
    )
    together = ["metric", "seeds", "mean", "standard deviation", "IQM (95 % interval)"]
    rows = []
    for metric, name in metrics.items():
        finals = [run.final for run in runs if metric in run.final]
        rows.append([name, len(finals), *_over_seeds(metric, finals)])
    number = f"{len(runs)} seeds" if len(runs) > 1 else "one seed"
    return [
        table(singly, runs, title="Final evaluation of each seed"),
        written(together, rows, texts=1, title=f"Over {number}"),
    ]


def _seed_column(metric: str, name: str) -> Column:
    return Column(
        name, lambda run: run.final.get(metric), lambda of: _seed_text(metric, of), missing="-"
    )


def _over_seeds(metric: str, finals: Sequence[Mapping[str, float]]) -> list[str]:
    values = np.array([final[metric] for final in finals], np.float64)
    if not np.isfinite(values).all():
        return [NOT_FINITE, "", ""]
    mean, std = float(values.mean()), standard_deviation(values)
    iqm = estimate_of(metric, values, episodes=episodes_behind(metric, finals))
    interval = with_interval(iqm, lambda value: _seed_text(metric, value))
    return [_seed_text(metric, mean), _seed_text(metric, std), interval]


def _seed_text(metric: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.2f}" if metric == "reward_mean" else f"{value:.1%}"


def mark_of(study: str) -> str:
    """The line that begins a study's block."""
    return f"<!-- study: {study} -->"


def write_blocks(pages: Sequence[Path], study: str, text: str, *, runs: int) -> list[Path]:
    """Write a text into every block of a study, and leave the rest of the pages as it is.

    Nothing is written where one of the pages cannot be.

    Args:
        pages: Files, and folders with `.md` files.
        study: The study's name.
        text: What goes between the marks.
        runs: Number of runs that the text is about.

    Returns:
        The pages that have such a block.

    Raises:
        ConfigurationError: There is no such page, no page has a block, or one has no end or is
            about more runs.
    """
    changed = {}
    for page in _files(pages):
        try:
            before = page.read_bytes().decode()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(f"cannot read the page {page}: {error}") from error
        if mark_of(study) in before:
            changed[page] = with_block(before, study, text, runs=runs, source=str(page))
    if not changed:
        searched = ", ".join(map(str, pages))
        raise ConfigurationError(
            f"no page in {searched} has a block of the study '{study}'; put the lines "
            f"{mark_of(study)} and {END} where its tables belong"
        )
    for page, content in changed.items():
        write_text(page, content)
    return list(changed)


def with_block(page: str, study: str, text: str, *, runs: int, source: str) -> str:
    """A page with a text in every block of a study.

    Args:
        page: The page's text, with any line endings.
        study: The study's name.
        text: What goes between the marks.
        runs: Number of runs that the text is about.
        source: The page's name, for errors.

    Raises:
        ConfigurationError: A block has no end, or is about more runs.
    """
    newline = "\r\n" if "\r\n" in page else "\n"
    block = newline.join(["", f"<!-- runs: {runs} -->", *text.strip("\n").split("\n"), ""])
    first, *rest = page.split(mark_of(study))
    parts = [first]
    for part in rest:
        inside, end, after = part.partition(END)
        if not end or "<!-- study:" in inside:
            raise ConfigurationError(
                f"the block {mark_of(study)} in {source} has no end; put {END} after it"
            )
        before = re.search(r"<!-- runs: (\d+) -->", inside)
        if before is not None and int(before[1]) > runs:
            raise ConfigurationError(
                f"the block {mark_of(study)} in {source} is about {before[1]} runs, and here are "
                f"{runs}; name the folders of the others with --runs, or delete the line "
                f"{before[0]} to have the tables of fewer"
            )
        parts.append(f"{block}{END}{after}")
    return mark_of(study).join(parts)


def _files(pages: Sequence[Path]) -> list[Path]:
    missing = [page for page in pages if not page.exists()]
    if missing:
        raise ConfigurationError(f"there is no page {missing[0]}")
    found = (sorted(page.rglob("*.md")) if page.is_dir() else [page] for page in pages)
    return [page for files in found for page in files]
