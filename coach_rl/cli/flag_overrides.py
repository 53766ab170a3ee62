"""Changes of parameters that the command line asks for: `-cp`, and the flags short for it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from coach_rl.cli.settings import Changes, Collecting, Keeping, Length
from coach_rl.configuration.override_text import parse_overrides
from coach_rl.configuration.preset_file import Preset
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import parse_inspections
from coach_rl.core.steps import EnvironmentSteps, Hours
from coach_rl.graph_managers.parameters import CheckpointParameters, ValidationParameters
from coach_rl.telemetry.tracker import Service, TrackerParameters

_FLAGS = {
    "environment.level": "-lvl",
    "num_envs": "-n",
    "collection.workers": "--workers",
    "collection.on": "--on",
    "schedule.training": "--steps",
    "schedule.stop_after": "--hours",
    "schedule.until_solved": "--until_solved",
    "validation": "--until_solved",
    "checkpoints.every_seconds": "-s",
    "checkpoints.every_steps": "--checkpoint_steps",
    "checkpoints.keep_last": "--keep",
    "checkpoints.keep_every": "--keep_every",
    "checkpoints.best_of": "--best",
    "checkpoints.memories": "--no_memories",
    "checkpoints": "--no_checkpoints",
}
"""The flag that stands for a path."""


def overrides_of(
    changes: Changes,
    preset: Preset,
    length: Length | None = None,
    keeping: Keeping | None = None,
    collecting: Collecting | None = None,
) -> dict[str, object]:
    """`-cp` and the flags short for it: to the panel where it has the name, else by path."""
    overrides = parse_overrides(changes.custom_parameter)
    given = run_changes(length or Length(), keeping or Keeping())
    workers = collecting or Collecting()
    shortcuts = {
        "environment.level": changes.level,
        "num_envs": changes.num_envs,
        "collection.workers": workers.workers,
        "collection.on": workers.on,
        **given,
    }
    for path, given_value in shortcuts.items():
        if given_value is None:
            continue
        target, value = preset.setting(path, given_value)
        if target in overrides:
            flag = _FLAGS[path]
            raise ConfigurationError(f"{target} is given twice, by {flag} and by -cp; give one")
        overrides[target] = value
    return overrides


def tracked(overrides: dict[str, object], tracker: str | None) -> dict[str, object]:
    """Overrides and `--tracker`, which replaces the sinks of the preset, or of the run."""
    if tracker is None:
        return overrides
    service, _, project = tracker.partition(":")
    if service == "off":
        return with_flags(overrides, {"sinks": ()})
    described = TrackerParameters(service=cast(Service, service))
    described = replace(described, project=project) if project else described
    return with_flags(overrides, {"sinks": (described,)})


def inspecting(overrides: dict[str, object], inspections: str | None) -> dict[str, object]:
    """Overrides and `--inspect`, which replaces the inspections of a run."""
    if inspections is None:
        return overrides
    return with_flags(overrides, {"inspect": parse_inspections(inspections)})


def environment_of(changes: Changes) -> dict[str, object]:
    """`-cp` and `-lvl` as changes of the environment that a run is evaluated in."""
    level = {} if changes.level is None else {"environment.level": changes.level}
    return with_flags(parse_overrides(changes.custom_parameter), level)


def with_flags(overrides: dict[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """`-cp` and the flags that say the same by path; each path once."""
    for path in overrides.keys() & flags.keys():
        raise ConfigurationError(f"{path} is given twice, by a flag and by -cp; give one")
    return {**overrides, **flags}


def run_changes(length: Length, keeping: Keeping) -> dict[str, object]:
    """The flags about how long a run trains and what it keeps, by path."""
    if keeping.no_checkpoints and keeping != Keeping(no_checkpoints=True):
        raise ConfigurationError(
            "--no_checkpoints keeps none; leave out the other flags about checkpoints"
        )
    values = {
        "schedule.training": None if length.steps is None else EnvironmentSteps(length.steps),
        "schedule.stop_after": None if length.hours is None else Hours(length.hours),
        "checkpoints.every_seconds": keeping.checkpoint_seconds,
        "checkpoints.every_steps": keeping.checkpoint_steps,
        "checkpoints.keep_last": keeping.keep,
        "checkpoints.keep_every": keeping.keep_every,
        "checkpoints.best_of": keeping.best,
        "checkpoints.memories": False if keeping.no_memories else None,
        "checkpoints": CheckpointParameters(enabled=False) if keeping.no_checkpoints else None,
    }
    changes: dict[str, object] = {path: of for path, of in values.items() if of is not None}
    if length.until_solved is not None:
        name, _, number = length.until_solved.partition("=")
        changes["schedule.until_solved"] = name != "off"
        if number:
            changes["validation"] = (
                ValidationParameters(reward=float(number))
                if name == "reward"
                else ValidationParameters(success_rate=float(number))
            )
    return changes
