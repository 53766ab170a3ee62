"""The manifest: everything a run was made from.

It holds the parameters, the task and the preset's panel, and what else may change a run's numbers:
versions, the process's settings, the state of the source, hardware. TensorBoard shows it as the
run's introduction, so a run that is resumed or forked has that as well.
"""

import importlib.metadata
import os
import platform
import shlex
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TypeVar

import psutil  # type: ignore[import-untyped]  # has no types
import torch

from coach_rl.configuration.extensions import own_extensions
from coach_rl.configuration.file_writing import sha256_of
from coach_rl.configuration.parameters_json import (
    ITEMS_TAG,
    LIST_TAG,
    TYPE_TAG,
    decode,
    encode,
    reference,
)
from coach_rl.configuration.preset_file import REQUIRED, Preset
from coach_rl.configuration.strict_json import Json
from coach_rl.configuration.trust import code_in_json, code_in_parameters, remember_own_code
from coach_rl.configuration.user_modules import imported_folders, imported_neighbours
from coach_rl.core.errors import CoachError, ConfigurationError, warn
from coach_rl.core.runtime import Runtime
from coach_rl.core.shown_text import shown_level
from coach_rl.core.steps import RunLength
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters, ScheduleParameters
from coach_rl.runs.folder import SCHEMA_VERSION, RunFolder, read_manifest
from coach_rl.runs.sources import git_states
from coach_rl.telemetry.tables import markdown, written
from coach_rl.telemetry.tensorboard import Introduction

PACKAGES = ("coach-rl", "torch", "numpy", "gymnasium", "mujoco", "safetensors")
"""Packages whose versions may change any run's numbers."""
WORLDS = ("box2d", "dm-control", "popgym", "shimmy")
"""Packages of environments, which matter where they are imported; extensions list further ones."""
P = TypeVar("P")
_COUNT = "count"
"""The only value of a step unit."""


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
    experiment: Json,
    code: Sequence[str],
    *,
    name: str,
    origin: Origin,
) -> Json:
    """Everything the run is made from, as JSON.

    Args:
        graph_manager: The experiment, resolved.
        experiment: What `experiment_json` returned of it.
        code: What `code_of` returned of these.
        name: The experiment's name.
        origin: Where the experiment came from.

    Raises:
        ConfigurationError: Something of the preset could not be rebuilt from JSON.
    """
    folders = imported_folders(code)
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
        **made_with(code),
        "resumes": [],
    }


def experiment_json(
    graph_manager: GraphManager, runtime: Runtime, policy: CheckpointParameters
) -> Json:
    """The parts of a manifest about what is trained and how.

    Args:
        graph_manager: The experiment, resolved.
        runtime: What is known only now.
        policy: The policy of its checkpoints.

    Raises:
        ConfigurationError: Something in the parameters could not be rebuilt from JSON.
    """
    parameters = encode(graph_manager.parameters)
    parameters["checkpoints"] = encode(policy)
    return {"parameters": parameters, "task": encode(runtime, "task")}


def planned_lengths(run: Path) -> tuple[RunLength, ...]:
    """Lengths of which the first to be reached ends a run; none where its manifest has none."""
    schedule = _recorded(run, "schedule", ScheduleParameters)
    lengths = () if schedule is None else (schedule.training, schedule.stop_after)
    return tuple(each for each in lengths if each is not None)


def checkpoint_policy(run: Path) -> CheckpointParameters | None:
    """The policy of a run's checkpoints; None where its manifest has none."""
    return _recorded(run, "checkpoints", CheckpointParameters)


def _recorded(run: Path, name: str, kind: type[P]) -> P | None:
    """A parameter of a run; None where its manifest has none of that kind."""
    try:
        found = decode(read_manifest(RunFolder(run))["parameters"][name])
    except (CoachError, KeyError):
        return None
    return found if isinstance(found, kind) else None


def level_names(run: Path) -> tuple[str, ...]:
    """Names of a run's levels, top first; none for a single agent."""
    try:
        parameters = read_manifest(RunFolder(run))["parameters"]
        levels = parameters.get("levels") or parameters.get("stack") or ()
        return tuple(str(level["name"]) for level in levels)
    except (CoachError, KeyError, TypeError):
        return ()


def remember_code(code: Sequence[str], origin: Origin | None) -> None:
    """Trust what a new run of the user uses, whenever it is rebuilt on this machine.

    Args:
        code: What `code_of` returned.
        origin: Where the experiment came from; None when from nowhere.
    """
    preset = None if origin is None else origin.preset
    source = None if preset is None else (preset.source, str(preset.reference.path))
    remember_own_code(code, source, imported_folders(code))


