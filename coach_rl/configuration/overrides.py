"""Changes of parameters by the user, read by `override_text`.

A name without a dot that is an argument of the preset goes to the preset's panel, every other name
is a path into the resolved parameters, with the index for an element of a tuple
(`levels.0.horizon`). All changes below one dataclass are made at once, so coupled values never pass
through a forbidden state.
"""

import dataclasses
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar, get_args, get_origin

from coach_rl.configuration.components import fitting, fitting_advice, made, short_name
from coach_rl.configuration.familiar_names import FLAGS, familiar_settings
from coach_rl.configuration.parameters_json import constructor_fields, encode
from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import (
    ConfigurationError,
    ParameterError,
    UnknownNameError,
    near_names,
    require_no_problems,
    suggestion,
)
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import declared_types, fit

Tree = TypeVar("Tree")


def apply_overrides(
    parameters: Tree, overrides: Mapping[str, object], *, panel: Collection[str] = ()
) -> Tree:
    """The parameters with some values replaced; the original stays as it is.

    Args:
        parameters: A tree of frozen dataclasses.
        overrides: Values by dotted path.
        panel: Names of the preset's arguments, which an unknown name may have been meant for.

    Raises:
        ConfigurationError: A path does not exist (says the nearest names) or a value does not fit
            its type.
        ParameterError: The changed dataclass refuses the value.
    """
    names = [field.name for field in constructor_fields(type(parameters))]
    changes: dict[str, Any] = {}
    require_no_problems(
        _unknown(path, [*panel, *names], parameters, "")
        for path in overrides
        if path.partition(".")[0] not in (*panel, *names)
    )
    for path, value in overrides.items():
        _plant(changes, path, value)
    replaced: Tree = _replace(parameters, changes, type(parameters), "")
    return replaced


def said(overrides: Mapping[str, object]) -> str:
    """Overrides as the command line has them, for messages."""
    return "; ".join(f"{path}={_plain(value)!r}" for path, value in overrides.items())


def overrides_json(overrides: Mapping[str, object]) -> Json:
    """Overrides as JSON, for the files of a run; a component as the command line has it."""
    document = {}
    for path, value in overrides.items():
        try:
            document[path] = encode(_plain(value))
        except ConfigurationError:
            document[path] = str(value)
    return document


def parameter_paths(
    parameters: object, path: str = "", annotation: object = None
) -> Iterator[tuple[str, object, object]]:
    """Every path that can be changed, with its value and the declared type; parents come first."""
    below: dict[str, tuple[object, object]] = {}
    if dataclasses.is_dataclass(parameters) and not isinstance(parameters, StepUnit | type):
        annotations = declared_types(type(parameters))
        below = {
            field.name: (getattr(parameters, field.name), annotations[field.name])
            for field in constructor_fields(type(parameters))
        }
    elif isinstance(parameters, tuple) and any(map(dataclasses.is_dataclass, parameters)):
        below = {str(index): (part, None) for index, part in enumerate(parameters)}
    elif isinstance(parameters, Mapping):
        below = {str(key): (part, None) for key, part in parameters.items()}
    if path:
        yield path, parameters, annotation
    for name, (value, declared) in below.items():
        yield from parameter_paths(value, _join(path, name), declared)


def _plain(value: object) -> object:
    """A step unit as the number it is."""
    return value.count if isinstance(value, StepUnit) else value


class _Leaf:
    """A value at the end of a path, distinct from the dict of a branch."""

    def __init__(self, value: object) -> None:
        self.value = value


def _plant(changes: dict[str, Any], path: str, value: object) -> None:
    *branches, last = path.split(".")
    node = changes
    for branch in branches:
        node = node.setdefault(branch, {})
        if isinstance(node, _Leaf):
            break
    if isinstance(node, _Leaf) or last in node:
        raise ConfigurationError(f"the override '{path}' overlaps another one; give one of them")
    node[last] = _Leaf(value)


def _replace(current: object, change: Any, annotation: object, path: str) -> Any:
    """The value at `path` after a change: a `_Leaf` in its place, or changes by name below it."""
    if isinstance(change, _Leaf):
        value = made(change.value, annotation, path)
        try:
            return fit(value, annotation, current, path)
        except ParameterError as error:
            raise ParameterError(f"{error}{fitting_advice(annotation)}") from None
    if dataclasses.is_dataclass(current):
        return _replace_fields(current, change, path)
    if isinstance(current, tuple):
        return _replace_elements(current, change, annotation, path)
    if isinstance(current, Mapping):
        return _replace_keys(current, change, annotation, path)
    below = next(iter(change))
    lines = "".join(f' or -cp "{path}={_call(kind)}"' for kind in fitting(annotation)).removeprefix(
        " or"
    )
    raise ConfigurationError(
        f"'{path}' is {current!r} and has no parameter '{below}' below it; set '{path}' itself"
        + (f", e.g. by{lines}" if lines else "")
    )


