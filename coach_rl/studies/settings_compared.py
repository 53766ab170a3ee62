"""The settings of runs, and those in which runs differ that should differ in their seeds only.

print(differing_settings([read_scores(run) for run in runs]))
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from coach_rl.configuration.strict_json import Json
from coach_rl.runs.manifest import flat

_MOST = 6
"""Settings that are named."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """All that decides the numbers of a run, except its seed."""

    chosen: Mapping[str, Json] = field(default_factory=dict)
    """The values of the preset's panel by name, and those set by path."""
    resolved: Mapping[str, Json] = field(default_factory=dict)
    """All parameters by path."""


class Trained(Protocol):
    """A run that has settings and a seed."""

    @property
    def seed(self) -> int:
        """Its seed."""

    @property
    def settings(self) -> Settings:
        """Settings that it was trained with."""


def decisive(manifest: Json) -> tuple[Json, Json, Json]:
    """The entries of a manifest that decide its run's numbers: class, parameters, task.

    Where a run is computed and which checkpoints it keeps is no part of them.
    """
    parameters, task = dict(manifest["parameters"]), dict(manifest["task"])
    parameters.pop("checkpoints", None)
    parameters.pop("threads", None)  # the task has those of the run
    task.pop("device", None)
    return manifest["graph_manager"], parameters, task


def settings_of(manifest: Json) -> Settings:
    """The settings in a manifest."""
    graph_manager, parameters, task = decisive(manifest)
    task.pop("seed", None)
    resolved = {**flat(parameters), **flat(task, "task"), "graph_manager": graph_manager}
    panel = flat(manifest.get("panel") or {})
    by_path = [name for name in manifest.get("differences", {}) if name in resolved]
    chosen = {**panel, **{name: resolved[name] for name in by_path}}
    return Settings(chosen=chosen, resolved=resolved)


def differing_settings(runs: Sequence[Trained]) -> str:
    """The settings in which runs differ, with the seeds of each value; empty where none does.

    They are named as they were given, by panel name or path, and by the paths of the resolved
    parameters where that shows no difference, as between presets or versions of the code. What a
    run of an earlier version does not have is no difference.
    """
    names = list(dict.fromkeys(name for run in runs for name in run.settings.chosen))
    documents = [{**run.settings.resolved, **run.settings.chosen} for run in runs]
    found = _differing(names, documents, runs)
    if not found:
        resolved = [run.settings.resolved for run in runs]
        found = _differing(list(dict.fromkeys(n for of in resolved for n in of)), resolved, runs)
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    return "; ".join(found[:_MOST]) + more


def _differing(
    names: Sequence[str], documents: Sequence[Mapping[str, Json]], runs: Sequence[Trained]
) -> list[str]:
    """A text for each name whose value differs among the documents that have it."""
    found = []
    for name in names:
        seeds: dict[str, list[int]] = {}
        for document, run in zip(documents, runs, strict=True):
            if name in document:
                value = json.dumps(document[name], sort_keys=True)
                seeds.setdefault(value, []).append(run.seed)
        if len(seeds) > 1:
            each = ", ".join(f"{value} with {_seeds(of)}" for value, of in seeds.items())
            found.append(f"{name} {each}")
    return found


def _seeds(seeds: Sequence[int]) -> str:
    distinct = sorted(set(seeds))
    return f"seed{'s' if len(distinct) > 1 else ''} {', '.join(map(str, distinct))}"
