"""`coach study run|status|report FILE`: a study's runs, where they stand, and what they say.

`coach study export FILE` writes the records of its runs into one file, `import` reads them.
"""

import argparse
import shlex
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from coach_rl.cli.flag_values import positive
from coach_rl.cli.shell import program, short
from coach_rl.cli.subcommands import Parser
from coach_rl.core.errors import ConfigurationError, RunError

if TYPE_CHECKING:
    from coach_rl.studies.job import Job, JobResult


def run(words: Sequence[str]) -> int:
    """Read the words after `coach study` and obey them; returns the exit code."""
    given = _parser().read(words)
    commands = {
        "run": _run,
        "status": _status,
        "report": _report,
        "export": _export,
        "import": _import,
    }
    return commands[given.command](given)


def add_places(parser: argparse.ArgumentParser) -> None:
    """The flags that say where a study's runs are."""
    _add_root(parser)
    parser.add_argument(
        "--runs",
        metavar="FOLDER",
        dest="earlier",
        type=Path,
        action="append",
        default=[],
        help="take finished runs with the same parameters from here as well, however deep",
    )


def _add_root(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-ep",
        "--experiment_path",
        metavar="PATH",
        dest="root",
        type=Path,
        default=Path("experiments"),
        help="the folder of all experiments (default: ./experiments)",
    )


def _parser() -> Parser:
    shared = Parser(add_help=False)
    shared.add_argument(
        "file", metavar="FILE", help="a .py file with `study() -> Study`, or FILE.py:FUNCTION"
    )
    add_places(shared)
    parser = Parser(prog="coach study", description="Many runs that answer one question.")
    commands = parser.add_subparsers(
        dest="command", metavar="run|status|report|export|import", required=True
    )
    run = commands.add_parser("run", parents=[shared], help="make the runs that are missing")
    run.add_argument(
        "--jobs", metavar="N", type=positive, help="runs at once (default: as the machine carries)"
    )
    run.add_argument(
        "--on",
        metavar="PLACE",
        default="local",
        help="where to run: local (default), ray[:HOST:PORT] or slurm[:PARTITION]",
    )
    run.add_argument(
        "-ntb", "--no_tensorboard", action="store_true", help="write no TensorBoard files"
    )
    commands.add_parser("status", parents=[shared], help="say where each run stands")
    writing = commands.add_parser("report", parents=[shared], help="print the tables")
    writing.add_argument(
        "--write",
        metavar="PAGE",
        type=Path,
        nargs="*",
        help="write them between the study's marks in these pages, or in those that it names",
    )
    exporting = commands.add_parser(
        "export", parents=[shared], help="write the records of scored runs into one file"
    )
    exporting.add_argument(
        "--to", metavar="ARCHIVE", type=Path, help="the file (default: the study's name, .zip)"
    )
    importing = commands.add_parser("import", help="make run folders of records, for the tables")
    importing.add_argument(
        "archive", metavar="ARCHIVE", type=Path, help="what `export` has written"
    )
    _add_root(importing)
    return parser


def _run(given: argparse.Namespace) -> int:
    # Not at the top, here and below: these import torch, which takes seconds.
    from coach_rl.studies.places import check_place
    from coach_rl.studies.study import check_study, load_study
    from coach_rl.studies.study_runs import evaluate_missing, study_runs
    from coach_rl.studies.tables import report

    check_place(given.on)
    study = load_study(given.file)
    check_study(study)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    missing = [
        replace(run.job, tensorboard=not given.no_tensorboard) for run in runs if not run.is_done
    ]
    print(f"study {study.name}: {len(runs)} runs, {len(runs) - len(missing)} done")
    results = _conducted(missing, given) if missing else []
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    for run in evaluate_missing(study, runs):
        print(f"evaluating  {run.variant}, seed {run.seed}: {study.episodes} episodes")
    print(f"\n{report(study, runs, brief=True)}\n")
    print(f"run folders in {short((given.root / study.name).absolute())}")
    print(f"each run:   {program('coach')} study report {shlex.quote(given.file)}")
    failed = [each for each in results if each.state != "done"]
    if failed:
        others = f"; so did {', '.join(named(each.job) for each in failed[1:])}" * (len(failed) > 1)
        raise RunError(
            f"{len(failed)} of {len(runs)} runs failed: {named(failed[0].job)}: {failed[0].error}"
            f"{others}; the same command tries them again and leaves out what is done"
        )
    return 0


