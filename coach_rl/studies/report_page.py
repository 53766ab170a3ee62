"""A report as one HTML file, with its pictures inside: for a browser, a phone, a printer.

It is that of a study, or of groups of runs without one.

It needs no server and asks nothing of a network, which its own policy forbids it to.
"""

import html
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np

from coach_rl.configuration.overrides import said
from coach_rl.core.level_name import shown_level
from coach_rl.studies.comparison import (
    Comparison,
    TextTable,
    comparison_table,
    interval_of,
    notes_on,
    possible_comparisons,
    score_table,
    shown,
)
from coach_rl.studies.folder_study import study_of_groups
from coach_rl.studies.level_figures import GOALS, level_figures, levels_with_goals
from coach_rl.studies.report_pictures import report_pictures
from coach_rl.studies.report_style import STYLE
from coach_rl.studies.reproduction import coach_line
from coach_rl.studies.run_groups import RunGroup, Scored, estimate_of
from coach_rl.studies.scores import SUCCESS
from coach_rl.studies.study import Study, Variant
from coach_rl.studies.study_groups import variant_groups, variant_scores
from coach_rl.studies.study_runs import StudyRun
from coach_rl.studies.study_tables import ANY, filled, missing_lines, version_lines, why_missing
from coach_rl.telemetry.live_panel import duration_text

_PICTURES = ("curves", "seeds", "improvement", "profiles")
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class _Report:
    """A study, its runs, and what they say."""

    study: Study
    runs: Sequence[StudyRun]
    file: str | None
    """The study's file, as it is typed; None for a report of folders."""
    notes: Sequence[str]
    groups: list[RunGroup]
    scored: list[Scored]
    comparisons: list[Comparison]
    pictures: dict[str, list[str]]


def report_page(study: Study, runs: Sequence[StudyRun], *, file: str, when: datetime) -> str:
    """The report of a study as an HTML page.

    Args:
        study: The study.
        runs: Its runs, as `study_runs` found them.
        file: The study's file, as it is typed after `coach study run`.
        when: The time that the page bears.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    groups, scored = variant_groups(study, runs), variant_scores(study, runs)
    return _page(study, runs, file, (), groups, scored, f"coach report {file}", when)


def folders_page(
    groups: Sequence[RunGroup],
    scored: Sequence[Scored],
    *,
    metric: str,
    baseline: str | None,
    notes: Sequence[str],
    folders: Sequence[str],
    when: datetime,
) -> str:
    """The report of groups of runs as an HTML page.

    Args:
        groups: The groups, as `find_groups` found them.
        scored: Their scores, as `group_scores` found them.
        metric: What the scores are.
        baseline: The group that the others are compared with; None: nothing is compared.
        notes: What a reader should know of the groups.
        folders: The folders, as they are typed after `coach report`.
        when: The time that the page bears.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    study, runs = study_of_groups(groups, metric=metric, baseline=baseline, folders=folders)
    command = f"coach report {' '.join(folders)}"
    return _page(study, runs, None, notes, list(groups), list(scored), command, when)


def _page(
    study: Study,
    runs: Sequence[StudyRun],
    file: str | None,
    notes: Sequence[str],
    groups: list[RunGroup],
    scored: list[Scored],
    command: str,
    when: datetime,
) -> str:
    comparisons = (
        possible_comparisons(scored, study.baseline, metric=study.metric)
        if study.baseline in {each.group for each in scored}
        else []
    )
    pictures = report_pictures(groups, metric=study.metric, scored=scored, comparisons=comparisons)
    report = _Report(study, runs, file, notes, groups, scored, comparisons, pictures)
    sections = {
        "Answer": _answer,
        "Variants": _variants,
        "Scores": _scores,
        "Pictures": lambda report: _pictures(report, *_PICTURES),
        "Levels of the hierarchies": _levels,
        "Missing": _missing,
        "Resources": _resources,
        "Every run": _every_run,
        "How to make the runs again": _again,
        "What the numbers mean": _meaning,
    }
    parts = [_head(report)]
    for title, make in sections.items():
        body = make(report)
        if body:
            parts.append(f"<section>\n<h2>{_text(title)}</h2>\n{body}\n</section>")
    written = when.strftime("%Y-%m-%d %H:%M")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<title>{_text(study.name)}: report</title>
