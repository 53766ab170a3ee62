"""A report as one HTML file, with its pictures inside: for a browser, a phone, a printer.

It is that of a study, or of groups of runs without one. It needs no server, and its own policy
forbids it to load anything. The page is `report.html.jinja`, which shows the tables of a `_Report`.
"""

import base64
import io
import re
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from coach_rl.configuration.overrides import format_overrides
from coach_rl.core.shown_text import shown_level
from coach_rl.extensions.studies.comparison import (
    Comparison,
    comparison_table,
    interval_of,
    notes_on,
    possible_comparisons,
    score_table,
    shown,
)
from coach_rl.extensions.studies.job import coach_line
from coach_rl.extensions.studies.plots import COLOURS, Plots, drawing
from coach_rl.extensions.studies.reference_scores import normalised_score
from coach_rl.extensions.studies.runs import RunFrame, Scored, estimate_of
from coach_rl.extensions.studies.scores import SUCCESS, RunScores
from coach_rl.extensions.studies.statistics import Estimate
from coach_rl.extensions.studies.study import Study, Variant
from coach_rl.extensions.studies.study_runs import StudyRun, study_frame, study_of_frame
from coach_rl.extensions.studies.tables import (
    ANY,
    LEVEL_COLUMNS,
    GroupLevel,
    group_levels,
    missing_lines,
    version_lines,
    why_missing,
)
from coach_rl.telemetry.console import duration_text
from coach_rl.telemetry.tables import Column, Table, html, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DARK_COLOURS = (
    "#4da9e8", "#ff8a4c", "#2cc295", "#e79ac4", "#f0b429", "#8ad0f5", "#e8e8e8", "#d19a5b",
)  # fmt: skip
"""The colours of groups on a dark page, in the order of the light ones."""
_MOST_PICTURES = 24
"""Pictures of notes that a page has at most."""
_LARGEST_PICTURE = 1_000_000
"""Bytes of one of their files at most."""
_WIDTH = 4.6
"""Inches of a picture, so that letters are large enough on a phone."""
_CAPTIONS = {
    "curves": "{metric} of evaluations while training: interquartile mean over seeds, and its 95 % "
    "interval, point by point, or a thin line for each of fewer than five seeds",
    "seeds": "{metric} of each seed, a dot each; the line is the interquartile mean, the bar its "
    "95 % interval",
    "improvement": "Probability that a run scores higher than one of the baseline, and its 95 % "
    "interval; a bar that crosses the middle leaves it open",
    "profiles": "Share of seeds that score above each value, and its 95 % interval",
    "level": "Share of its goals that level {level} reaches while training: interquartile mean "
    "over seeds, and its 95 % interval or a thin line for each of fewer than five seeds",
}


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
    frame = study_frame(study, runs)
    report = _Report(
        study=study,
        runs=runs,
        file=file,
        frame=frame,
        scored=frame.scored(study.metric),
        command=f"coach report {file}",
    )
    return _page(report, when)


