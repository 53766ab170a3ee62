"""An experiment from its run's folder: rebuilt from the manifest alone."""

import json
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import is_dataclass, replace
from pathlib import Path

from coach_rl.configuration.module_folders import let_import_named, let_import_recorded
from coach_rl.configuration.parameters_json import decode, resolve
from coach_rl.configuration.preset_module import changed_neighbours, load_module, preset_module
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.configuration.trust import (
    Trust,
    code_in_json,
    is_own_preset,
    shipped_preset,
    texts_like_code,
    users_trust,
)
from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.acting import OutsideParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import resolved_device, with_threads
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.runs.manifest import sha256_of
from coach_rl.runs.provenance import changes_since, made_with
from coach_rl.sessions.adaptations import moved, without_memories


def rebuild(
    folder: RunFolder,
    device: str | None = None,
    *,
    threads: int | None = None,
    learns: bool = True,
    outside: OutsideParameters | None = None,
    trust: Collection[str] = (),
) -> tuple[GraphManager, Runtime, Json]:
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
        trust: Modules whose code may be run, besides that of the user's own runs; see `trust`. They
            are found in the working directory, too.
        outside: Stands in for its environments, of which none is looked at; None keeps them.

    Returns:
        The graph manager (not yet created), the runtime, and the manifest.

    Raises:
        CheckpointError: The manifest cannot be read.
        ConfigurationError: Its parameters do not fit the classes they name.
    """
    manifest = read_manifest(folder)
    document = manifest["parameters"]
    if outside is not None:  # an object stands for itself
        document = {**document, "environment": outside, "evaluation_environment": None}
    if not learns:
        document = _in_evaluations(document)
    trusted = users_trust(trust)
    if manifest["preset"] is not None:
        named = json.dumps([manifest["graph_manager"], document], default=str)
        needed = manifest["preset"]["module"] in named
        trusted = _with_preset(folder, manifest["preset"], trusted, needed=needed, learns=learns)
    names = [str(manifest["graph_manager"]), *code_in_json([document, manifest["task"]])]
    if trusted.untrusted(names):  # the error names all at once
        names += texts_like_code([document])
    trusted.require(names, folder.manifest)
    with _reading(folder.manifest):
        let_import_recorded(manifest.get("module_folders", {}))
    let_import_named((f"{module}:" for module in trust), Path.cwd())
    runtime = _task_now(_recorded_task(folder, manifest, trusted), device, threads)
    if outside is None:
        with _reading(folder.manifest):
            _warn_of_changes(folder, manifest, runtime)
    graph_manager_type = resolve(manifest["graph_manager"], "graph_manager", trust=trusted)
    if not (isinstance(graph_manager_type, type) and issubclass(graph_manager_type, GraphManager)):
        raise ConfigurationError(
            f"{folder.manifest} names '{manifest['graph_manager']}', which is no GraphManager"
        )
    with _reading(folder.manifest):
        parameters = decode(document, trust=trusted)
    if not is_dataclass(parameters):
        raise CheckpointError(f"{folder.manifest} is damaged: its parameters are no dataclass")
    if list_checkpoints(folder.checkpoints):
        parameters = moved(parameters, runtime.device)
    if not learns:
        parameters = without_memories(parameters)
    graph_manager = graph_manager_type(parameters)
    return graph_manager, with_threads(runtime, graph_manager.parameters.threads), manifest


@contextmanager
def _reading(manifest: Path) -> Iterator[None]:
    """Whatever in a manifest cannot be understood inside is a CheckpointError in one line."""
    try:
        yield
    except KeyError as error:
        raise CheckpointError(f"{manifest} is damaged: it lacks {error}") from error
    except (TypeError, ValueError, AttributeError, RecursionError, OverflowError) as error:
        raise CheckpointError(f"{manifest} is damaged: {error}") from error


def _recorded_task(folder: RunFolder, manifest: Json, trusted: Trust) -> Runtime:
    with _reading(folder.manifest):
        runtime = decode(manifest["task"], "task", trust=trusted)
    if not isinstance(runtime, Runtime):
        raise CheckpointError(f"{folder.manifest} is damaged: its task is no Runtime")
    return runtime


def _task_now(recorded: Runtime, device: str | None, threads: int | None) -> Runtime:
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


def _warn_of_changes(folder: RunFolder, manifest: Json, runtime: Runtime) -> None:
    parts = [part for part in (manifest, *manifest["resumes"]) if "versions" in part]
    changes = changes_since(parts[-1], made_with())
    for name in ("device", "threads"):  # older manifests say `auto`, or nothing
        then, now = manifest["task"].get(name, "auto"), getattr(runtime, name)
        if then not in ("auto", now):
            changes.append(f"{name} {then}, now {now}")
    preset = manifest["preset"]
    if preset is not None:  # older manifests don't know of its neighbours
        folder_then = Path(preset["file"]).parent
        recorded = preset.get("neighbours", {})
        changes += [f"another {name}" for name in changed_neighbours(folder_then, recorded)]
    for place, files in manifest.get("module_folders", {}).items():
        changes += [f"another {name}" for name in changed_neighbours(Path(place), files)]
    if changes:
        warnings.warn(
            f"{folder.path} was made with {', '.join(changes)}; its numbers may differ from those "
            "of a run that was never stopped",
            CoachWarning,
            stacklevel=2,
        )


def _in_evaluations(document: Json) -> Json:
    """Parameters, as JSON, whose environment is that of evaluations, where it has its own.

    So a run can be evaluated where its environment of training does not exist any more. Callbacks
    and sinks belong to training.
    """
    document = {key: [] if key in ("callbacks", "sinks") else of for key, of in document.items()}
    own = document.get("evaluation_environment")
    return (
        document
        if own is None
        else {**document, "environment": own, "evaluation_environment": None}
    )


def _with_preset(
    folder: RunFolder, entry: Json, trusted: Trust, *, needed: bool, learns: bool
) -> Trust:
    """Bring the preset's module back under its old name, so that its classes can be found.

    A preset that is not trusted is left alone, and then its classes cannot be found.

    Args:
        folder: Where the copy is.
        entry: What the manifest says of the preset.
        trusted: The modules that are trusted without it.
        needed: Whether something that is going to be built is defined in it.
        learns: Whether the run continues learning; then the preset may register environments, too.

    Returns:
        Trust in the preset as well, where it was brought back.
    """
    module, file = entry["module"], Path(entry["file"])
    source = read_text(folder.preset)
    if entry.get("sha256", sha256_of(source)) != sha256_of(source):  # older manifests have none
        raise CheckpointError(
            f"{folder.preset} is damaged or has been edited: it does not match its checksum in the "
            "manifest; restore it from a copy, or train a changed preset in a new run"
        )
    shipped = shipped_preset(source)
    is_known = shipped is not None or is_own_preset(source, str(file))
    if not is_known and module not in trusted.modules:
        return trusted
    if module != preset_module(file, source):
        raise CheckpointError(f"{folder.preset} is not the preset that the run was made from")
    if not is_known:
        warnings.warn(f"running {folder.preset}, which is trusted", CoachWarning, stacklevel=3)
    try:
        load_module(module, source, path=folder.preset, file=shipped or file)
    except ConfigurationError as error:
        if needed or learns:
            raise
        warnings.warn(
            f"the run's copy of its preset cannot be loaded: {error}; nothing in this evaluation "
            "names it, so it continues without",
            CoachWarning,
            stacklevel=3,
        )
    return trusted.plus(module)
