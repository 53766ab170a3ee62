"""`coach plot FOLDER`: curves, profiles and probabilities of improvement of groups of runs."""

from collections.abc import Sequence
from pathlib import Path

from coach_rl.cli.compare import add_groups, add_scoring, asked_for
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.printable_text import one_line
from coach_rl.studies.comparison import notes_on, possible_comparisons
from coach_rl.studies.plots import Plots, require_matplotlib
from coach_rl.studies.runs import RunFrame, Scored, group_scores, require_metric


def run(words: Sequence[str]) -> int:
    """Draw, say where the files are, and return the exit code."""
    given = _parser().read(words)
    require_matplotlib()
    asked = asked_for(given)
    frame, notes, metric, baseline = asked.frame, asked.notes, asked.metric, asked.baseline
    require_metric(frame, metric)
    if given.baseline is not None and given.baseline not in frame.groups:
        raise UnknownNameError("group", given.baseline, frame.groups, where="as baseline")
    scored, more = _scores(frame, metric, asked.at)
    comparisons = possible_comparisons(scored, baseline, metric=metric, statistic=given.statistic)
    plots = Plots(frame=frame, metric=metric, axis=given.axis, statistic=given.statistic)
    notes += more + (notes_on(scored) if comparisons else [])
    files = plots.write(given.to, scored=scored, comparisons=comparisons, notes=notes)
    for note in notes:
        print(f"Note: {one_line(note)}.")
    print(f"Written to {given.to}: {', '.join(file.name for file in files)}")
    return 0


def _scores(frame: RunFrame, metric: str, at: str | int) -> tuple[list[Scored], list[str]]:
    """The scores; none while no run is finished, for curves can be drawn before."""
    try:
        return group_scores(frame, metric=metric, at=at)
    except ConfigurationError as error:
        return [], [f"only curves are drawn: {error}"]


def _parser() -> Parser:
    parser = Parser(
        prog="coach plot",
        usage="coach plot FOLDER ... [flags]  or  coach plot STUDY.py [flags]",
        description="Draw the evaluations of runs, grouped by folder or by a study's variants: "
        "curves with a 95 % band over seeds, success of each level of a hierarchy, performance "
        "profiles, probabilities of improvement. Writes PNG, SVG, CSV and Markdown.",
    )
    add_groups(parser)
    add_scoring(parser)
    parser.add_argument(
        "--axis",
        metavar="AXIS",
        choices=["steps", "hours"],
        default="steps",
        help="what curves are drawn against: steps or hours (default: steps)",
    )
    parser.add_argument(
        "--to",
        metavar="FOLDER",
        type=Path,
        default=Path("plots"),
        help="the folder of the pictures (default: ./plots)",
    )
    return parser
