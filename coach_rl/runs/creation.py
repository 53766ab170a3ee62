"""Making a run's folder, and deleting it: it appears in one step, and disappears in one.

So there is never one without a manifest. Folders that are not finished have names of their own.
"""

import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import psutil  # type: ignore[import-untyped]

from coach_rl.configuration.strict_json import Json, write_text
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.file_writing import sync
from coach_rl.core.level_name import folder_name
from coach_rl.runs.folder import PRESET_COPY, RunFolder, write_manifest
from coach_rl.runs.lock import locked


def create_run_folder(
    root: Path,
    name: str,
    manifest: Json,
    preset_source: str | None,
    *,
    fill: Callable[[RunFolder], None] | None = None,
) -> RunFolder:
    """A new folder under `root/name`, with its manifest and the preset's source already in it.

    What processes that died here have left unfinished is removed.

    Args:
        root: The folder of all experiments.
        name: The experiment's name, one folder name.
        manifest: What `make_manifest` returned.
        preset_source: The preset's source; None for an experiment without a preset.
        fill: Puts more into the folder before it appears; None for nothing.

    Raises:
        ConfigurationError: The folder cannot be written.
    """
    check_name(name)
    parent = root / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        _remove_unfinished(parent)
        unfinished = parent / f"{_unfinished()}{os.getpid()}-{secrets.token_hex(4)}"
        unfinished.mkdir()
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the experiment folder {parent}: {error}; choose another with -ep"
        ) from error
    try:
        if preset_source is not None:
            write_text(unfinished / PRESET_COPY, preset_source)
        write_manifest(RunFolder(unfinished), manifest)
        if fill is not None:
            fill(RunFolder(unfinished))
        return RunFolder(_publish(unfinished, parent, manifest))
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def remove_run(folder: RunFolder) -> None:
    """Delete a run; it disappears in one step, and what a kill leaves of it is removed later.

    Raises:
        RunInUseError: A process holds it.
        ConfigurationError: It cannot be deleted.
    """
    parent = folder.path.parent
    try:
        with locked(folder.path):
            gone = Path(tempfile.mkdtemp(prefix=f"{_unfinished()}{os.getpid()}-", dir=parent))
            os.rename(folder.path, gone / folder.path.name)
        shutil.rmtree(gone)
    except OSError as error:
        raise ConfigurationError(
            f"the run {folder.path} cannot be deleted: {error.strerror}"
        ) from error


def check_name(name: str) -> None:
    """Raise `ConfigurationError` unless `name` can be the name of one folder."""
    if not re.fullmatch(r"\w[\w .+=@-]*", name):
        raise ConfigurationError(
            f"the experiment name {name!r} cannot name a folder; use letters, digits and . _ "
            "- + = @"
        )


def _publish(unfinished: Path, parent: Path, manifest: Json) -> Path:
    """Name the folder by level, seed and time; numbered where another run took the same second.

    So runs of an experiment sort by what they are, and those that only repeat another by time.
    """
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    name = f"{folder_name(manifest['level'])}_seed{manifest['task']['seed']}_{stamp}"
    attempt = 1
    while True:
        path = parent / (name if attempt == 1 else f"{name}_{attempt}")
        try:
            os.rename(unfinished, path)
        except OSError:
            if not path.exists():
                raise
            attempt += 1
        else:
            sync(parent)
            return path


def _unfinished() -> str:
    """Beginning of the names of this machine's unfinished run folders; the process follows."""
    return f".new-{socket.gethostname()}-"


def _remove_unfinished(parent: Path) -> None:
    for path in parent.glob(f"{_unfinished()}*"):
        process = path.name.removeprefix(_unfinished()).partition("-")[0]
        if process.isdecimal() and not psutil.pid_exists(int(process)):
            shutil.rmtree(path, ignore_errors=True)
