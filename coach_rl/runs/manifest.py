"""The manifest: everything a run was made from.

It holds the parameters, the task and the preset's panel, and what else may change a run's numbers:
versions, the process's settings, the state of the source, hardware.
"""

import hashlib
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from coach_rl.configuration.module_folders import imported_folders
from coach_rl.configuration.panel import REQUIRED
from coach_rl.configuration.parameters_json import decode, encode, reference
from coach_rl.configuration.preset_file import Preset
from coach_rl.configuration.preset_module import imported_neighbours
from coach_rl.configuration.strict_json import Json
from coach_rl.configuration.trust import code_in_json, code_in_parameters, remember_own_code
from coach_rl.core.errors import CoachError, CoachWarning, ConfigurationError
from coach_rl.core.level_name import shown_level
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import RunLength
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters, ScheduleParameters
from coach_rl.runs.folder import SCHEMA_VERSION, RunFolder, read_manifest
from coach_rl.runs.introduction import differences
from coach_rl.runs.provenance import made_with, now


@dataclass(frozen=True, kw_only=True)
class Origin:
    """Origin of an experiment, for its manifest."""

    preset: Preset | None = None
    """The preset; None for an experiment made in a program or notebook."""
    panel: Mapping[str, object] = field(default_factory=dict)
    """The values of the preset's panel."""
    command: tuple[str, ...] = ()
    """The command line; empty when there was none."""
    job: Mapping[str, Json] | None = None
    """Identity and labels by which a study finds the run; None for a run by itself."""


def make_manifest(
    graph_manager: GraphManager,
    runtime: Runtime,
    *,
    name: str,
    origin: Origin,
    policy: CheckpointParameters | None = None,
) -> Json:
    """Everything the run is made from, as JSON.

    Args:
        graph_manager: The experiment, resolved.
        runtime: What is known only now.
        name: The experiment's name.
        origin: Where the experiment came from.
        policy: The policy of its checkpoints; None: as its parameters say.

    Raises:
        ConfigurationError: Something in the parameters could not be rebuilt from JSON.
    """
    experiment = experiment_json(graph_manager, runtime, policy)
    folders = imported_folders(code_of(graph_manager, experiment))
    if origin.preset is not None:  # its entry has the files beside it
        folders.pop(str(origin.preset.reference.path.parent), None)
    return {
        "schema_version": SCHEMA_VERSION,
        "name": name,
        "level": shown_level(graph_manager.parameters.environment.level),
        "created": now(),
        "command": list(origin.command),
        **({} if origin.job is None else {"job": dict(origin.job)}),
        "preset": None if origin.preset is None else _preset_entry(origin.preset),
        "panel": encode(dict(origin.panel), "panel"),
        "differences": _differences(graph_manager, origin),
        "graph_manager": reference(type(graph_manager), "graph_manager"),
        "module_folders": folders,
        **experiment,
        **made_with(),
        "resumes": [],
    }


def _differences(graph_manager: GraphManager, origin: Origin) -> dict[str, list[Json]]:
    """Differences from the preset's defaults: panel values, and parameters set by their path."""
    preset = origin.preset
    if preset is None:
        return {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the preset has been built, and has warned, before
        panel = {name: origin.panel[name] for name in preset.panel if name in origin.panel}
        of_panel = preset.build(panel).parameters
    defaults = {name: each.default for name, each in preset.panel.items()}
    known = {name: value for name, value in defaults.items() if value is not REQUIRED}
    return {
        **differences(encode(known, "panel"), encode(panel, "panel")),
        **differences(encode(of_panel), encode(graph_manager.parameters)),
    }


def experiment_json(
    graph_manager: GraphManager, runtime: Runtime, policy: CheckpointParameters | None
) -> Json:
    """The parts of a manifest that say what is trained and how; `make_manifest` explains them."""
    parameters = encode(graph_manager.parameters)
    if policy is not None:
        parameters["checkpoints"] = encode(policy)
    return {"parameters": parameters, "task": encode(runtime, "task")}


def planned_lengths(run: Path) -> tuple[RunLength, ...]:
    """Lengths of which the first to be reached ends a run; none where its manifest has none."""
    try:
        schedule = decode(read_manifest(RunFolder(run))["parameters"]["schedule"])
        assert isinstance(schedule, ScheduleParameters)
    except (CoachError, KeyError, AssertionError):
        return ()
    return tuple(each for each in (schedule.training, schedule.stop_after) if each is not None)


def checkpoint_policy(run: Path) -> CheckpointParameters | None:
    """The policy of a run's checkpoints; None where its manifest has none."""
    try:
        policy = decode(read_manifest(RunFolder(run))["parameters"]["checkpoints"])
        assert isinstance(policy, CheckpointParameters)
    except (CoachError, KeyError, AssertionError):
        return None
    return policy


def level_names(run: Path) -> tuple[str, ...]:
    """Names of a run's levels, top first; none for a single agent."""
    try:
        parameters = read_manifest(RunFolder(run))["parameters"]
        levels = parameters.get("levels") or parameters.get("stack") or ()
        return tuple(str(level["name"]) for level in levels)
    except (CoachError, KeyError, TypeError):
        return ()


def remember_code(graph_manager: GraphManager, manifest: Json, origin: Origin | None) -> None:
    """Trust what a new run of the user uses, whenever it is rebuilt on this machine."""
    preset = None if origin is None else origin.preset
    source = None if preset is None else (preset.source, str(preset.reference.path))
    names = code_of(graph_manager, manifest)
    remember_own_code(names, source, imported_folders(names))


def check_importable(graph_manager: GraphManager, manifest: Json, *, in_background: bool) -> None:
    """Warn of classes that stand in the program itself, which no other process can import.

    Args:
        graph_manager: The experiment.
        manifest: Its manifest.
        in_background: Whether another process evaluates it while it trains.

    Raises:
        ConfigurationError: Another process is to evaluate it.

    Warns:
        CoachWarning: It can be run, but not resumed or evaluated by the command.
    """
    names = dict.fromkeys(code_of(graph_manager, manifest))
    own = [each.partition(":")[2] for each in names if each.startswith("__main__:")]
    if not own:
        return
    where = (
        f"{', '.join(own)} {'is' if len(own) == 1 else 'are'} defined in the program itself "
        "(__main__), which no other process can import"
    )
    advice = "define such code in a module beside the program and import it from there"
    if in_background:
        raise ConfigurationError(
            f"{where}, and background_evaluation needs one; {advice}, or set "
            "background_evaluation=False"
        )
    warnings.warn(
        f"{where}: `coach` cannot resume, evaluate or load this run; {advice}",
        CoachWarning,
        stacklevel=3,
    )


def code_of(graph_manager: GraphManager, manifest: Json) -> list[str]:
    """All code that an experiment names, each as `module:name`.

    Args:
        graph_manager: The experiment.
        manifest: Its manifest, of which the parameters are read.
    """
    return [
        reference(type(graph_manager), "graph_manager"),
        *code_in_json(manifest["parameters"]),
        *code_in_parameters(graph_manager.parameters),
    ]


def _preset_entry(preset: Preset) -> Json:
    return {
        "name": preset.reference.name,
        "file": str(preset.reference.path),
        "function": preset.reference.function,
        "module": preset.module_name,
        "sha256": sha256_of(preset.source),
        "neighbours": imported_neighbours(preset.reference.path.parent),
    }


def sha256_of(text: str) -> str:
    """The checksum of a text, in hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()
