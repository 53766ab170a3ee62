"""Types of the parameters that a preset made, checked as those of `-cp` are."""

import traceback
from dataclasses import is_dataclass, replace
from typing import Any, TypeVar

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.steps import StepUnit
from coach_rl.experiment.overrides import parameter_paths
from coach_rl.experiment.parameters_json import constructor_fields
from coach_rl.experiment.typed_values import declared_types, describe_type, fit

Tree = TypeVar("Tree")


def fit_everywhere(parameters: Tree, path: str = "") -> Tree:
    """Parameters whose every value has its declared type, in place of those that could be fitted.

    Args:
        parameters: A tree of frozen dataclasses.
        path: Where it stands, for errors.

    Raises:
        ConfigurationError: A value does not fit; says where and what was expected.
    """
    tree: Any = parameters
    try:
        annotations = declared_types(type(tree))
    except ConfigurationError:
        return parameters  # types that only a type checker knows
    changes = {}
    for field in constructor_fields(type(tree)):
        value = getattr(tree, field.name)
        new = _fit_below(value, annotations[field.name], _join(path, field.name))
        if new is not value and repr(new) != repr(value):
            changes[field.name] = new
    changed: Tree = replace(tree, **changes) if changes else parameters
    return changed


def misfit(error: BaseException) -> str | None:
    """What has a wrong type, where an error came from the checks of a dataclass; else None.

    Args:
        error: What was raised, with its traceback.
    """
    for frame, _ in traceback.walk_tb(error.__traceback__):
        made = frame.f_locals.get("self")
        if frame.f_code.co_name != "__post_init__" or not is_dataclass(made):
            continue
        for name, value, annotation in parameter_paths(made, type(made).__name__):
            if annotation is None:
                continue
            try:
                fitted = fit(value, annotation, value, name)
            except ConfigurationError as wrong_type:
                return str(wrong_type)
            if repr(fitted) != repr(value):
                right = repr(fitted).replace("(count=", "(")
                return f"{name} must be {describe_type(annotation)}, got {value!r}; write {right}"
    return None


def _fit_below(value: Any, annotation: Any, path: str) -> Any:
    if is_dataclass(value) and not isinstance(value, StepUnit | type):
        fit(value, annotation, value, path)
        return fit_everywhere(value, path)
    if type(value) is tuple and any(map(is_dataclass, value)):
        fit(value, annotation, value, path)
        return tuple(_fit_below(part, Any, f"{path}.{at}") for at, part in enumerate(value))
    return fit(value, annotation, value, path)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
