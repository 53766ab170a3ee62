"""`coach report STUDY.py` and `coach report FOLDER ...`: a report as one HTML file."""

import argparse
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from coach_rl.cli.shell import short
from coach_rl.cli.studies import add_places
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError, UnknownNameError


def run(words: Sequence[str]) -> int:
    """Write the page, say where it is, and return the exit code."""
    given = _parser().read(words)
    # Not at the top, here and below: these import torch, which takes seconds.
    from coach_rl.studies.plots import require_matplotlib

    of_folders = [each for each in given.what if not re.search(r"\.py(:\w+)?$", each)]
    if of_folders and len(of_folders) < len(given.what):
        other = next(each for each in given.what if each not in of_folders)
        raise ConfigurationError(
            f"'{other}' is no folder; give folders of runs alone, or a study's file alone"
        )
    if not of_folders and len(given.what) > 1:
        raise ConfigurationError(
            f"a report is of one study, got {', '.join(given.what)}; give one file, or folders"
        )
    require_matplotlib()
    return _folders(given) if of_folders else _study(given)


def _study(given: argparse.Namespace) -> int:
    from coach_rl.studies.report import report_page
    from coach_rl.studies.study import load_study
    from coach_rl.studies.study_runs import study_runs

    for flag in ("metric", "baseline"):
        if getattr(given, flag) is not None:
            raise ConfigurationError(f"--{flag} is for folders; a study's file states its own")
    (file,) = given.what
    study = load_study(file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    page = report_page(study, runs, file=file, when=datetime.now().astimezone())
    if study.baseline is not None:
        print(f"baseline:   {study.baseline}")
    missing = sum(each.score(study) is None for each in runs)
    if missing:
        print(f"missing:    {missing} of {len(runs)} runs (`coach study run {file}`)")
    _write(page, given.to, study.name)
    return 0


def _folders(given: argparse.Namespace) -> int:
    from coach_rl.studies.report import folders_page
    from coach_rl.studies.runs import default_metric, find_runs, group_scores

    if given.earlier:
        raise ConfigurationError("--runs adds runs to a study; name its file, or leave it out")
    frame, notes = find_runs([Path(each) for each in given.what])
    metric = given.metric or default_metric(frame)
    scored, left_out = group_scores(frame, metric=metric)
    baseline, text = baseline_of([each.group for each in scored], given.baseline)
    page = folders_page(
        frame,
        scored,
        metric=metric,
        baseline=baseline,
        notes=[*notes, *left_out],
        folders=given.what,
        when=datetime.now().astimezone(),
    )
    print(text)
    for note in (*notes, *left_out):
        print(f"note:       {note}")
    name = Path(given.what[0]).resolve().name if len(given.what) == 1 else "report"
    _write(page, given.to, name)
    return 0


def baseline_of(names: Sequence[str], asked: str | None) -> tuple[str | None, str]:
    """The group that the others are compared with, and a line that names it.

    Args:
        names: The groups that have scores, in their order.
        asked: The group that was asked for; None: the last one.

    Raises:
        UnknownNameError: There is no such group.
    """
    names = list(dict.fromkeys(names))
    if asked is not None:
        if asked not in names:
            raise UnknownNameError("group", asked, names, where="as baseline")
        return asked, f"baseline:   {asked}"
    if len(names) < 2:
        return None, f"baseline:   none, because there is only one group, {names[0]}"
    line = f"baseline:   {names[-1]}, the last group; --baseline NAME chooses another"
    return names[-1], line


def _write(page: str, to: Path | None, name: str) -> None:
    from coach_rl.configuration.strict_json import write_text

    to = to or Path(f"{name}.html")
    if to.is_dir():
        to = to / f"{name}.html"
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_text(to, page)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the report to {to}: {error.strerror}; choose another file with --to"
        ) from error
    print(f"written to  {short(to.absolute())}")


def _parser() -> Parser:
    parser = Parser(
        prog="coach report",
        usage="coach report STUDY.py [flags]  or  coach report FOLDER ... [flags]",
        description="Write the report of a study, or of groups of runs in folders, as one HTML "
        "file with its pictures inside: the answer, tables with intervals, curves, resources, how "
        "to make each run again. It opens without a server or a network.",
    )
    parser.add_argument(
        "what",
        metavar="STUDY.py|FOLDER",
        nargs="+",
        help="a study's file, or STUDY.py:FUNCTION, which may be unfinished; or a folder for each "
        "group of runs, or one whose folders are the groups",
    )
    add_places(parser)
    parser.add_argument(
        "--metric",
        metavar="NAME",
        help="for folders: a metric of evaluations (default: success_rate where all runs report "
        "it, otherwise reward_mean)",
    )
    parser.add_argument(
        "--baseline",
        metavar="NAME",
        help="for folders: the group that the others are compared with (default: the last one)",
    )
    parser.add_argument(
        "--to",
        metavar="FILE",
        type=Path,
        help="the file to write (default: NAME.html, with the name of the study or of the only "
        "folder, else report.html)",
    )
    return parser