def _replace_fields(current: Any, change: Mapping[str, object], path: str) -> object:
    names = [field.name for field in constructor_fields(type(current))]
    annotations = declared_types(type(current))
    replaced, problems = {}, []
    for name, below in change.items():
        try:
            if name not in names:
                raise _unknown(_path_below(name, below), names, current, path)
            replaced[name] = _replace(
                getattr(current, name), below, annotations[name], _join(path, name)
            )
        except ConfigurationError as error:
            problems.append(error)
    require_no_problems(problems)
    return dataclasses.replace(current, **replaced)


def _replace_elements(
    current: tuple[object, ...], change: Mapping[str, object], annotation: object, path: str
) -> object:
    elements = list(current)
    arguments = _arguments(annotation, tuple)
    for name, below in change.items():
        named = [str(at) for at, each in enumerate(elements) if getattr(each, "name", None) == name]
        _require_known(name, [str(index) for index in range(len(elements))], path, named)
        index = int(name)
        repeated = len(arguments) == 2 and arguments[1] is Ellipsis
        fixed = len(arguments) == len(elements)
        element = arguments[0] if repeated else arguments[index] if fixed else Any
        here = _join(path, name)
        try:
            elements[index] = _replace(elements[index], below, element, here)
        except ParameterError as error:
            raise ParameterError(f"{_with_name(here, elements[index])}: {error}") from error
    return tuple(elements)


def _with_name(path: str, element: object) -> str:
    """The path of an element, and the name of what stands there if it has one."""
    name = getattr(element, "name", None)
    return path if name is None else f"{path} ('{name}')"


def _replace_keys(
    current: Mapping[str, object], change: Mapping[str, object], annotation: object, path: str
) -> object:
    replaced = dict(current)
    arguments = _arguments(annotation, Mapping)
    element = arguments[1] if len(arguments) == 2 else Any
    for name, below in change.items():
        _require_known(name, [str(key) for key in current], path)
        replaced[name] = _replace(current[name], below, element, _join(path, name))
    return replaced


def _arguments(annotation: object, container: type) -> tuple[object, ...]:
    """Return the element types of a container's annotation, alone or inside a union."""
    for candidate in (annotation, *get_args(annotation)):
        origin = get_origin(candidate)
        if isinstance(origin, type) and issubclass(origin, container):
            return get_args(candidate)
    return ()


def _require_known(
    name: str, allowed: Collection[str], path: str, near: Collection[str] = ()
) -> None:
    if name not in allowed:
        meant = [_join(path, each) for each in near]
        raise UnknownNameError("parameter", name, allowed, near=meant, where=f"of '{path}'")


def _unknown(
    name: str, allowed: Collection[str], parameters: object, path: str
) -> UnknownNameError:
    """The error about a name, with the longer paths that end in it, which may have been meant."""
    where, first = f"of '{path}'" if path else "", name.partition(".")[0]
    paths = [below for below, _, _ in parameter_paths(parameters, path)]
    hint = "`coach describe PRESET` lists them"
    near = [below for below in paths if below.endswith(f".{name}")]
    familiar = familiar_settings(name, paths if path else [*allowed, *paths])
    if familiar is not None:
        near = (near or familiar)[:3]
        return UnknownNameError("parameter", name, (), "" if near else hint, near, where=where)
    near = near or [below for below in paths if near_names(name, [below.rpartition(".")[2]])]
    if near and not near_names(first, allowed):
        return UnknownNameError("parameter", name, allowed, near=near[:3], where=where)
    if not near_names(first, allowed) and name.lower() in FLAGS:
        return UnknownNameError("parameter", name, allowed, near=FLAGS[name.lower()], where=where)
    hint = "" if suggestion(first, allowed) else hint
    return UnknownNameError("parameter", first, set(allowed), hint, where=where)


def _path_below(name: str, change: Any) -> str:
    """The first of the changed paths from here on."""
    while not isinstance(change, _Leaf):
        below, change = next(iter(change.items()))
        name = f"{name}.{below}"
    return name


def _call(kind: type[object]) -> str:
    arguments = ", ".join(f"{field.name}=..." for field in constructor_fields(kind))
    return f"{short_name(kind)}({arguments})"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
