"""Finished runs that were not made for a job, known by the parameters in their manifests.

A manifest of an earlier version of the code may lack fields that its classes have now, which stand
for their defaults, have other names for some, and name classes of coach_rl by the modules where
they were then. The default also stands for a missing `scale_actions` of PPO: it changes nothing
where actions are mapped to [-1, 1], as in all presets.
"""

from dataclasses import MISSING, Field, is_dataclass

from coach_rl.configuration.parameters_json import TYPE_TAG, constructor_fields, encode, reference
from coach_rl.configuration.strict_json import Json
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import with_threads

_NAMES_THEN = {"HRLGraphParameters": "GraphParameters"}
"""Names of today's classes, by those that they had."""
_FIELDS_THEN = {
    ("GraphAgentParameters", "worst"): "lowest_probability",
    ("GraphAgentParameters", "doubt"): "retry_discount",
    ("GraphAgentParameters", "besides"): "fixed_goal",
}
"""Names of today's fields, by their class and those that they had."""
_VALUES_THEN = {("LevelParameters", "testing_rate"): (0.0, None)}
"""Values that said then what another one says now: (then, now), by class and field."""


def is_run_of(manifest: Json, graph_manager: GraphManager, task: Runtime) -> bool:
    """Return whether a manifest is that of a run with these parameters, on whatever device.

    Args:
        manifest: A run's manifest.
        graph_manager: The experiment, resolved.
        task: Seed, threads, precision.
    """
    parameters = {
        **manifest["parameters"],
        "checkpoints": encode(graph_manager.parameters.checkpoints),
        "threads": graph_manager.parameters.threads,  # the task has those of the run
    }
    task = with_threads(task, graph_manager.parameters.threads)
    recorded_task = {"threads": 1, **manifest["task"], "device": task.device}
    return (
        _is_same_class(manifest["graph_manager"], type(graph_manager))
        and difference(parameters, graph_manager.parameters) is None
        and difference(recorded_task, task) is None
    )


def difference(recorded: Json, value: object, path: str = "") -> str | None:
    """The path of the first parameter that a record has otherwise; None where it has the same.

    Args:
        recorded: Parameters as `encode` wrote them once.
        value: Parameters of today.
        path: Where they stand.
    """
    if is_dataclass(value) and not isinstance(value, type):
        if not (isinstance(recorded, dict) and _is_same_class(recorded.get(TYPE_TAG), type(value))):
            return path
        of_class = type(value).__name__
        recorded = {_FIELDS_THEN.get((of_class, name), name): of for name, of in recorded.items()}
        names = [field.name for field in constructor_fields(type(value))]
        gone = [name for name in recorded if name not in (TYPE_TAG, *names)]
        if gone:
            return _join(path, gone[0])
        for field in constructor_fields(type(value)):
            of = getattr(value, field.name)
            below = _join(path, field.name)
            if field.name not in recorded:
                found = None if of == _default(field) else below
            elif _VALUES_THEN.get((of_class, field.name)) == (recorded[field.name], of):
                found = None
            else:
                found = difference(recorded[field.name], of, below)
            if found is not None:
                return found
        return None
    if isinstance(value, tuple) and isinstance(recorded, list) and len(value) == len(recorded):
        parts = (
            difference(old, new, _join(path, str(index)))
            for index, (old, new) in enumerate(zip(recorded, value, strict=True))
        )
        return next((found for found in parts if found is not None), None)
    return None if recorded == encode(value) else path


def _is_same_class(recorded: object, kind: type) -> bool:
    """Return whether a recorded class is this one, in coach_rl wherever it was defined then."""
    now, then = reference(kind), str(recorded)
    if not (now.startswith("coach_rl.") and then.startswith("coach_rl.")):
        return now == then
    name = then.partition(":")[2]
    return now.partition(":")[2] == _NAMES_THEN.get(name, name)


def _default(field: Field[object]) -> object:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