def check_importable(code: Sequence[str], *, needed_by: Sequence[str] = ()) -> None:
    """Warn of classes that stand in the program itself, which no other process can import.

    Args:
        code: What `code_of` returned of the experiment.
        needed_by: Names of the parts of the run that rebuild it in another process.

    Raises:
        ConfigurationError: Another process is to rebuild it.

    Warns:
        CoachWarning: It can be run, but not resumed or evaluated by the command.
    """
    names = dict.fromkeys(code)
    own = [each.partition(":")[2] for each in names if each.startswith("__main__:")]
    if not own:
        return
    where = (
        f"{', '.join(own)} {'is' if len(own) == 1 else 'are'} defined in the program itself "
        "(__main__), which no other process can import"
    )
    advice = "define such code in a module beside the program and import it from there"
    if needed_by:
        part = ", ".join(needed_by)
        raise ConfigurationError(f"{where}, and {part} needs one; {advice}, or leave out {part}")
    warn(f"{where}: `coach` cannot resume, evaluate or load this run; {advice}")


def code_of(graph_manager: GraphManager, manifest: Json) -> list[str]:
    """All code that an experiment names, each as `module:name`.

    Args:
        graph_manager: The experiment.
        manifest: Its manifest, or what `experiment_json` returned of it.
    """
    return [
        reference(type(graph_manager), "graph_manager"),
        *code_in_json(manifest["parameters"]),
        *code_in_parameters(graph_manager.parameters),
    ]


def now() -> str:
    """The time with its zone, to the second."""
    return datetime.now().astimezone().isoformat(timespec="seconds")


def made_with(code: Sequence[str] = ()) -> Json:
    """The manifest's record of this process: versions, settings, source, hardware.

    Args:
        code: What `code_of` returned of the experiment; the versions of its packages are included.
    """
    return {
        "versions": versions(code),
        "settings": settings(),
        "git": git_states(),
        "hardware": hardware(),
    }


def changes_since(then: Json, now: Json) -> list[str]:
    """Return changes that may affect a run's numbers, e.g. "torch 2.12.0, now 2.13.0".

    Args:
        then: What `made_with` returned for an earlier part of the run.
        now: What `deciding` returns for this process.
    """
    before = {**then["versions"], "processor": then["hardware"]["cpu"], **then["settings"]}
    after = dict(now)
    others = then["versions"].keys() - now.keys()  # their modules are imported later
    after |= {name: _version(name) for name in others}
    return [
        f"{name.replace('_', ' ')} {value}, now {after.get(name)}"
        for name, value in before.items()
        if value != after.get(name)
    ]


def deciding() -> Json:
    """The versions, processor and settings of this process, which may affect a run's numbers."""
    return {**versions(), "processor": _cpu_model(), **settings()}


def versions(code: Sequence[str] = ()) -> dict[str, str | None]:
    """Versions of Python and of packages that may change numbers; None where one is not installed.

    Args:
        code: Code that an experiment names, `module:name` each, whose packages are included.
    """
    modules = {name.lower() for name in sys.modules}
    listed = (*WORLDS, *(name for each in own_extensions() for name in each.packages))
    imported = [name for name in listed if name.replace("-", "_") in modules]
    own = [each.partition(":")[0].partition(".")[0] for each in code]
    others = {name: _version(name) for name in (*imported, *own) if name != "coach_rl"}
    return {
        "python": platform.python_version(),
        **{name: _version(name) for name in PACKAGES},
        **{name: version for name, version in others.items() if version is not None},
    }


def settings() -> Json:
    """Return settings of the whole process that may affect numbers and are not the run's own."""
    return {
        "numpy_threads": _numpy_threads(),
        "default_dtype": str(torch.get_default_dtype()).removeprefix("torch."),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "cudnn_deterministic": torch.backends.cudnn.deterministic,
        "cudnn_benchmark": torch.backends.cudnn.benchmark,
    }


def hardware() -> Json:
    """Host, processor, cores, memory in bytes, GPUs, operating system."""
    gpus = range(torch.cuda.device_count())
    return {
        "host": platform.node(),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "load_per_core": _load_per_core(),
        "memory_bytes": psutil.virtual_memory().total,
        "gpus": [torch.cuda.get_device_name(index) for index in gpus],
        "system": platform.platform(),
    }


def introduction(manifest: Json, preset: str, levels: str) -> Introduction:
    """Texts and hyper-parameters of a run.

    Args:
        manifest: The run's.
        preset: The source of its preset; empty where it has none.
        levels: The levels and their agents, for people.
    """
    changed = manifest.get("differences", {})
    texts = {
        **({"message": manifest["message"]} if "message" in manifest else {}),
        "command": _command(manifest),
        "differences": _changes_text(manifest),
        "levels": _code(levels),
        "parameters": _table(("parameter", "value"), flat(manifest["parameters"]).items()),
    }
    if preset:
        texts["preset"] = _code(preset, "python")
    parameters = manifest["parameters"]
    settings = {
        "task": manifest["level"],
        "num_envs": parameters.get("num_envs"),
        **{name: value for name, value in manifest["panel"].items() if name != "level"},
        **{name: now for name, (_, now) in changed.items()},
        "seed": manifest["task"]["seed"],
    }
    return Introduction(
        texts=texts,
        settings={name: _setting(value) for name, value in settings.items() if value is not None},
    )


