"""`coach watch RUN`: the live panel of a run of another process or host."""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from coach_rl.cli.run_report import resume_advice
from coach_rl.cli.shell import program, short, word
from coach_rl.cli.subcommands import Parser
from coach_rl.core.printable_text import printable
from coach_rl.runs.folder import ONLY_RECORDS, RunFolder, read_manifest
from coach_rl.studies.live import (
    LiveTable,
    RunStatus,
    plan_from,
    run_status,
    runs_to_watch,
    watch,
    watch_all,
)
from coach_rl.telemetry.console import ConsoleSink

_FAILED, _LEFT = 1, 130


def run(words: Sequence[str]) -> int:
    """Watch until the runs are over, and return the exit code."""
    given = _parser().read(words)
    runs = runs_to_watch(given.paths or [Path("experiments")])
    console = Console(no_color=given.plain, highlight=False)
    try:
        if len(runs) > 1:
            with closing(LiveTable(console, plain=given.plain)) as table:
                states = watch_all(runs, table)
            return _FAILED if "failed" in states else 0
        return _watch(runs[0], console, plain=given.plain)
    except KeyboardInterrupt:
        print("no longer watching; what runs is not affected")
        return _LEFT


def _watch(folder: Path, console: Console, *, plain: bool) -> int:
    manifest = read_manifest(RunFolder(folder))
    status = run_status(folder)
    print(f"watching:   {printable(manifest['name'])}, seed {manifest['task']['seed']}")
    print(f"run folder: {short(folder.absolute())}")
    if status.state == "running":
        print(f"running:    {status.reason}")
    with closing(ConsoleSink(console=console, plain=plain)) as sink:
        plan_from(sink, folder)
        status = watch(folder, sink)
    print(_ending(folder, status, is_imported=ONLY_RECORDS in manifest))
    return _FAILED if status.state == "failed" else 0


def _ending(folder: Path, status: RunStatus, *, is_imported: bool) -> str:
    said = status.state + (f": {status.reason}" if status.reason else "")
    if is_imported:
        return f"{said}; imported without its checkpoints"
    if status.state == "done":
        path = word(folder.absolute())
        return f"{said}; evaluate with: {program('coach')} --evaluate -crd {path}"
    return f"{said}{resume_advice(folder)}"


def _parser() -> Parser:
    parser = Parser(
        prog="coach watch",
        usage="coach watch [RUN ...] [flags]",
        description="Show a run of another process or host, as its folder tells, until it ends. "
        "Exit code 1 if it failed.",
    )
    parser.add_argument(
        "paths",
        metavar="RUN",
        nargs="*",
        type=Path,
        help="a run's folder, or a folder of runs (default: ./experiments): what runs in it, in a "
        "table if that are several, or else its newest run",
    )
    return parser
