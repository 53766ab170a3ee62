"""The run, and the one of its checkpoints, that a path means."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, newest_whole
from coach_rl.runs.folder import MANIFEST, RunFolder, read_manifest


def find_folder(run: Path) -> RunFolder:
    """The folder of the run that a path names; its manifest and checkpoints are not read.

    Raises:
        ConfigurationError: The path is neither a run's folder nor one of its checkpoints.
    """
    return _named(run)[0]


def find_run(run: Path, *, last_good: bool = False) -> tuple[RunFolder, Path | None]:
    """The run's folder and the checkpoint a path names; None where there is none yet.

    Args:
        run: A run's folder (its last checkpoint), one of its checkpoints, or `RUN@STEP`: after so
            many environment steps, or by its name (`RUN@best`). A folder of runs, also with
            `@STEP`, means the newest of them.
        last_good: Whether to take the newest checkpoint of the run that can be read.

    Raises:
        ConfigurationError: The path is neither a run's folder nor one of its checkpoints.
        CheckpointError: The pointer to the checkpoint is damaged, or no checkpoint can be read.
    """
    folder, name = _named(run)
    if name is None and not list_checkpoints(folder.checkpoints):
        return folder, None
    if last_good:
        return folder, _last_good(folder)
    with offering_last_good(folder):
        return folder, find_checkpoint(folder.checkpoints, *(() if name is None else (name,)))


def _named(run: Path) -> tuple[RunFolder, str | None]:
    """The run's folder and the name of the checkpoint in a path; None where it names none."""
    path, name = _split(in_newest_run(run)[0].expanduser().absolute())
    if name is not None:
        name = f"step_{name}" if name.isdecimal() else name
    folder = RunFolder(path)
    if not os.path.lexists(folder.manifest):
        folder, name = RunFolder(path.parent.parent), path.name
        if path.parent != folder.checkpoints or not os.path.lexists(folder.manifest):
            raise _no_run(run.expanduser().absolute())
    return folder, name


@contextmanager
def offering_last_good(folder: RunFolder) -> Iterator[None]:
    """CheckpointErrors inside, about a checkpoint or a pointer, end in the offer of a good one."""
    try:
        yield
    except CheckpointError as error:
        good = newest_whole(folder.checkpoints)
        if good is None:
            raise
        raise CheckpointError(
            f"{error}; the newest good checkpoint of the run is {good.name}: take it with "
            "--last_good"
        ) from error


def in_newest_run(run: Path) -> tuple[Path, list[Path]]:
    """A path in which a folder of runs is replaced by its newest run; also the runs in it.

    Args:
        run: `EXPERIMENT`, `EXPERIMENT@STEP`, or any other path, which stays as it is.
    """
    folder, step = _split(run)
    runs = runs_in(folder)
    if not runs:
        return run, []
    return (runs[-1] if step is None else Path(f"{runs[-1]}@{step}")), runs


def runs_in(folder: Path) -> list[Path]:
    """The runs right below a folder, in the order in which they were begun."""
    runs = [manifest.parent for manifest in folder.expanduser().glob(f"*/{MANIFEST}")]
    return sorted(runs, key=lambda run: (read_manifest(RunFolder(run))["created"], run.name))


def _split(path: Path) -> tuple[Path, str | None]:
    """A path without `@STEP`, and the step; None where it has none."""
    if path.expanduser().exists() or "@" not in path.name:
        return path, None
    name, _, step = path.name.rpartition("@")
    return path.with_name(name or path.name), step


def _no_run(path: Path) -> ConfigurationError:
    """The error about a path that means no run, with the experiments that there are in it."""
    folder = path if path.exists() else path.with_name(path.name.rpartition("@")[0] or path.name)
    experiments = sorted({found.parent.parent.name for found in folder.glob(f"*/*/{MANIFEST}")})
    advice = "`coach runs FOLDER` lists those in a folder"
    if experiments:
        advice = f"there are runs of the experiments {', '.join(experiments)} in it; name one"
    return ConfigurationError(
        f"{path} is neither a run's folder (with a manifest.json) nor a checkpoint in one; {advice}"
    )


def _last_good(folder: RunFolder) -> Path:
    good = newest_whole(folder.checkpoints)
    if good is None:
        raise CheckpointError(f"no checkpoint in {folder.checkpoints} can be read")
    return good
