"""`coach dashboard FOLDER ...`: TensorBoard on runs, experiments and studies."""

import importlib.util
import os
import signal
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.shell import short
from coach_rl.core.errors import ConfigurationError
from coach_rl.sessions.runner import DEFAULT_ROOT
from coach_rl.studies.scores import runs_below

_FIRST_PAGE = "#custom_scalars"
"""The page of TensorBoard with the charts that `telemetry.tensorboard_layout` lays out."""


def show_dashboard(given: Given) -> int:
    """Serve until interrupted; the exit code."""
    if importlib.util.find_spec("tensorboard") is None:
        raise ConfigurationError(
            "the package tensorboard is missing; `pip install 'tensorboard>=2.21'` installs it"
        )
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
    path = folder.expanduser()
    if not path.is_dir():
        what = "is a file" if path.exists() else "does not exist"
        raise ConfigurationError(
            f"{folder} {what}; give the folder of a run, an experiment or a study, such as "
            "experiments/NAME"
        )
    runs = runs_below(path)
    if not runs:
        raise ConfigurationError(
            f"{folder} holds no runs; give the folder of a run, an experiment or a study "
            "(`coach runs FOLDER` lists runs)"
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
    from tensorboard.program import (  # type: ignore[import-untyped]  # has no types
        TensorBoard,
        TensorBoardServerException,
    )

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
