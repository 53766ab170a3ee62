"""`coach compare A B`: the difference between groups of runs, if it is more than chance."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from coach_rl.cli.studies import add_places
from coach_rl.cli.subcommands import Parser
from coach_rl.cli.tables import table_console
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.printable_text import one_line
from coach_rl.studies.comparison import (
    compare,
    comparison_table,
    notes_on,
    overall_improvement,
    score_table,
)
from coach_rl.studies.runs import (
    AFTERWARDS,
    FINAL,
    IQM,
    MOMENTS,
    RunFrame,
    default_metric,
    find_runs,
    group_scores,
)
from coach_rl.studies.statistics import STATISTICS
from coach_rl.studies.study import load_study
from coach_rl.studies.study_runs import study_frame, study_runs
from coach_rl.telemetry.tables import markdown, rich_table


def run(words: Sequence[str]) -> int:
    """Compare, print, and return the exit code."""
    given = _parser().read(words)
    asked = asked_for(given)
    notes, metric = asked.notes, asked.metric
    scored, left_out = group_scores(asked.frame, metric=metric, at=asked.at)
    names = list(dict.fromkeys(each.group for each in scored))
    baseline = asked.baseline or names[-1]
    found = compare(scored, baseline, metric=metric, statistic=given.statistic)
    notes += [*left_out, *notes_on(scored)]
    title = f"{metric} {said(asked.at)}"
    tables = [score_table(scored, metric=metric, title=title), comparison_table(found)]
    console = table_console()
    chosen = "" if asked.baseline else ", the last group; --baseline NAME chooses another"
    console.print(f"Baseline: {baseline}{chosen}", end="\n\n" if given.markdown else "\n")
    if given.markdown:
        console.print(*map(markdown, tables), sep="\n\n")
    else:
        console.print(*map(rich_table, tables), sep="")
    console.print()
    for each in found:
        console.print(f"On {each.level}: {each.verdict()}.")
    for group in dict.fromkeys(each.group for each in found):
        over = overall_improvement(scored, group, baseline)
        if over is not None and over[0].low is not None:
            chance, levels = over
            console.print(
                f"Over {levels} levels, a run of {group} scores higher than one of {baseline} with "
                f"a probability of {chance.value:.2f} (95 % interval {chance.low:.2f} to "
                f"{chance.high:.2f})."
            )
    for note in notes:
        console.print(f"Note: {one_line(note)}.")
    return 0


@dataclass(frozen=True)
class Asked:
    """The groups that are asked for, and what scores their runs."""

    frame: RunFrame
    notes: list[str]
    metric: str
    baseline: str | None
    at: str | int


def asked_for(given: argparse.Namespace) -> Asked:
    """The groups in the folders, or the variants of a study with what counts in it.

    Raises:
        ConfigurationError: There are no runs, or a study stands beside something else.
    """
    files = [word for word in given.folders if re.search(r"\.py(:\w*)?$", word)]
    if not files:
        if given.earlier:
            raise ConfigurationError("--runs adds runs to a study; name its file, or leave it out")
        frame, notes = find_runs([Path(word) for word in given.folders])
        metric = given.metric or default_metric(frame)
        return Asked(frame, notes, metric, given.baseline, given.at or FINAL)
    if len(given.folders) > 1:
        raise ConfigurationError(
            f"the study {files[0]} names all that is compared; give it alone, or folders"
        )
    study = load_study(files[0])
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    frame = study_frame(study, runs)
    if not frame.rows:
        raise ConfigurationError(
            f"the study '{study.name}' has no runs in {given.root / study.name}; `coach study run "
            f"{files[0]}` makes them, and -ep names another folder of all experiments"
        )
    missing = sum(run.scores is None for run in runs)
    notes = [f"{missing} of {len(runs)} runs have not begun"] if missing else []
    at = given.at or (FINAL if study.episodes is None else AFTERWARDS)
    metric, baseline = given.metric or study.metric, given.baseline
    if baseline is None and study.baseline in frame.groups:
        baseline = study.baseline
    return Asked(frame, notes, metric, baseline, at)


def add_groups(parser: argparse.ArgumentParser) -> None:
    """The words and flags that say which runs."""
    parser.add_argument(
        "folders",
        metavar="FOLDER",
        nargs="+",
        help="a group of runs each, or one folder whose folders, or whose study's variants, are "
        "the groups; or a study's file, STUDY.py",
    )
    add_places(parser)


def add_scoring(parser: argparse.ArgumentParser) -> None:
    """The flags that say what scores a run."""
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="a metric of evaluations: reward_mean, success_rate, low/goal_share, ... (default: "
        "success_rate where all runs report it, otherwise reward_mean)",
    )
    parser.add_argument(
        "--at",
        metavar="WHEN",
        type=moment,
        help="the evaluation that scores a run: final, last (while training), afterwards (made by "
        "`coach evaluate`), or a number of environment steps (default: final)",
    )
    parser.add_argument(
        "--statistic",
        metavar="NAME",
        choices=list(STATISTICS),
        default=IQM,
        help="iqm, the mean of the middle half of the seeds, or mean (default: iqm)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="the group that the others are compared with (default: the last one)",
    )


def moment(word: str) -> str | int:
    """An evaluation, as after `--at`."""
    if word in MOMENTS:
        return word
    digits = word.replace("_", "").replace(",", "")
    if not digits.isdecimal():
        raise argparse.ArgumentTypeError(
            f"'{word}' is none of {', '.join(MOMENTS)} and no number of environment steps"
        )
    return int(digits)


def said(at: str | int) -> str:
    """An evaluation, for a title."""
    return f"of {MOMENTS[at]}" if isinstance(at, str) else f"after {at:,} environment steps"


def _parser() -> Parser:
    parser = Parser(
        prog="coach compare",
        usage="coach compare FOLDER FOLDER ... [flags]  or  coach compare STUDY.py [flags]",
        description="Compare groups of runs: by how much they differ, with a 95 % interval over "
        "seeds, and the probability that a run of one scores higher than one of the other. Where "
        "the interval holds zero, no difference is reported.",
    )
    add_groups(parser)
    add_scoring(parser)
    parser.add_argument("--markdown", action="store_true", help="print tables as Markdown")
    return parser
