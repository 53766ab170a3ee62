"""Settings and changes of parameters, from the flags of a command line."""

import importlib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, TypeVar

from coach_rl.cli.parser import Given
from coach_rl.configuration.config_file import read_config
from coach_rl.configuration.overrides import InPlaceOf, OfKind, parse_overrides
from coach_rl.configuration.preset_file import Preset, is_part_of, require_given_once
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.sessions.settings import RunPartParameters, RunSettings

S = TypeVar("S")


def settings(given: Given, kind: type[S], **others: object) -> S:
    """Settings of a class; fields without a flag on the command line have the class's defaults.

    Args:
        given: The command line.
        kind: The class, whose name begins the `sets` of flags.
        others: Further fields, of which flags come first.
    """
    assert is_dataclass(kind)
    values = dict(others)
    for flag in given.command.taken():
        value = getattr(given, flag.dest)
        if isinstance(flag.sets, str) and value is not flag.default:
            owner, _, field = flag.sets.partition(".")
            values |= {field: value} if owner == kind.__name__ else {}
    return kind(**values)


def run_settings(given: Given) -> RunSettings:
    """The settings of a run."""
    return settings(given, RunSettings, parts=run_parts(given))


def run_parts(given: Given) -> tuple[RunPartParameters, ...]:
    """The parameters of a run's parts that flags request, in the order of the flags."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for flag in given.command.taken():
        value = getattr(given, flag.dest)
        if not flag.is_about_part or value is flag.default:
            continue
        module, _, path = str(flag.sets).partition(":")
        name, _, field = path.partition(".")
        fields = found.setdefault((module, name), {})
        if field:
            fields[field] = fields[field] + value if field in fields else value
    return tuple(
        getattr(importlib.import_module(module), name)(**fields)
        for (module, name), fields in found.items()
    )


def opening(given: Given) -> dict[str, Any]:
    """The arguments with which a run is opened; what is None stays as the run has it."""
    return {
        "device": given.device,
        "threads": given.threads,
        "last_good": given.last_good,
        "trust": given.trust or (),
    }


def configured(
    given: Given, preset: Preset, *, without: Collection[str] = ()
) -> tuple[GraphManager, dict[str, object]]:
    """A preset's experiment with the changes of a command line, and the changes.

    Args:
        given: The command line, with a file of changes or without; its other flags win.
        preset: The preset.
        without: Names of flags that mean something else here.

    Raises:
        ConfigurationError: The changes can't be read, or don't fit.
    """
    overrides = overrides_of(given, preset, without=without)
    if given.config is None:
        with _with_advice(given):
            return preset.configure(overrides), overrides
    config = read_config(given.config)
    config.check_preset(preset.reference.name)
    for path, change in overrides.items():
        if isinstance(change, OfKind) and path in config.values:
            raise ConfigurationError(
                f"{config.place(path)}: a flag changes '{path}', too; set its parts in the file, "
                f"such as {path}.{next(iter(change.arguments))}, or leave out the flag"
            )

    def merged(values: Mapping[str, object]) -> dict[str, object]:
        kept = {
            name: each
            for name, each in values.items()
            if not any(_is_replaced(name, path, overrides[path], preset) for path in overrides)
        }
        return kept | overrides

    with _with_advice(given), config.blamed(lambda values: preset.configure(merged(values))):
        return preset.configure(merged(config.values)), merged(config.values)


def _is_replaced(name: str, path: str, change: object, preset: Preset) -> bool:
    """True if a change by a flag leaves nothing of what a file sets."""
    is_further = isinstance(change, OfKind) and bool(change.further(path, [name]))
    return not is_further and is_part_of(name, path, preset.panel)


@contextmanager
def _with_advice(given: Given) -> Iterator[None]:
    """Context in which a flag is blamed where the experiment lacks the parameter that it sets."""
    try:
        yield
    except UnknownNameError as error:
        for flag in given.command.taken():
            is_given = flag.added_by and getattr(given, flag.dest) is not flag.default
            if is_given and str(flag.sets).endswith(f".{error.name}"):
                raise ConfigurationError(
                    f"{flag.spellings[0]} has no effect without {flag.added_by}; give that, too, "
                    "or leave it out"
                ) from error
        raise


def overrides_of(
    given: Given, preset: Preset | None = None, *, without: Collection[str] = ()
) -> dict[str, object]:
    """Changes of parameters: `-cp`, and the flags that stand for parameters.

    Args:
        given: The command line.
        preset: The preset that is changed, whose panel names come before paths; None for a run.
        without: Names of flags that mean something else here.

    Raises:
        ConfigurationError: The changes can't be read, or something is given twice.
    """
    overrides = parse_overrides(getattr(given, "custom_parameter", None) or "")
    from_flags: dict[str, object] = {}
    panel = () if preset is None else preset.panel
    for flag in given.command.taken():
        value = getattr(given, flag.dest)
        if value is flag.default or not flag.sets or flag.dest in without or flag.is_about_part:
            continue
        if isinstance(flag.sets, str):
            changes = {} if flag.sets[0].isupper() else {flag.sets: value}
        else:
            changes = dict(flag.sets(value))
        for path, change in changes.items():
            target, setting = (path, change) if preset is None else preset.setting(path, change)
            others = set(overrides)
            if isinstance(setting, OfKind):
                others -= setting.further(target, overrides)
            require_given_once(target, others, panel, f", by {flag.spellings[0]} and by -cp")
            before = from_flags.get(target)
            if isinstance(before, InPlaceOf) and isinstance(setting, InPlaceOf):
                setting = before | setting
            from_flags[target] = setting
    if "checkpoints" in from_flags and any(path[:12] == "checkpoints." for path in from_flags):
        raise ConfigurationError(
            "--no_checkpoints keeps none; leave out the other flags about checkpoints"
        )
    return overrides | from_flags