def differences(default: Json, now: Json) -> dict[str, list[Json]]:
    """The differences of two documents of parameters: both values by path, None where missing."""
    before, after = flat(default), flat(now)
    return {
        path: [before.get(path), after.get(path)]
        for path in {**before, **after}
        if before.get(path) != after.get(path)
    }


def differences_since(manifest: Json, before: GraphManager, now: GraphManager) -> Json:
    """The differences from the preset's defaults: those in a manifest, and changes made since."""
    known = manifest.get("differences", {})
    new = differences(encode(before.parameters), encode(now.parameters))
    return {**known, **{path: [known.get(path, pair)[0], pair[1]] for path, pair in new.items()}}


def flat(document: Json, path: str = "") -> dict[str, Json]:
    """The values of a document of parameters by path, as `-cp` takes them."""
    return dict(_leaves(document, path))


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


def _preset_entry(preset: Preset) -> Json:
    return {
        "name": preset.reference.name,
        "file": str(preset.reference.path),
        "function": preset.reference.function,
        "module": preset.module_name,
        "sha256": sha256_of(preset.source),
        "neighbours": imported_neighbours(preset.reference.path.parent),
    }


@cache
def _installed_version(name: str) -> str:
    """The version of a package; its metadata are long, and every run records it."""
    return importlib.metadata.version(name)


def _version(name: str) -> str | None:
    try:
        return _installed_version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _numpy_threads() -> int | None:
    """Threads of numpy's matrix products, by which OpenBLAS divides large ones."""
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        if os.environ.get(name, "").isdecimal():
            return int(os.environ[name])
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _load_per_core() -> float | None:
    """Processes that wanted to run in the last minute, for each core; None where it is unknown."""
    if not hasattr(os, "getloadavg"):
        return None
    return round(os.getloadavg()[0] / (os.cpu_count() or 1), 2)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    for line in lines:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _leaves(document: Json, path: str) -> Iterator[tuple[str, Json]]:
    parts = document
    if isinstance(document, dict):
        parts = document.get(ITEMS_TAG, document.get(LIST_TAG, document))
    if isinstance(parts, list):
        is_plain = not any(isinstance(part, dict | list) for part in parts)
        parts = {} if is_plain else {str(index): part for index, part in enumerate(parts)}
    if not isinstance(parts, dict) or not parts:
        yield path, document
        return
    kind = str(parts.get(TYPE_TAG, "")).rpartition(":")[2]
    inner = {name: part for name, part in parts.items() if name != TYPE_TAG}
    if set(inner) == {_COUNT}:
        yield path, inner[_COUNT]
        return
    if kind and path:
        yield path, f"({kind})"
    for name, part in inner.items():
        yield from _leaves(part, f"{path}.{name}" if path else name)


def _command(manifest: Json) -> str:
    lines = [
        f"**{manifest['name']}** on task **{manifest['level']}**, seed {manifest['task']['seed']},"
        f" begun {manifest['created']}",
        _code(shlex.join(manifest["command"]) or "(run from a program)"),
    ]
    if manifest["preset"] is not None:
        lines.append(f"Preset: `{manifest['preset']['name']}`")
    lines += [
        f"Forked from `{each['run']}` at {each['checkpoint']}, with the changes "
        f"`{each['changes'] or 'none'}`"
        for each in manifest.get("ancestry", ())
    ]
    parts = {**manifest["versions"], **manifest["hardware"]}
    lines.append(_table(("made with", ""), parts.items()))
    return "\n\n".join(lines)


def _changes_text(manifest: Json) -> str:
    changed: Mapping[str, list[Json]] = manifest.get("differences", {})
    if manifest["preset"] is None:
        return "This run was made by a program, without a preset."
    if not changed:
        return "All settings are the preset's defaults."
    rows = ((name, default, now) for name, (default, now) in changed.items())
    return _table(("setting", "default of the preset", "this run"), rows)


def _table(head: tuple[str, ...], rows: Iterable[tuple[object, ...]]) -> str:
    return markdown(written(head, (tuple(map(_cell, row)) for row in rows), texts=len(head)))


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return f"`{text}`".replace("|", "\\|").replace("\n", " ") if text else "-"


def _code(text: str, language: str = "") -> str:
    return f"~~~~{language}\n{text.rstrip()}\n~~~~"


def _setting(value: Json) -> bool | float | str:
    return value if isinstance(value, bool | int | float | str) else str(value)
