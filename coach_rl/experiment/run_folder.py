"""A run's folder: where its parts are, its lock, and its logs.

    experiments/<name>/<level>_seed<seed>_<time-stamp>/
        manifest.json          everything the run was made from, see `manifest`
        preset.py              the preset's source, where there was one (not of files it imports)
        checkpoints/           see `checkpoint`
        log.jsonl, *.csv       what the run said
        events.out.tfevents.*  the same for TensorBoard, which names a run by its folder
        videos/                where asked for
        summary.json           what the run came to

The folder appears with its manifest in one step, so there is never one without. One process at a
time writes into it. A resumed run says everything after its checkpoint again, so what the stopped
run said after it is cut off: text is counted in lines, TensorBoard's event files in bytes.
"""

import os
import re
import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.experiment.checkpoint import find_checkpoint, list_checkpoints
from coach_rl.experiment.preset_file import Preset
from coach_rl.experiment.strict_json import Json, read_json, sync_folder, write_json, write_text

SCHEMA_VERSION = 1
"""Version of the manifest; raised when an older reader could misread it."""

MANIFEST = "manifest.json"
PRESET_COPY = "preset.py"

_LEVEL_LENGTH = 40
"""Characters of a level's name in a folder's at most."""

_REQUIRED = (
    "schema_version",
    "name",
    "created",
    "preset",
    "graph_manager",
    "parameters",
    "task",
    "versions",
    "hardware",
    "resumes",
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


def create_run_folder(root: Path, name: str, manifest: Json, preset: Preset | None) -> RunFolder:
    """A new folder under `root/name`, with its manifest and the preset's source already in it.

    Args:
        root: The folder of all experiments.
        name: The experiment's name, one folder name.
        manifest: What `make_manifest` returned.
        preset: Whose source is kept; None for an experiment without a preset.

    Raises:
        ConfigurationError: The folder cannot be written.
    """
    check_name(name)
    parent = root / name
    try:
        parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=".new-", dir=parent))
    except OSError as error:
        raise ConfigurationError(
            f"cannot write to the experiment folder {parent}: {error}; choose another with -ep"
        ) from error
    try:
        if preset is not None:
            write_text(unfinished / PRESET_COPY, preset.source)
        write_json(unfinished / MANIFEST, manifest)
        unfinished.chmod(0o755)
        return RunFolder(_publish(unfinished, parent, manifest))
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def check_name(name: str) -> None:
    """Raise `ConfigurationError` unless `name` can be the name of one folder."""
    if not re.fullmatch(r"\w[\w .+=@-]*", name):
        raise ConfigurationError(
            f"the experiment name {name!r} cannot name a folder; use letters, digits and . _ "
            "- + = @"
        )


def find_run(run: Path) -> tuple[RunFolder, Path | None]:
    """The run's folder and the checkpoint a path names; None where there is none yet.

    Raises:
        ConfigurationError: The path is neither a run's folder nor one of its checkpoints.
    """
    run = run.expanduser().absolute()
    if RunFolder(run).manifest.is_file():
        checkpoints = RunFolder(run).checkpoints
        return RunFolder(run), find_checkpoint(checkpoints) if list_checkpoints(
            checkpoints
        ) else None
    folder = RunFolder(run.parent.parent)
    if run.parent == folder.checkpoints and folder.manifest.is_file():
        return folder, find_checkpoint(folder.checkpoints, run.name)
    experiments = sorted({path.parent.parent.name for path in run.glob(f"*/*/{MANIFEST}")})
    raise ConfigurationError(
        f"{run} is neither a run's folder (with a manifest.json) nor a checkpoint in one"
        + (f"; it has runs of the experiments {', '.join(experiments)}" if experiments else "")
    )


def runs_in(folder: Path) -> list[Path]:
    """The runs right below a folder, in the order in which they were begun."""
    runs = [manifest.parent for manifest in folder.expanduser().glob(f"*/{MANIFEST}")]
    return sorted(runs, key=lambda run: (read_manifest(RunFolder(run))["created"], run.name))


def read_manifest(folder: RunFolder) -> Json:
    """The manifest of a run; CheckpointError when missing, broken, or of another version."""
    manifest = read_json(folder.manifest)
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{folder.manifest} holds no JSON object")
    missing = [key for key in _REQUIRED if key not in manifest]
    if missing:
        raise CheckpointError(f"{folder.manifest} lacks {', '.join(missing)}")
    if manifest["schema_version"] != SCHEMA_VERSION:
        raise CheckpointError(
            f"{folder.manifest} has schema version {manifest['schema_version']}, "
            f"this version of coach_rl reads {SCHEMA_VERSION}"
        )
    return manifest


def log_lengths(folder: Path) -> dict[str, int]:
    """Lines of every log file in a run's folder, by file name."""
    return {path.name: _count_lines(path) for path in _log_files(folder)}


def cut_logs(folder: Path, lengths: dict[str, int]) -> None:
    """Drop every line after the first `lengths[name]` of each log file; others go as a whole.

    Args:
        folder: The run's folder.
        lengths: What `log_lengths` said when the checkpoint was taken.

    Raises:
        CheckpointError: A file is shorter than it was then.
    """
    for path in _log_files(folder):
        if path.name not in lengths:
            path.unlink()
            continue
        with path.open("rb+") as file:
            for line in range(lengths[path.name]):
                if not file.readline().endswith(b"\n"):
                    raise CheckpointError(
                        f"{path} has {line} whole lines, but had {lengths[path.name]} "
                        "when the checkpoint was taken"
                    )
            file.truncate()
            os.fsync(file.fileno())


def event_file_lengths(folder: Path) -> dict[str, int]:
    """Bytes of every event file in a run's folder, by file name."""
    return {path.name: path.stat().st_size for path in _event_files(folder)}


def cut_event_files(folder: Path, lengths: dict[str, int]) -> None:
    """Drop what every event file holds after its first `lengths[name]` bytes; others go as a whole.

    TensorBoard's own way, a mark in the next file that takes back all from a step on, would also
    take what was said at the checkpoint's own step before it, and works only if that file is read
    last.

    Args:
        folder: The run's folder.
        lengths: What `event_file_lengths` said when the checkpoint was taken.

    Raises:
        CheckpointError: A file is shorter than it was then.
    """
    for path in _event_files(folder):
        if path.name not in lengths:
            path.unlink()
            continue
        size, wanted = path.stat().st_size, lengths[path.name]
        if size < wanted:
            raise CheckpointError(
                f"{path} has {size} bytes, but had {wanted} when the checkpoint was taken"
            )
        with path.open("rb+") as file:
            file.truncate(wanted)
            os.fsync(file.fileno())


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


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _count_lines(path: Path) -> int:
    with path.open("rb") as file:
        return sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
