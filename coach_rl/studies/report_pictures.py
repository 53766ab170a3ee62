"""Pictures of a report: SVG inside the page, in its colours, with words for those who can't see."""

import html
import io
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from coach_rl.studies.comparison import Comparison, interval_of, shown
from coach_rl.studies.plots import COLOURS, Plots, drawing
from coach_rl.studies.run_groups import RunGroup, Scored, estimate_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_WIDTH = 4.6
"""Inches, so that letters are large enough on a phone."""
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


def report_pictures(
    groups: Sequence[RunGroup],
    *,
    metric: str,
    scored: Sequence[Scored],
    comparisons: Sequence[Comparison],
) -> dict[str, list[str]]:
    """Pictures as HTML by kind, one for each environment, so that they can be read on a phone.

    Args:
        groups: The runs of each variant.
        metric: Of evaluations, the study's.
        scored: The scores of the variants.
        comparisons: With the baseline.

    Returns:
        Lists under curves, seeds, improvement, profiles and level, where there are any.

    Raises:
        ConfigurationError: matplotlib is not installed.
    """
    found: dict[str, list[str]] = {}
    levels = sorted({level for group in groups for level in group.levels})
    for number, environment in enumerate(levels):
        here = [replace(group, runs=group.on(environment)) for group in groups]
        of_scores = [each for each in scored if each.level == environment]
        of_comparisons = [each for each in comparisons if each.level == environment]
        with drawing():
            plots = Plots(groups=here, metric=metric, least_width=_WIDTH)
            figures = plots.pictures(of_scores, of_comparisons)
            for name, figure in figures.items():
                kind, _, level = name.partition("_")
                caption = _CAPTIONS[kind].format(metric=metric, level=level)
                where = f" On {environment}." if len(levels) > 1 else ""
                described = f"{caption}.{where} {_in_words(kind, of_scores, of_comparisons)}"
                svg = _inside(figure, f"{name}{number}-", described.strip())
                text = html.escape(f"{caption}.{where}")
                found.setdefault(kind, []).append(
                    f"<figure>\n{svg}\n<figcaption>{text}</figcaption>\n</figure>"
                )
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
    label = html.escape(described, quote=True)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
