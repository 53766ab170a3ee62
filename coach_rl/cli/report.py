"""`coach report STUDY.py`: a study's report as one HTML file."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from coach_rl.cli.shell import short
from coach_rl.cli.studies import add_places
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError


def run(words: Sequence[str]) -> int:
    """Write the page, say where it is, and return the exit code."""
    given = _parser().read(words)
    if Path(given.file).is_dir():
        raise ConfigurationError(
            f"'{given.file}' is a folder; give the study's file, which says what is compared "
            "(for runs without one there are `coach compare` and `coach plot`)"
        )
    # Not at the top: these import torch, which takes seconds.
    from coach_rl.experiment.strict_json import write_text
    from coach_rl.studies.plots import require_matplotlib
    from coach_rl.studies.report_page import report_page
    from coach_rl.studies.study_file import load_study
    from coach_rl.studies.study_runs import study_runs

    require_matplotlib()
    study = load_study(given.file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    to = given.to or Path(f"{study.name}.html")
    if to.is_dir():
        to = to / f"{study.name}.html"
    page = report_page(study, runs, file=given.file, when=datetime.now().astimezone())
    try:
        to.parent.mkdir(parents=True, exist_ok=True)
        write_text(to, page)
    except OSError as error:
        raise ConfigurationError(
            f"cannot write the report to {to}: {error.strerror}; choose another file with --to"
        ) from error
    missing = sum(each.score(study) is None for each in runs)
    if missing:
        print(f"missing:    {missing} of {len(runs)} runs (`coach study run {given.file}`)")
    print(f"written to  {short(to.absolute())}")
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="coach report",
        usage="coach report STUDY.py [flags]",
        description="Write the report of a study as one HTML file with its pictures inside: the "
        "answer, tables with intervals, curves, resources, how to make each run again. It opens "
        "without a server or a network.",
    )
    parser.add_argument(
        "file",
        metavar="STUDY.py",
        help="a study's file, or STUDY.py:FUNCTION; it may be unfinished",
    )
    add_places(parser)
    parser.add_argument(
        "--to", metavar="FILE", type=Path, help="the file to write (default: STUDY'S NAME.html)"
    )
    return parser
