"""A run's folder and the manifest that can rebuild the run.

    experiments/<name>/<level>_seed<seed>_<time-stamp>/
        manifest.json          everything the run was made from
        preset.py              the preset's source, where there was one (not of files it imports)
        checkpoints/           see `checkpoint`
        log.jsonl, *.csv       what the run said
        events.out.tfevents.*  the same for TensorBoard, which names a run by its folder
        videos/                where asked for
        summary.json           what the run came to

The folder appears with its manifest in one step, so there is never one without.
"""

import json
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.roles import KeepingParameters, MovableParameters
from coach_rl.experiment import provenance
from coach_rl.experiment.checkpoint import find_checkpoint, list_checkpoints
from coach_rl.experiment.neighbours import changed_neighbours, imported_neighbours
from coach_rl.experiment.overrides import replace_everywhere
from coach_rl.experiment.parameters_json import decode, encode, reference, resolve
from coach_rl.experiment.preset_file import Preset, load_module
from coach_rl.experiment.strict_json import Json, read_json, sync_folder, write_json, write_text
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.task import TaskParameters, resolved_device

SCHEMA_VERSION = 1
"""Of the manifest; raised when an older reader could misread it."""

MANIFEST = "manifest.json"
PRESET_COPY = "preset.py"

_LEVEL_LENGTH = 40
"""Characters of a level's name in a folder's at most."""

_REQUIRED = (
    "schema_version",
    "name",
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


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of an experiment, for its manifest."""

    preset: Preset | None = None
    """The preset; None for an experiment made in a program or notebook."""
    panel: Mapping[str, object] = field(default_factory=dict)
    """The values of the preset's panel."""
    command: tuple[str, ...] = ()
    """The command line; empty when there was none."""


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


def make_manifest(
    graph_manager: GraphManager, task: TaskParameters, *, name: str, origin: Origin
) -> Json:
    """Everything the run is made from, as JSON.

    Args:
        graph_manager: The experiment, resolved.
        task: What is known only now.
        name: The experiment's name.
        origin: Where the experiment came from.

    Raises:
        ConfigurationError: Something in the parameters could not be rebuilt from JSON.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "level": graph_manager.parameters.environment.level,
        "created": now(),
        "command": list(origin.command),
        "preset": None if origin.preset is None else _preset_entry(origin.preset),
        "panel": encode(dict(origin.panel), "panel"),
        "graph_manager": reference(type(graph_manager), "graph_manager"),
        "parameters": encode(graph_manager.parameters),
        "task": encode(task, "task"),
        **provenance.made_with(),
        "resumes": [],
    }


def now() -> str:
    """The time with its zone, to the second."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def rebuild(
    folder: RunFolder,
    device: str | None = None,
    *,
    threads: int | None = None,
    learns: bool = True,
) -> tuple[GraphManager, TaskParameters, Json]:
    """The experiment a run folder holds, from its manifest alone.

    A `CoachWarning` says what has changed since its last part was made and may change its numbers.
    A run from a GPU comes back without one, also where it captured CUDA graphs or pinned memory;
    one without a checkpoint begins anew, and is refused where a new run would be.

    Args:
        folder: Where the run is.
        device: Where networks live from now on; None keeps the run's own, or takes `auto` where
            this machine lacks it.
        threads: Threads of one tensor operation on the CPU from now on; None keeps the run's own.
        learns: Whether it continues learning; otherwise its replay memories keep nothing and take
            no room, and of its environments only that of evaluations is looked at.

    Returns:
        The graph manager (not yet created), the task, and the manifest.

    Raises:
        CheckpointError: The manifest cannot be read.
        ConfigurationError: Its parameters do not fit the classes they name.
    """
    manifest = read_manifest(folder)
    task = _task_now(decode(manifest["task"], "task"), device, threads)
    _warn_of_changes(folder, manifest, task)
    document = manifest["parameters"]
    if not learns:
        document = _in_evaluations(document)
    if manifest["preset"] is not None:
        needed = learns or manifest["preset"]["module"] in json.dumps(
            [manifest["graph_manager"], document]
        )
        _load_preset_copy(folder, manifest["preset"], needed=needed)
    graph_manager_type = resolve(manifest["graph_manager"], "graph_manager")
    if not (isinstance(graph_manager_type, type) and issubclass(graph_manager_type, GraphManager)):
        raise ConfigurationError(
            f"{folder.manifest} names '{manifest['graph_manager']}', which is no GraphManager"
        )
    parameters = decode(document)
    if list_checkpoints(folder.checkpoints):
        parameters = _movable(parameters, task)
    if not learns:
        parameters = _without_memories(parameters)
    return graph_manager_type(parameters), task, manifest


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


