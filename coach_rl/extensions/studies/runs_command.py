"""The commands about runs that exist: list, delete and watch them, and TensorBoard on them."""

import importlib.util
import os
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path

from rich.console import Console

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import console_of, program, short, table_console, word
from coach_rl.cli.train import resume_advice
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.shown_text import one_line, printable, readable
from coach_rl.extensions.studies.comparison import shown
from coach_rl.extensions.studies.live import (
    LiveTable,
    RunStatus,
    plan_from,
    run_status,
    runs_to_watch,
    watch,
    watch_all,
)
from coach_rl.extensions.studies.runs import (
    REWARD,
    ListedRun,
    list_runs,
    listed_run,
    selected,
    sort_keys,
)
from coach_rl.extensions.studies.scores import required_runs
from coach_rl.runs.folder import MANIFEST, ONLY_RECORDS, RunFolder, read_manifest, remove_run
from coach_rl.runs.lock import RunInUseError, holder_of
from coach_rl.sessions.session import DEFAULT_ROOT
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.tables import Column, rich_table, table

_FAILED = 1
_LEFT = 130
_AGES = (("d", 86400), ("h", 3600), ("min", 60))
_FIRST_PAGE = "#custom_scalars"
"""The page of TensorBoard with the charts that `telemetry.tensorboard` lays out."""


def show_runs(given: Given) -> int:
    """Print a table of the runs in a folder; the exit code."""
    named = given.folder or DEFAULT_ROOT
    metric = given.metric or REWARD
    required_runs(named, "name the folder of your experiments: `coach runs FOLDER`")
    folder = named.expanduser()
    runs = list_runs(folder)
    if metric not in (known := _metrics(runs)) and known:
        raise UnknownNameError("metric", metric, known)
    chosen = selected(
        runs,
        states=given.state or (),
        preset=given.preset or "",
        level=given.level or "",
        study=given.study or "",
    )
    chosen.sort(key=sort_keys(metric)[given.sort or "path"], reverse=given.reverse)
    console = table_console()
    found = table(_columns(folder, metric), chosen)
    style = {"box": None, "pad_edge": False, "header_style": "bold"}
    console.print(rich_table(found, folded=1, **style))
    total = readable(sum(each.size for each in chosen))
    console.print(f"{len(chosen)} of {len(runs)} runs, {total}; best and last: {metric}")
    for each in chosen:
        if each.damage:
            console.print(f"damaged: {one_line(each.damage)}")
    return 0


def _columns(folder: Path, metric: str) -> tuple[Column, ...]:
    """The columns of a list of the runs in a folder."""

    def state(each: ListedRun) -> str:
        holder = None if each.scores is None else each.scores.holder
        return each.state if holder is None else f"{each.state} on {holder.host}"

    def of_scores(name: str) -> Callable[[ListedRun], object]:
        return lambda each: None if each.scores is None else getattr(each.scores, name)

    def in_unit(value: float) -> str:
        return shown(value, metric)

    return (
        Column(
            "run",
            lambda each: each.path if each.path == folder else each.path.relative_to(folder),
            is_text=True,
        ),
        Column("task", of_scores("level"), is_text=True, missing="-"),
        Column("seed", of_scores("seed"), is_text=True, missing="-"),
        Column("state", state, is_text=True),
        Column("steps", of_scores("moments"), "{:,}".format, missing="-"),
        Column("best", lambda each: each.best(metric), in_unit, missing="-"),
        Column("last", lambda each: each.last(metric), in_unit, missing="-"),
        Column("size", lambda each: each.size, readable),
        Column("age", lambda each: each.age_seconds, _age),
    )


def _metrics(runs: Sequence[ListedRun]) -> set[str]:
    curves = [run.scores.curve.metrics for run in runs if run.scores is not None]
    return {name for metrics in curves for name in metrics}


def delete_runs(given: Given) -> int:
    """Delete runs, once the user agrees; the exit code."""
    if not given.runs:
        raise ConfigurationError("name the runs to delete: `coach runs rm RUN ...`")
    runs = {path.expanduser().absolute().resolve(): path for path in given.runs}
    for path, named in runs.items():
        if not (path / MANIFEST).exists():
            raise ConfigurationError(
                f"{named} is not a run's folder (with a manifest.json); nothing is deleted; `coach "
                "runs FOLDER` lists runs"
            )
        if (holder := holder_of(path)) is not None:
            raise RunInUseError(f"the run {named} is in use by {holder}; stop it first")
    sizes = {path: listed_run(path).size for path in runs}
    total = readable(sum(sizes.values()))
    count = f"{len(runs)} run{'s' * (len(runs) > 1)}"
    if not given.yes:
        for path, named in runs.items():
            print(f"{printable(str(named))}  {readable(sizes[path])}")
        _confirm(f"Delete {count}, {total}? [y/N] ")
    for path in runs:
        remove_run(RunFolder(path))
    print(f"deleted {count}, {total}")
    return 0