<style>{STYLE}</style>
</head>
<body>
<main>
{chr(10).join(parts)}
</main>
<footer>Written by <code>{_text(command)}</code> on {written}.</footer>
</body>
</html>
"""


def _head(report: _Report) -> str:
    study = report.study
    kind = "Runs in folders" if report.file is None else f"Study {study.name}"
    variants = "group" if report.file is None else "variant"
    done = sum(why_missing(study, run) is None for run in report.runs)
    seeds = len({run.seed for run in report.runs})
    paragraphs = [part for part in re.split(r"\n\s*\n", study.about) if part.strip()]
    return "\n".join(
        [
            "<header>",
            f'<p class="name">{_text(kind)}</p>',
            f"<h1>{_text(study.question or study.name)}</h1>",
            *map(_paragraph, paragraphs),
            f'<p class="faint">{_count(len(study.variants), variants)}, '
            f"{_count(seeds, 'seed')}; {done} of {_count(len(report.runs), 'run')} with a "
            "score.</p>",
            "</header>",
        ]
    )


def _answer(report: _Report) -> str:
    study, parts = report.study, []
    if report.comparisons:
        parts.append(_paragraph(f"Baseline: {study.baseline}. The others are compared with it."))
    missing = sum(why_missing(study, run) is not None for run in report.runs)
    if missing:
        parts.append(
            _paragraph(
                f"{missing} of {_count(len(report.runs), 'run')} are missing; what follows may "
                "change."
            )
        )
    if not report.scored:
        parts.append(_paragraph("No run has a score yet."))
    elif study.baseline is None:
        owner = "The study names" if report.file else "There is"
        parts.append(_paragraph(f"{owner} no baseline, so nothing is compared."))
    elif not report.comparisons:
        parts.append(
            _paragraph(f"There is nothing to compare with the baseline, {study.baseline}, yet.")
        )
    items = []
    several = len({each.level for each in report.comparisons}) > 1
    for each in report.comparisons:
        verdict = each.verdict()
        verdict = f"On {each.level}: {verdict}" if several else f"{verdict[0].upper()}{verdict[1:]}"
        items.append(
            f"<li>{_mark(each)} {_text(f'{verdict}.')} "
            f'<span class="faint">{_text(_chance(each))}</span></li>'
        )
    if items:
        parts.append(f'<ul class="verdicts">\n{chr(10).join(items)}\n</ul>')
    if len(items) > 1:
        parts.append(
            _paragraph(
                "Each comparison has its own 5 % of error: among 20 variants that equal the "
                "baseline, one will seem different.",
                "faint",
            )
        )
    return "\n".join(parts)


def _mark(comparison: Comparison) -> str:
    if comparison.difference.is_clear:
        return '<span class="mark yes">a difference</span>'
    return '<span class="mark open">no difference established</span>'


def _chance(comparison: Comparison) -> str:
    chance = comparison.improvement
    text = f"A run of {comparison.group} scores higher than one of {comparison.baseline} with a "
    text += f"probability of {chance.value:.2f}"
    if chance.low is None:
        return f"{text}."
    return f"{text} (95 % interval {chance.low:.2f} to {chance.high:.2f})."


def _variants(report: _Report) -> str:
    """A line for each variant, in columns where something differs."""
    study = report.study
    rows = []
    for variant in study.variants:
        steps = variant.steps or study.steps
        levels = next((group.levels for group in report.groups if group.name == variant.name), [])
        given = "the preset's" if variant.level is None else shown_level(variant.level)
        rows.append(
            {
                "variant": variant.name + " (baseline)" * (variant.name == study.baseline),
                "changes": _changes(variant),
                "preset": variant.preset.rpartition("/")[2],
                "level": ", ".join(levels) or given,
                "steps": "the preset's" if steps is None else f"{steps:,}",
                "seeds": ", ".join(map(str, variant.seeds or study.seeds)),
            }
        )
    kept = [
        name
        for name in rows[0]
        if name in ("variant", "changes") or len({row[name] for row in rows}) > 1
    ]
    cells = [[row[name] for name in kept] for row in rows]
    alike = [f"{name} {cell}" for name, cell in rows[0].items() if name not in kept]
    table = _table("What differs", kept, cells, texts=len(kept))
    return table + (_paragraph(f"The same for all: {'; '.join(alike)}.") if alike else "")


def _changes(variant: Variant) -> str:
    parts = [said(variant.changes)]
    parts += [f"seed {seed}: {said(of)}" for seed, of in variant.changes_by_seed.items()]
    return "; ".join(filter(None, parts)) or "none"


def _scores(report: _Report) -> str:
    if not report.scored:
        return ""
    study = report.study
    what = (
        "the evaluation at its end"
        if study.episodes is None
        else f"an evaluation of {study.episodes} episodes after training"
    )
    parts = [
        _paragraph(f"The score of a run is {study.metric} in {what}. Intervals are over seeds."),
        _text_table(_with_any_step(report, score_table(report.scored, metric=study.metric))),
    ]
    if report.comparisons:
        parts.append(_text_table(comparison_table(report.comparisons)))
    levels = {each.level for each in report.comparisons}
    compared = [each for each in report.scored if each.level in levels]
    parts += [_paragraph(f"Note: {note}.") for note in (*report.notes, *notes_on(compared))]
    return "\n".join(parts)


def _with_any_step(report: _Report, table: TextTable) -> TextTable:
    """The table of scores, and the success at any step beside it where that is known."""
    rows = []
    for each, row in zip(report.scored, table.rows, strict=True):
        own = {run.path for run in each.runs}
        runs = [run for run in report.runs if run.scores is not None and run.scores.path in own]
        shares = [run.success_at_any_step(report.study) for run in runs]
        known = [share for share in shares if share is not None]
        rows.append((*row, _any_step(float(np.mean(known)) if known else None)))
    header, rows = filled((*table.header, ANY), rows, ANY)
    return replace(table, header=header, rows=rows)


def _any_step(share: float | None) -> str:
    return "" if share is None else shown(share, SUCCESS)


def _pictures(report: _Report, *kinds: str) -> str:
    figures = [figure for kind in kinds for figure in report.pictures.get(kind, ())]
    return f'<div class="pictures">\n{chr(10).join(figures)}\n</div>' if figures else ""


def _levels(report: _Report) -> str:
    """The goals that each level of a hierarchy reaches."""
    rows, levels = [], []
    for each in report.scored:
        for level in levels_with_goals(each.runs):
            metric = f"{level}{GOALS}"
            shares = np.array([run.final[metric] for run in each.runs if metric in run.final])
            found = estimate_of(metric, shares)
            mean, iqm = shown(float(shares.mean()), metric), shown(found.value, metric)
            levels.append((each.runs, level))
            rows.append(
                (
                    each.group,
                    level,
                    each.level,
                    str(len(shares)),
                    mean,
                    iqm,
                    interval_of(found, metric),
                )
            )
    if not rows:
        return ""
    figures = level_figures(levels)
    head = ("variant", "level", "environment", "seeds", "mean", "IQM", "95 % interval", *figures)
    table = _table(
        "Share of its goals that each level reaches (mean, IQM), in the evaluation at the end",
        head,
        [(*row, *cells) for row, *cells in zip(rows, *figures.values(), strict=True)],
        texts=3,
    )
    return f"{table}\n{_pictures(report, 'level')}"


def _missing(report: _Report) -> str:
    lines = missing_lines(report.study, report.runs)
    if not lines:
        return ""
    items = "\n".join(f"<li>{_text(line)}</li>" for line in lines)
    why = "Why a run failed is in the folder faults/ of its own, if it came that far."
    failed = any(why_missing(report.study, run) == "failed" for run in report.runs)
    if report.file is None:
        return f"<ul>\n{items}\n</ul>\n{_paragraph(why) * failed}"
    command = _code(f"coach study run {report.file}")
    hint = _paragraph(f"{why * failed} This makes what is missing:".strip())
    return f"<ul>\n{items}\n</ul>\n{hint}\n{command}"


def _resources(report: _Report) -> str:
    rows, total = [], 0.0
    for variant in report.study.variants:
        own = [run for run in report.runs if run.variant == variant.name and run.scores]
        numbers = [run.scores for run in own if run.scores is not None]
        if not numbers:
            continue
        seconds = [run.wall_seconds for run in numbers]
        speeds = [run.steps_per_second for run in numbers if run.steps_per_second]
        hosts = Counter(host for run in own for host in run.hosts)
        total += sum(seconds)
        rows.append(
            (
                variant.name,
                ", ".join(f"{name} ({count})" for name, count in hosts.items()) or "unknown",
                str(len(own)),
                duration_text(sum(seconds)),
                duration_text(float(np.mean(seconds))),
                f"{np.mean([run.environment_steps for run in numbers]):,.0f}",
                f"{np.mean([run.training_steps for run in numbers]):,.0f}",
                f"{np.median(speeds):,.0f}" if speeds else "",
            )
        )
    if not rows:
        return ""
    head = ("variant", "hosts (runs)", "runs", "time in all", "time of a run", "steps of a run",
            "updates of a run", "steps/s (median)")  # fmt: skip
    table = _table("Unfinished runs are included", head, rows, texts=2)
    length = f"{total / 3600:,.1f} hours" if total >= 3600 else f"{total / 60:.1f} minutes"
    return table + _paragraph(f"In all {length} of runs.")


def _every_run(report: _Report) -> str:
    study, rows = report.study, []
    for run in sorted(report.runs, key=_order(study)):
        if run.scores is None or run.folder is None:
            continue
        score = run.score(study)
        numbers = run.scores
        rows.append(
            (
                run.variant,
                numbers.state,
                ", ".join(run.code),
                ", ".join(run.hosts),
                str(run.folder.path),
                str(run.seed),
                "" if score is None else shown(score, study.metric),
                _any_step(run.success_at_any_step(study)),
                f"{numbers.environment_steps:,}",
                duration_text(numbers.wall_seconds),
            )
        )
    if not rows:
        return ""
    head = ("variant", "state", "code", "host", "folder", "seed", "score", ANY, "steps", "time")
    caption = "Code: commit, with * where files differed from it"
    table = _table(caption, *filled(head, rows, ANY), texts=5)
    different = version_lines([run for run in report.runs if why_missing(study, run) is None])
    versions = {code for run in report.runs for code in run.code}
    if different:
        items = "\n".join(f"<li>{_text(line)}</li>" for line in different)
        return (
            f"{_paragraph('Runs of one variant were made with different versions of the code:')}\n"
            f"<ul>\n{items}\n</ul>\n{table}"
        )
    if len(versions) > 1:
        return _paragraph("Variants were made with different versions of the code.") + table
    return _paragraph("All runs were made with the same version of the code.") + table


def _again(report: _Report) -> str:
    study = report.study
    if report.file is None:
        return _recorded_commands(report)
    parts = [
        _paragraph("All runs of the study, in another folder of experiments:"),
        _code(f"coach study run {report.file} -ep again"),
        _paragraph(
            "The runs of a variant; for a single one, give --seed N instead of --seeds. The same "
            "version of the code on the same kind of processor gives the same numbers."
        ),
    ]
    for variant in study.variants:
        jobs = [run.job for run in report.runs if run.variant == variant.name]
        jobs.sort(key=lambda job: job.task.seed)
        parts.append(f"<h3>{_text(variant.name)}</h3>")
        for together in [[job] for job in jobs] if variant.changes_by_seed else [jobs]:
            line = coach_line(together)
            parts.append(
                _paragraph("What it changes cannot be written on a command line; run the study.")
                if line is None
                else _code(line)
            )
    return "\n".join(parts)


def _recorded_commands(report: _Report) -> str:
    """The commands in the manifests of the groups' runs, each once."""
    parts = []
    for variant in report.study.variants:
        own = [run.command for run in report.runs if run.variant == variant.name]
        lines = [shlex.join(words) for words in dict.fromkeys(own) if words]
        if lines:
            parts += [f"<h3>{_text(variant.name)}</h3>", *map(_code, lines)]
    if not parts:
        return _paragraph("The runs do not record a command, as those of a program don't.")
    intro = "The commands that made the runs, as their folders record them:"
    return "\n".join([_paragraph(intro), *parts])