def _task_now(recorded: TaskParameters, device: str | None, threads: int | None) -> TaskParameters:
    """The run's task with what was asked for now, on a device that is here."""
    if device is None and not _is_here(recorded.device):
        device = "auto"
    return replace(
        recorded,
        device=resolved_device(recorded.device if device is None else device),
        threads=recorded.threads if threads is None else threads,
    )


def _is_here(device: str) -> bool:
    try:
        resolved_device(device)
    except ConfigurationError:
        return False
    return True


def _warn_of_changes(folder: RunFolder, manifest: Json, task: TaskParameters) -> None:
    parts = [part for part in (manifest, *manifest["resumes"]) if "versions" in part]
    changes = provenance.changes(parts[-1], provenance.made_with())
    for name in ("device", "threads"):  # older manifests say `auto`, or nothing
        then, now = manifest["task"].get(name, "auto"), getattr(task, name)
        if then not in ("auto", now):
            changes.append(f"{name} {then}, now {now}")
    preset = manifest["preset"]
    if preset is not None:  # older manifests don't know of its neighbours
        folder_then = Path(preset["file"]).parent
        recorded = preset.get("neighbours", {})
        changes += [f"another {name}" for name in changed_neighbours(folder_then, recorded)]
    if changes:
        warnings.warn(
            f"{folder.path} was made with {', '.join(changes)}; its numbers may differ from those "
            "of a run that was never stopped",
            CoachWarning,
            stacklevel=2,
        )


def _movable(parameters: Any, task: TaskParameters) -> Any:
    """The parameters without what only the machine that the run comes from could do.

    An engine made with `auto` takes its mode from the checkpoint, and says so where it has to do
    without.
    """
    device = resolved_device(task.device)

    def moved(part: MovableParameters) -> MovableParameters:
        return part.moved_to(device)

    return replace_everywhere(parameters, MovableParameters, moved)[0]


def _without_memories(parameters: Any) -> Any:
    """The parameters with replay memories that keep nothing and take no room."""

    def emptied(memory: KeepingParameters) -> KeepingParameters:
        return memory.keeping_nothing()

    return replace_everywhere(parameters, KeepingParameters, emptied)[0]


def _in_evaluations(document: Json) -> Json:
    """Parameters, as JSON, whose environment is that of evaluations, where it has its own.

    So a run can be evaluated where its environment of training does not exist any more.
    """
    own = document.get("evaluation_environment")
    return document if own is None else {**document, "environment": own}


def _preset_entry(preset: Preset) -> Json:
    return {
        "name": preset.reference.name,
        "file": str(preset.reference.path),
        "function": preset.reference.function,
        "module": preset.module_name,
        "neighbours": imported_neighbours(preset.reference.path.parent),
    }


def _load_preset_copy(folder: RunFolder, entry: Json, *, needed: bool) -> None:
    """Bring the preset's module back under its old name, so that its classes can be found.

    Args:
        folder: Where the copy is.
        entry: What the manifest says of the preset.
        needed: Whether it is an error that the preset cannot run any more; else a warning says so.
    """
    try:
        source = folder.preset.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckpointError(f"cannot read the run's copy of its preset: {error}") from error
    try:
        load_module(entry["module"], source, path=folder.preset, file=Path(entry["file"]))
    except ConfigurationError as error:
        if needed:
            raise
        warnings.warn(
            f"the run's copy of its preset cannot be loaded: {error}; nothing in this evaluation "
            "names it, so it goes on without",
            CoachWarning,
            stacklevel=2,
        )
