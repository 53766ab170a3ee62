"""`coach study run|status|report FILE`: a study's runs, where they stand, and what they say."""

import argparse
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console
from rich.table import Table

from coach_rl.cli.flag_values import positive
from coach_rl.cli.shell import program, short
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError, RunError

_USAGE = """coach study run FILE [--jobs N] [--on PLACE] [flags]
       coach study status FILE [flags]
       coach study report FILE [--write [PAGE ...]] [flags]"""


def run(words: Sequence[str]) -> int:
    """Read the words after `coach study` and obey them; returns the exit code."""
    given = _parser().parse_args(words)
    if given.command != "run" and (given.jobs is not None or given.on is not None):
        raise ConfigurationError(
            f"`coach study {given.command}` runs nothing; leave out --jobs, --on"
        )
    if given.command != "report" and given.write is not None:
        raise ConfigurationError(f"`coach study {given.command}` has no report; leave out --write")
    return {"run": _run, "status": _status, "report": _report}[given.command](given)


def _parser() -> Parser:
    parser = Parser(
        prog="coach study",
        usage=_USAGE,
        description="Run what a study's file asks for, say where it stands, write its tables.",
    )
    parser.add_argument("command", choices=["run", "status", "report"], help="what to do")
    parser.add_argument(
        "file", metavar="FILE", help="a .py file with `study() -> Study`, or FILE.py:FUNCTION"
    )
    parser.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        dest="root",
        type=Path,
        default=Path("experiments"),
        help="the folder of all experiments (default: ./experiments)",
    )
    parser.add_argument(
        "--runs",
        metavar="FOLDER",
        dest="earlier",
        type=Path,
        nargs="+",
        default=[],
        help="take finished runs with the same parameters from here, however deep",
    )
    running = parser.add_argument_group("with run")
    running.add_argument(
        "--jobs", metavar="N", type=positive, help="runs at once (default: as the machine carries)"
    )
    running.add_argument(
        "--on", metavar="PLACE", help="where to run: local (default), ray[:ADDRESS] or slurm"
    )
    running.add_argument(
        "--plain", action="store_true", help="plain lines instead of a live, coloured table"
    )
    writing = parser.add_argument_group("with report")
    writing.add_argument(
        "--write",
        metavar="PAGE",
        type=Path,
        nargs="*",
        help="write it between the study's marks in these pages (default: those it names)",
    )
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    return parser


def _run(given: argparse.Namespace) -> int:
    # Not at the top, here and below: these import torch, which takes seconds.
    from coach_rl.studies.conduct import conduct
    from coach_rl.studies.live_table import LiveTable
    from coach_rl.studies.study_file import load_study
    from coach_rl.studies.study_jobs import check_study
    from coach_rl.studies.study_runs import evaluate_missing, study_runs
    from coach_rl.studies.study_tables import report
    from coach_rl.studies.where import LOCAL, executor

    study = load_study(given.file)
    check_study(study)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    missing = [run.job for run in runs if not run.is_done]
    print(f"study {study.name}: {len(runs)} runs, {len(runs) - len(missing)} done")
    results = []
    if missing:
        console = Console(no_color=given.plain, highlight=False)
        with (
            closing(executor(given.on or LOCAL, given.jobs, needs=study.needs)) as pool,
            closing(LiveTable(console, plain=given.plain)) as table,
        ):
            results = conduct(missing, pool, on_change=table.show)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    for run in evaluate_missing(study, runs):
        print(f"evaluating  {run.variant}, seed {run.seed}: {study.episodes} episodes")
    print(f"\n{report(study, runs, brief=True)}\n")
    print(f"run folders: {short(given.root / study.name)}")
    print(f"report:      {program('coach')} study report {given.file}")
    failed = sum(result.state == "failed" for result in results)
    if failed:
        raise RunError(f"{failed} of {len(runs)} runs failed; the same command tries them again")
    return 0


def _status(given: argparse.Namespace) -> int:
    from coach_rl.studies.study_file import load_study
    from coach_rl.studies.study_runs import study_runs

    study = load_study(given.file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    table = Table(box=None, pad_edge=False)
    for name in ("variant", "seed", "state", "steps", study.metric, "run"):
        table.add_column(name, justify="right" if name in ("seed", "steps") else "left")
    for run in runs:
        scores = run.scores
        last = None if scores is None else scores.last(study.metric)
        table.add_row(
            run.variant,
            str(run.seed),
            "missing" if scores is None else scores.state,
            "" if scores is None else f"{scores.environment_steps:,}",
            "" if last is None else f"{last:,.4g}",
            "" if run.folder is None else short(run.folder.path),
        )
    Console(highlight=False, soft_wrap=True).print(table)
    states = Counter("missing" if run.scores is None else run.scores.state for run in runs)
    print(", ".join(f"{count} {state}" for state, count in states.items()))
    return 0


def _report(given: argparse.Namespace) -> int:
    from coach_rl.studies.marked_blocks import write_blocks
    from coach_rl.studies.study_file import load_study
    from coach_rl.studies.study_runs import study_runs
    from coach_rl.studies.study_tables import report

    study = load_study(given.file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    text = report(study, runs)
    print(text)
    if given.write is not None:
        pages = given.write or [Path(page) for page in study.pages]
        if not pages:
            raise ConfigurationError(
                f"the study '{study.name}' names no pages; give --write PAGE or Study(pages=...)"
            )
        scored = sum(run.score(study) is not None for run in runs)
        for page in write_blocks(pages, study.name, text, runs=scored):
            print(f"written to {short(page)}")
    return 0
