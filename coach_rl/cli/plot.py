"""`coach plot FOLDER`: curves, profiles and probabilities of improvement of groups of runs."""

from collections.abc import Sequence
from pathlib import Path

from coach_rl.cli.compare import add_scoring
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.studies.comparison import Comparison, compare, notes_on
from coach_rl.studies.plots import Plots, require_matplotlib
from coach_rl.studies.run_groups import (
    RunGroup,
    Scored,
    default_metric,
    find_groups,
    group_scores,
    require_metric,
)


def run(words: Sequence[str]) -> int:
    """Draw, say where the files are, and return the exit code."""
    given = _parser().parse_args(words)
    require_matplotlib()
    groups, notes = find_groups(given.folders)
    metric = given.metric or default_metric(groups)
    require_metric(groups, metric)
    names = [group.name for group in groups]
    if given.baseline is not None and given.baseline not in names:
        raise UnknownNameError("group as baseline", given.baseline, names)
    scored, more = _scores(groups, metric, given.at)
    comparisons = _comparisons(scored, given.baseline, metric, given.statistic)
    plots = Plots(groups=groups, metric=metric, axis=given.axis, statistic=given.statistic)
    notes += more + (notes_on(scored) if comparisons else [])
    files = plots.write(given.to, scored=scored, comparisons=comparisons, notes=notes)
    for note in notes:
        print(f"Note: {note}.")
    print(f"Written to {given.to}: {', '.join(file.name for file in files)}")
    return 0


def _scores(
    groups: Sequence[RunGroup], metric: str, at: str | int
) -> tuple[list[Scored], list[str]]:
    """The scores; none while no run is finished, for curves can be drawn before."""
    try:
        return group_scores(groups, metric=metric, at=at)
    except ConfigurationError as error:
        return [], [f"only curves are drawn: {error}"]


def _comparisons(
    scored: Sequence[Scored], baseline: str | None, metric: str, statistic: str
) -> list[Comparison]:
    """The comparisons; none where there is nothing to compare."""
    names = list(dict.fromkeys(each.group for each in scored))
    levels = [{each.level for each in scored if each.group == name} for name in names]
    baseline = baseline if baseline in names else names[-1] if names else None
    if baseline is None or len(names) < 2:
        return []
    others = [own for name, own in zip(names, levels, strict=True) if name != baseline]
    if not levels[names.index(baseline)] & set[str]().union(*others):
        return []
    return compare(scored, baseline, metric=metric, statistic=statistic)


def _parser() -> Parser:
    parser = Parser(
        prog="coach plot",
        usage="coach plot FOLDER ... [flags]",
        description="Draw the evaluations of runs, grouped by folder or by a study's variants: "
        "curves with a 95 % band over seeds, success of each level of a hierarchy, performance "
        "profiles, probabilities of improvement. Writes PNG, SVG, CSV and Markdown.",
    )
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        type=Path,
        help="runs, experiments or studies; of one folder, the folders in it are the groups",
    )
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
