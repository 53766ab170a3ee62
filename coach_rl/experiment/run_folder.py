"""A run's folder: where its parts are, its lock, and its logs.

    experiments/<name>/<level>_seed<seed>_<time-stamp>/
        manifest.json          everything the run was made from, see `manifest`
        preset.py              the preset's source, where there was one (not of files it imports)
        checkpoints/           see `checkpoint`
        log.jsonl, *.csv       what the run said
        events.out.tfevents.*  the same for TensorBoard, which names a run by its folder
        videos/                where asked for
        inspections/           what an inspection has found something wrong in, where asked for
        summary.json           what the run came to

The folder appears with its manifest in one step, so there is never one without. One process at a
time writes into it.
"""

import os
import re
import shutil
import socket
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.experiment.run_lock import locked
from coach_rl.experiment.strict_json import (
    Json,
    read_sealed,
    require_types,
    require_version,
    sealed,
    sync_folder,
    write_json,
    write_text,
)

SCHEMA_VERSION = 2
"""Version of the manifest; raised when an older reader could misread it.

1: without a checksum, which a reader of that time would leave as it was in a changed manifest.
"""

MANIFEST = "manifest.json"
PRESET_COPY = "preset.py"

_LEVEL_LENGTH = 40
"""Characters of a level's name in a folder's at most."""

_TYPES: dict[str, type | tuple[type, ...]] = {
    "name": str,
    "created": str,
    "preset": (dict, type(None)),
    "graph_manager": str,
    "parameters": dict,
    "task": dict,
    "versions": dict,
    "hardware": dict,
    "resumes": list,
}
_EDITED = (
    "restore it from a copy; to change parameters use `coach fork RUN --as NAME -cp ...`; if you "
    'edited it yourself and mean it, delete its line "checksum"'
)


@dataclass(frozen=True)
class RunFolder:
    """Paths of the parts of a run."""

    path: Path
    """`experiments/<name>/<level>_seed<seed>_<time-stamp>`."""

    @property
    def manifest(self) -> Path:
        """Everything the run was made from."""
        return self.path / MANIFEST

    @property
    def preset(self) -> Path:
        """The preset's source."""
        return self.path / PRESET_COPY

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints; exists once there is one."""
        return self.path / "checkpoints"

    @property
    def summary(self) -> Path:
        """The final evaluation."""
        return self.path / "summary.json"

    @property
    def evaluations(self) -> Path:
        """The folder of evaluations made afterwards; exists once there is one."""
        return self.path / "evaluations"

    @property
    def videos(self) -> Path:
        """The folder of videos; exists once there is one."""
        return self.path / "videos"

    @property
    def inspections(self) -> Path:
        """The folder of what inspections found something wrong in; exists once there is some."""
        return self.path / "inspections"


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
        unfinished = Path(tempfile.mkdtemp(prefix=f"{_unfinished()}{os.getpid()}-", dir=parent))
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
        unfinished.chmod(0o755)
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


def read_manifest(folder: RunFolder) -> Json:
    """The manifest of a run; CheckpointError when missing, changed, or of another version."""
    source = str(folder.manifest)
    manifest = read_sealed(folder.manifest, next_step=_EDITED)
    require_types(manifest, {"schema_version": object}, source=source)
    versions = manifest.get("versions")
    written_by = versions.get("coach-rl") if isinstance(versions, dict) else None
    require_version(manifest, (1, SCHEMA_VERSION), source=source, written_by=written_by)
    require_types(manifest, _TYPES, source=source)
    if manifest["preset"] is not None:
        entry = {"name": str, "file": str, "function": str, "module": str}
        require_types(manifest["preset"], entry, source=f"the preset in {source}")
    for part in manifest["resumes"]:
        if not isinstance(part, dict):
            raise CheckpointError(f"{source} is damaged: a resume in it is no JSON object")
    return manifest


def write_manifest(folder: RunFolder, manifest: Json) -> None:
    """Write a run's manifest, with its checksum, in today's version."""
    write_json(folder.manifest, sealed({**manifest, "schema_version": SCHEMA_VERSION}))


def _publish(unfinished: Path, parent: Path, manifest: Json) -> Path:
    """Name the folder by level, seed and time; numbered where another run took the same second.

    So runs of an experiment sort by what they are, and those that only repeat another by time.
    """
    stamp = datetime.now().astimezone().strftime("%Y-%m-%d_%H-%M-%S")
    name = f"{_short_level(manifest['level'])}_seed{manifest['task']['seed']}_{stamp}"
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
            sync_folder(parent)
            return path


def _short_level(level: str) -> str:
    """A level's name as part of a folder's: `MyEnv` of `my_module:MyEnv`, `ALE_Pong-v5`."""
    name = re.sub(r"[^\w.-]+", "_", level.rpartition(":")[2]).strip("._-")
    return name[:_LEVEL_LENGTH] or "level"


def _unfinished() -> str:
    """Beginning of the names of this machine's unfinished run folders; the process follows."""
    return f".new-{socket.gethostname()}-"


def _remove_unfinished(parent: Path) -> None:
    for path in parent.glob(f"{_unfinished()}*"):
        process = path.name.removeprefix(_unfinished()).partition("-")[0]
        if process.isdecimal() and not _is_running(int(process)):
            shutil.rmtree(path, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True