def _meaning(_report: _Report) -> str:
    words = {
        "mean, std": "Mean and standard deviation of the scores, over seeds.",
        "IQM": "Interquartile mean: the mean of the middle half of the seeds, which one lucky or "
        "unlucky seed moves little.",
        "95 % interval": "Repeating everything with new seeds, about 95 of 100 such intervals hold "
        "the true value. It is about seeds, not about the episodes of one trained agent. There is "
        "none over fewer than three seeds, nor where all seeds score the same: then the successes "
        "of all episodes are given with their Clopper-Pearson interval, and the share of seeds "
        "that may score otherwise, such as fail, without being among so many seeds.",
        "a difference": "The interval of the difference doesn't hold zero, and a permutation test "
        "over seeds agrees where there are enough of them. Where all seeds of each group score the "
        "same, the interval is that over episodes.",
        "no difference established": "That doesn't mean that there is no difference: a smaller one "
        "than so many seeds can establish may be there.",
        "reached within": "The threshold at which a level's goal counts as reached, the least and "
        "the greatest where elements of the goal differ in it. It is the level's own: success in "
        "the environment may ask for less.",
        "P(higher)": "Probability that a run of the variant scores higher than one of the "
        "baseline; ties count half.",
    }
    items = "\n".join(f"<dt>{_text(name)}</dt><dd>{_text(of)}</dd>" for name, of in words.items())
    return f"<dl>\n{items}\n</dl>"