def _confirm(question: str) -> None:
    """Raise `ConfigurationError` unless the user agrees."""
    if not sys.stdin.isatty():
        raise ConfigurationError("no terminal to confirm on, so nothing is deleted; give --yes")
    if input(question).strip().lower() not in ("y", "yes"):
        raise ConfigurationError("nothing is deleted")


def _age(seconds: float) -> str:
    for unit, length in _AGES:
        if seconds >= length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} s"


def watch_runs(given: Given) -> int:
    """Show runs until they are over; the exit code."""
    runs = runs_to_watch(given.paths or [DEFAULT_ROOT])
    console = console_of(plain=given.plain)
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
    ending = status.state + (f": {status.reason}" if status.reason else "")
    if is_imported:
        return f"{ending}; imported without its checkpoints"
    if status.state == "done":
        path = word(folder.absolute())
        return f"{ending}; evaluate with: {program('coach')} --evaluate -crd {path}"
    return f"{ending}{resume_advice(folder)}"


def show_dashboard(given: Given) -> int:
    """Serve until interrupted; the exit code."""
    folders = given.folders or [DEFAULT_ROOT]
    count = sum(_runs_to_show(folder) for folder in folders)
    try:
        with tempfile.TemporaryDirectory(prefix="coach-dashboard-") as links:
            url = _launch(_log_folder(folders, Path(links)), given.host, given.port)
            signal.signal(signal.SIGTERM, signal.default_int_handler)
            print(f"{count} run{'s' * (count > 1)} in {', '.join(map(short, folders))}")
            print(f"dashboard:  {url}{_FIRST_PAGE}  (Ctrl-C ends it)", flush=True)
            threading.Event().wait()
    except KeyboardInterrupt:
        print("\ndashboard ended")
    return 0


def _runs_to_show(folder: Path) -> int:
    """The number of runs in a folder that have something for TensorBoard.

    Raises:
        ConfigurationError: There are none.
    """
    runs = required_runs(
        folder,
        "give the folder of a run, an experiment or a study, such as experiments/NAME (`coach runs "
        "FOLDER` lists runs)",
    )
    shown = sum(any(run.glob("events.out.tfevents.*")) for run in runs)
    if not shown:
        raise ConfigurationError(
            f"the {len(runs)} runs in {folder} have no TensorBoard files: they were made with -ntb "
            "or have only begun; `coach plot` draws their evaluations"
        )
    return shown


def _log_folder(folders: Sequence[Path], links: Path) -> Path:
    """One folder with everything: a folder of experiments or runs itself, else links to them.

    TensorBoard names a run by its path below that folder, so a single run needs one above it.
    """
    paths = sorted({folder.expanduser().resolve() for folder in folders})
    paths = [path for path in paths if not any(other in path.parents for other in paths)]
    if len(folders) == 1 and not (paths[0] / "manifest.json").exists():
        return folders[0].expanduser()
    shared = Path(os.path.commonpath([path.parent for path in paths]))
    for path in paths:
        link = links / path.relative_to(shared)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path, target_is_directory=True)
    return links


def _launch(folder: Path, host: str | None, port: int | None) -> str:
    """Start TensorBoard in a thread; its address."""
    # Not at the top: this takes a second, and the package may be missing.
    from tensorboard.program import TensorBoard, TensorBoardServerException

    server = TensorBoard()
    where = {"host": host, "port": port}
    given = {name: value for name, value in where.items() if value is not None}
    # TensorBoard finds this out by itself as well, but not without a note about it.
    has_fast_loader = importlib.util.find_spec("tensorboard_data_server") is not None
    server.configure(logdir=str(folder), load_fast=str(has_fast_loader).lower(), **given)
    try:
        return str(server.launch())
    except SystemExit as error:  # it has printed why
        raise ConfigurationError(
            f"TensorBoard cannot listen at {host or 'localhost'}; choose another --host, or leave "
            "it out"
        ) from error
    except TensorBoardServerException as error:
        message = str(error.msg).strip().rstrip(".")
        raise ConfigurationError(
            f"TensorBoard cannot be started: {message}; choose another --port or --host, or leave "
            "them out"
        ) from error