def folders_page(
    frame: RunFrame,
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
        frame: The runs, as `find_runs` found them.
        scored: Their scores, as `group_scores` found them.
        metric: What the scores are.
        baseline: The group that the others are compared with; None: nothing is compared.
        notes: What a reader should know of the groups.
        folders: The folders, as they are typed after `coach report`.
        when: The time that the page bears.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    study, runs = study_of_frame(frame, metric=metric, baseline=baseline, folders=folders)
    command = f"coach report {' '.join(folders)}"
    report = _Report(
        study=study, runs=runs, notes=notes, frame=frame, scored=scored, command=command
    )
    return _page(report, when)


def _page(report: "_Report", when: datetime) -> str:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    pages = Environment(
        loader=PackageLoader("coach_rl.extensions.studies", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    pages.filters["html"] = html
    template = pages.get_template("report.html.jinja")
    return template.render(report=report, when=when, light=COLOURS, dark=DARK_COLOURS)


@dataclass(frozen=True, kw_only=True)
class _Report:
    """A study with its runs, and the tables, pictures and lines that the page shows."""

    study: Study
    runs: Sequence[StudyRun]
    frame: RunFrame
    scored: Sequence[Scored]
    command: str
    """The command line that writes the page."""
    file: str | None = None
    """The study's file, as it is typed; None for a report of folders."""
    notes: Sequence[str] = ()

    @property
    def about(self) -> list[str]:
        return [part for part in re.split(r"\n\s*\n", self.study.about) if part.strip()]

    @property
    def seeds(self) -> int:
        return len({run.seed for run in self.runs})

    @cached_property
    def missing(self) -> int:
        """Number of runs without a score."""
        return sum(why_missing(self.study, run) is not None for run in self.runs)

    @cached_property
    def comparisons(self) -> list[Comparison]:
        """The comparisons with the baseline; none where it has no scores."""
        study = self.study
        if study.baseline not in {each.group for each in self.scored}:
            return []
        return possible_comparisons(self.scored, study.baseline, metric=study.metric)

    @cached_property
    def pictures(self) -> "dict[str, list[Picture]]":
        return report_pictures(
            self.frame,
            metric=self.study.metric,
            scored=self.scored,
            comparisons=self.comparisons,
        )

    def noted_pictures(self) -> "list[NotedPicture]":
        """The newest picture of each kind that notes have, from the first run of each variant."""
        found = []
        for variant in self.study.variants:
            own = [run for run in self._begun if run.variant == variant.name and run.folder]
            for run in sorted(own, key=lambda each: each.seed):
                pictures = newest_pictures(run)
                if pictures:
                    found += pictures
                    break
        return found[:_MOST_PICTURES]

    def variants(self) -> Table:
        """A row for each variant, in columns where something differs."""
        rows = self._variant_cells
        kept = [name for name in rows[0] if not self._is_alike(name)]
        columns = (Column(name, itemgetter(name), is_text=True) for name in kept)
        return table(columns, rows, title="What differs")

    def alike(self) -> list[str]:
        """Settings that are the same for all variants."""
        first = self._variant_cells[0]
        return [f"{name} {cell}" for name, cell in first.items() if self._is_alike(name)]

    def _is_alike(self, name: str) -> bool:
        is_always_shown = name in ("variant", "changes")
        return not is_always_shown and len({row[name] for row in self._variant_cells}) == 1

    @cached_property
    def _variant_cells(self) -> list[dict[str, str]]:
        study = self.study
        cells = []
        for variant in study.variants:
            steps = variant.steps or study.steps
            levels = self.frame.where(group=variant.name).levels
            stated = "the preset's" if variant.level is None else shown_level(variant.level)
            cells.append(
                {
                    "variant": variant.name + " (baseline)" * (variant.name == study.baseline),
                    "changes": _changes(variant),
                    "preset": variant.preset.rpartition("/")[2],
                    "level": ", ".join(levels) or stated,
                    "steps": "the preset's" if steps is None else f"{steps:,}",
                    "seeds": ", ".join(map(str, variant.seeds or study.seeds)),
                }
            )
        return cells

    def scores(self) -> Table:
        """The scores, and the success at any step beside them where that is known."""

        def any_step(each: Scored) -> float | None:
            known = [share for share in each.any_step if share is not None]
            return float(np.mean(known)) if known else None

        more = Column(ANY, any_step, _percent, is_optional=True)
        return _with_names(score_table(self.scored, metric=self.study.metric, more=[more]))

    def compared(self) -> Table:
        """The comparisons with the baseline."""
        return _with_names(comparison_table(self.comparisons))

    def all_notes(self) -> list[str]:
        """Notes on the groups and on the levels that are compared."""
        levels = {each.level for each in self.comparisons}
        return [*self.notes, *notes_on([each for each in self.scored if each.level in levels])]

    def levels(self) -> Table:
        """The goals that each level of a hierarchy reaches."""

        def estimated(of: GroupLevel) -> Estimate:
            return estimate_of(of.metric, of.shares)

        columns = (
            Column("variant", lambda of: of.group.group, is_text=True),
            Column("level", lambda of: of.name, is_text=True),
            Column("environment", lambda of: of.group.level, is_text=True),
            Column("seeds", lambda of: len(of.shares)),
            Column("mean", lambda of: shown(float(of.shares.mean()), of.metric)),
            Column("IQM", lambda of: shown(estimated(of).value, of.metric)),
            Column("95 % interval", lambda of: interval_of(estimated(of), of.metric)),
            *LEVEL_COLUMNS,
        )
        title = (
            "Share of its goals that each level reaches (mean, IQM), in the evaluation at the end"
        )
        return table(columns, group_levels(self.scored), title=title)

    def missing_lines(self) -> list[str]:
        """The runs without a score and why, a line for each variant and reason."""
        return missing_lines(self.study, self.runs)

    def has_failed(self) -> bool:
        """True if any run has failed."""
        return any(why_missing(self.study, run) == "failed" for run in self.runs)

    def resources(self) -> Table:
        """Time and speed of each variant's runs."""
        names = [variant.name for variant in self.study.variants]
        variants = [(name, self._numbers(name)) for name in names]

        def mean(name: str) -> Callable[[_Own], float]:
            return lambda own: float(np.mean([getattr(each, name) for each in own[1]]))

        def hosts(own: _Own) -> str:
            counts = Counter(host for each in own[1] for host in each.hosts)
            return ", ".join(f"{name} ({count})" for name, count in counts.items()) or "unknown"

        def speed(own: _Own) -> float | None:
            speeds = [each.steps_per_second for each in own[1] if each.steps_per_second]
            return float(np.median(speeds)) if speeds else None

        columns = (
            Column("variant", itemgetter(0), is_text=True),
            Column("hosts (runs)", hosts, is_text=True),
            Column("runs", lambda own: len(own[1])),
            Column("time in all", lambda own: _seconds(own[1]), duration_text),
            Column("time of a run", mean("wall_seconds"), duration_text),
            Column("steps of a run", mean("moments"), "{:,.0f}".format),
            Column("updates of a run", mean("training_steps"), "{:,.0f}".format),
            Column("steps/s (median)", speed, "{:,.0f}".format),
        )
        begun = [own for own in variants if own[1]]
        return table(columns, begun, title="Unfinished runs are included")

    def wall_seconds(self) -> float:
        """Seconds of all runs."""
        return _seconds(self._numbers())

    @property
    def _begun(self) -> list[StudyRun]:
        return [run for run in self.runs if run.scores]

    def every_run(self) -> Table:
        """Each run that has begun, variant by variant."""
        study = self.study
        names = [variant.name for variant in study.variants]

        def of_numbers(name: str) -> Callable[[StudyRun], object]:
            return lambda run: getattr(run.scores, name)

        def normalised(run: StudyRun) -> float | None:
            return None if run.scores is None else normalised_score(run.scores)

        columns = (
            Column("variant", lambda run: run.variant, is_text=True),
            Column("state", of_numbers("state"), is_text=True),
            Column("code", lambda run: ", ".join(run.scores.code), is_text=True),
            Column("host", lambda run: ", ".join(run.scores.hosts), is_text=True),
            Column("folder", lambda run: run.folder.path, is_text=True),
            Column("seed", lambda run: run.seed),
            Column("score", lambda run: run.score(study), lambda of: shown(of, study.metric)),
            Column(ANY, lambda run: run.success_at_any_step(study), _percent, is_optional=True),
            Column("normalised", normalised, "{:.3f}".format, is_optional=True),
            Column("steps", of_numbers("moments"), "{:,}".format),
            Column("frames", of_numbers("frames"), "{:,}".format, is_optional=True),
            Column("time", of_numbers("wall_seconds"), duration_text),
        )
        runs = [run for run in self._begun if run.folder is not None]
        runs.sort(key=lambda run: (names.index(run.variant), run.seed))
        return table(columns, runs, title="Code: commit, with * where files differed from it")

    def version_lines(self) -> list[str]:
        """The versions of the code of each variant whose scored runs have several."""
        return version_lines([run for run in self.runs if why_missing(self.study, run) is None])

    def versions(self) -> int:
        """Number of versions of the code that made the runs."""
        return len({code for each in self._numbers() for code in each.code})

    def commands(self) -> dict[str, list[str | None]]:
        """The command lines that make each variant's runs; None for one that none can write.

        They are those of the study's jobs, or those that the manifests of the groups' runs have.
        """
        found: dict[str, list[str | None]] = {}
        for variant in self.study.variants:
            if self.file is None:
                own = self._numbers(variant.name)
                words = dict.fromkeys(each.command for each in own if each.command)
                lines: list[str | None] = [shlex.join(each) for each in words]
            else:
                jobs = [run.job for run in self.runs if run.variant == variant.name]
                jobs.sort(key=lambda job: job.task.seed)
                together = [[job] for job in jobs] if variant.changes_by_seed else [jobs]
                lines = [coach_line(each) for each in together]
            if lines:
                found[variant.name] = lines
        return found

    def _numbers(self, variant: str | None = None) -> list[RunScores]:
        """The numbers of the runs that have begun, of a variant or of all."""
        runs = (run for run in self._begun if variant in (None, run.variant))
        return [run.scores for run in runs if run.scores is not None]


_Own = tuple[str, Sequence[RunScores]]
"""A variant's name and the numbers of its runs that have begun."""


def _seconds(runs: Sequence[RunScores]) -> float:
    return sum(run.wall_seconds for run in runs)


def _with_names(table: Table) -> Table:
    """The table, whose first column has names of variants."""
    first, *others = table.columns
    return replace(table, columns=(replace(first, title="variant"), *others))


def _percent(share: float) -> str:
    return shown(share, SUCCESS)


def _changes(variant: Variant) -> str:
    parts = [format_overrides(variant.changes)]
    parts += [
        f"seed {seed}: {format_overrides(of)}" for seed, of in variant.changes_by_seed.items()
    ]
    return "; ".join(filter(None, parts)) or "none"


@dataclass(frozen=True)
class Picture:
    """A picture inside the page."""

    svg: str
    """Its markup, which is safe as it is."""
    caption: str


@dataclass(frozen=True)
class NotedPicture:
    """A picture of a run's notes inside the page."""

    source: str
    """The PNG file as a data URI."""
    caption: str


def newest_pictures(run: StudyRun) -> list[NotedPicture]:
    """The newest picture of each kind in a run's folder; larger files than 1 MB are left out."""
    newest: dict[str, tuple[int, Path]] = {}
    folder = None if run.folder is None else run.folder.images
    for file in [] if folder is None else sorted(folder.glob("step_*.png")):
        named = re.fullmatch(r"step_(\d+)_(.+)", file.stem)
        if named is None or file.stat().st_size > _LARGEST_PICTURE:
            continue
        step = int(named[1])
        kind = named[2]
        newest[kind] = max(newest.get(kind, (step, file)), (step, file))
    return [
        NotedPicture(
            source=f"data:image/png;base64,{base64.b64encode(file.read_bytes()).decode()}",
            caption=f"{run.variant}, seed {run.seed}: {kind} after {step:,} steps.",
        )
        for kind, (step, file) in sorted(newest.items())
    ]


def report_pictures(
    frame: RunFrame,
    *,
    metric: str,
    scored: Sequence[Scored],
    comparisons: Sequence[Comparison],
) -> dict[str, list[Picture]]:
    """Pictures by kind, one for each environment, so that they can be read on a phone.

    Args:
        frame: The runs of all variants.
        metric: Of evaluations, the study's.
        scored: The scores of the variants.
        comparisons: With the baseline.

    Returns:
        Lists under curves, seeds, improvement, profiles and level, where there are any.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    found: dict[str, list[Picture]] = {}
    for number, environment in enumerate(frame.levels):
        of_scores = [each for each in scored if each.level == environment]
        of_comparisons = [each for each in comparisons if each.level == environment]
        with drawing():
            plots = Plots(frame=frame.where(level=environment), metric=metric, least_width=_WIDTH)
            figures = plots.pictures(of_scores, of_comparisons)
            for name, figure in figures.items():
                kind, _, level = name.partition("_")
                caption = f"{_CAPTIONS[kind].format(metric=metric, level=level)}."
                if len(frame.levels) > 1:
                    caption += f" On {environment}."
                described = f"{caption} {_in_words(kind, of_scores, of_comparisons)}".strip()
                svg = _inside(figure, f"{name}{number}-", described)
                found.setdefault(kind, []).append(Picture(svg, caption))
    return found


def _in_words(kind: str, scored: Sequence[Scored], comparisons: Sequence[Comparison]) -> str:
    """The content of a picture for those who cannot see it; the tables have the rest."""
    if kind == "improvement":
        return " ".join(f"{each.group}: {each.improvement.value:.2f}." for each in comparisons)
    if kind == "level" or not comparisons:
        return ""
    metric = comparisons[0].metric
    parts = []
    for each in scored:
        found = estimate_of(metric, each.scores, episodes=each.episodes)
        text = f"{each.group}: in the end {shown(found.value, metric)}"
        parts.append(f"{text} ({interval_of(found, metric)}).")
    return " ".join(parts)


def _inside(figure: "Figure", prefix: str, described: str) -> str:
    """A figure as SVG for inside a page: without a ground, its names apart from other pictures'."""
    from markupsafe import Markup, escape

    figure.suptitle("")
    figure.patch.set_alpha(0.0)
    for axes in figure.axes:
        axes.patch.set_alpha(0.0)
    text = io.StringIO()
    metadata = {"Date": None, "Creator": None, "Format": None, "Type": None}
    figure.savefig(text, format="svg", metadata=metadata)
    svg = text.getvalue()
    svg = svg[svg.index("<svg") :].strip()
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = svg.replace("url(#", f"url(#{prefix}").replace('href="#', f'href="#{prefix}')
    for index, colour in enumerate(COLOURS):
        if colour != "#000000":
            svg = re.sub(colour, f"var(--group{index})", svg, flags=re.IGNORECASE)
    svg = svg.replace("#000000", "currentColor")
    label = escape(described)
    return Markup(svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1))