def _order(study: Study) -> Callable[[StudyRun], tuple[int, int]]:
    names = [variant.name for variant in study.variants]
    return lambda run: (names.index(run.variant), run.seed)


def _text_table(table: TextTable) -> str:
    """A table whose first two columns are names; the column of names has no heading yet."""
    return _table(table.title, ("variant", *table.header[1:]), table.rows, texts=2)


def _table(caption: str, head: Sequence[str], rows: Sequence[Sequence[str]], *, texts: int) -> str:
    """An HTML table whose first `texts` columns are words and whose others are numbers."""

    def cell(tag: str, column: int, text: str, scope: str = "") -> str:
        kinds = ["text"] * (column < texts) + ["long"] * (tag == "td" and len(text) > 24)
        kind = f' class="{" ".join(kinds)}"' if kinds else ""
        return f"<{tag}{scope}{kind}>{_text(text)}</{tag}>"

    heading = "".join(cell("th", at, name, ' scope="col"') for at, name in enumerate(head))
    lines = [
        cell("th", 0, row[0], ' scope="row"')
        + "".join(cell("td", at, text) for at, text in enumerate(row[1:], 1))
        for row in rows
    ]
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<div class="wide" role="region" aria-label="{_text(caption)}" tabindex="0"><table>\n'
        f"<caption>{_text(caption)}</caption>\n<thead><tr>{heading}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody>\n</table></div>"
    )


def _paragraph(text: str, kind: str = "") -> str:
    of_kind = f' class="{kind}"' if kind else ""
    return f"<p{of_kind}>{_text(text)}</p>"


def _code(line: str) -> str:
    return f"<pre><code>{_text(line)}</code></pre>"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _text(text: str) -> str:
    return html.escape(text)