def _conducted(jobs: Sequence["Job"], given: argparse.Namespace) -> list["JobResult"]:
    """Run jobs while a table shows where they stand."""
    from coach_rl.studies.conduct import conduct
    from coach_rl.studies.live import LiveTable
    from coach_rl.studies.places import executor

    def warn(job: "Job", text: str) -> None:
        table.tell(f"coach: warning: {named(job)}: {text}")

    console = Console(no_color=given.plain, highlight=False)
    with (
        closing(LiveTable(console, plain=given.plain)) as table,
        closing(executor(given.on, jobs, at_once=given.jobs, on_warning=warn)) as pool,
    ):
        print(f"running:    {len(jobs)} runs, {pool.slots} at once")
        return conduct(
            jobs,
            pool,
            on_change=table.show,
            announce=lambda text: table.tell(f"coach: {text}"),
        )


def named(job: "Job") -> str:
    """A job's name for people."""
    return f"{job.labels['variant']} seed {job.task.seed}"


def _status(given: argparse.Namespace) -> int:
    from coach_rl.cli.tables import table_console
    from coach_rl.studies.study import load_study
    from coach_rl.studies.study_runs import StudyRun, study_runs
    from coach_rl.telemetry.tables import Column, rich_table, table

    study = load_study(given.file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)

    def state(run: StudyRun) -> str:
        return "missing" if run.scores is None else run.scores.state

    columns = (
        Column("variant", lambda run: run.variant, is_text=True),
        Column("seed", lambda run: run.seed),
        Column("state", state, is_text=True),
        Column("steps", lambda run: run.scores and run.scores.environment_steps, "{:,}".format),
        Column(
            study.metric, lambda run: run.scores and run.scores.last(study.metric), "{:,.4g}".format
        ),
        Column("run", lambda run: run.folder and short(run.folder.path), is_text=True),
    )
    table_console().print(rich_table(table(columns, runs), box=None, pad_edge=False))
    states = Counter(map(state, runs))
    print(", ".join(f"{count} {state}" for state, count in states.items()))
    return 0


def _report(given: argparse.Namespace) -> int:
    from coach_rl.studies.study import load_study
    from coach_rl.studies.study_runs import study_runs
    from coach_rl.studies.tables import report, write_blocks

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


def _export(given: argparse.Namespace) -> int:
    from coach_rl.studies.run_records import write_records
    from coach_rl.studies.study import load_study
    from coach_rl.studies.study_runs import study_runs

    study = load_study(given.file)
    runs = study_runs(study, root=given.root, earlier=given.earlier)
    scored = [run.folder for run in runs if run.folder and run.score(study) is not None]
    if not scored:
        raise ConfigurationError(
            f"the study '{study.name}' has no scored runs in {given.root / study.name}; "
            f"`coach study run {given.file}` makes them"
        )
    archive = given.to or Path(f"{study.name}.zip")
    write_records(archive, study.name, scored)
    print(f"{len(scored)} of {len(runs)} runs written to {short(archive)}")
    if len(scored) < len(runs):
        print(f"the others have no score: {program('coach')} study run {shlex.quote(given.file)}")
    return 0


def _import(given: argparse.Namespace) -> int:
    from coach_rl.studies.run_records import unpack_records

    new, were_there = unpack_records(given.archive, given.root)
    name = short((*new, *were_there)[0].path.parent)
    print(f"{len(new)} new runs in {name}, {len(were_there)} were there already")
    return 0
