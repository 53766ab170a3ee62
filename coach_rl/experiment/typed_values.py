"""Values the user typed, fitted to the types that were declared.

A literal is taken as it is where it already has the declared type. Beyond that only what loses
nothing is done: a whole number for a float, `1e6` for a whole number, a number for a step unit or
a constant schedule, a list for a tuple, a member's name for an enum, numpy's numbers for Python's.
A component is made from its arguments, which are fitted to its fields.
"""

import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields, is_dataclass
from enum import Enum
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
from typeguard import (
    CollectionCheckStrategy,
    ForwardRefPolicy,
    TypeCheckError,
    check_type,
)

from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.steps import StepUnit
from coach_rl.experiment.components import (
    Component,
    belongs,
    component_type,
    fitting,
    members_of,
    short_name,
)
from coach_rl.experiment.parameters_json import constructor_fields

_LOOKALIKES = {"true": "True", "false": "False", "none": "None", "null": "None"}


def fit(value: object, annotation: Any, current: object, name: str) -> Any:
    """The value as the declared type wants it.

    Args:
        value: What the user typed: a literal, a component, or literals that contain components.
        annotation: The declared type, resolved; `Any` accepts everything.
        current: The value it replaces; tells which step unit a bare number means.
        name: What is being set, for errors.

    Raises:
        ConfigurationError: The value does not fit; says what was expected.
    """
    try:
        fitted = _convert(_made(value, name), annotation, current)
        if isinstance(value, Component) and annotation is not Any:
            wanted = [part for part in _leaves(annotation) if isinstance(part, type)]
            if not any(belongs(type(fitted), part) for part in wanted):
                raise _UnfitError
        return fitted
    except _UnfitError:
        raise ConfigurationError(
            f"{name} must be {describe_type(annotation)}, got {value!r}"
            + _advice(value, annotation, current, name)
        ) from None


def declared_types(thing: Any) -> dict[str, Any]:
    """The types of a dataclass's fields or a function's arguments, resolved.

    Raises:
        ConfigurationError: An annotation names something that does not exist at run time.
    """
    try:
        return get_type_hints(thing)
    except NameError as error:
        raise ConfigurationError(
            f"the types of {thing.__name__} cannot be resolved: {error}; import what they "
            "name outside TYPE_CHECKING"
        ) from error


def describe_type(annotation: Any) -> str:
    """A type as a user reads it: `float`, `int | None`, `tuple[int, ...]`, `'clip' or 'kl'`."""
    if annotation is Any:
        return "anything"
    if annotation is None or annotation is type(None):
        return "None"
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(describe_type(part) for part in get_args(annotation))
    if get_origin(annotation) is Annotated:
        return describe_type(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return " or ".join(repr(value) for value in get_args(annotation))
    if get_args(annotation):
        parts = [
            "..." if part is Ellipsis else describe_type(part) for part in get_args(annotation)
        ]
        return f"{describe_type(get_origin(annotation))}[{', '.join(parts)}]"
    return str(getattr(annotation, "__name__", annotation))


def _made(value: object, name: str) -> object:
    """The value with its components made."""
    match value:
        case Component():
            return _make(value, name)
        case tuple() | list():
            return type(value)(_made(part, name) for part in value)
        case dict():
            return {key: _made(part, name) for key, part in value.items()}
    return value


def _make(component: Component, name: str) -> object:
    kind = component_type(component.name)
    known = {field.name: field for field in constructor_fields(kind)}
    annotations = declared_types(kind)
    for argument in component.arguments:
        if argument not in known:
            raise UnknownNameError(f"argument of {component.name} in '{name}'", argument, known)
    missing = [
        each
        for each, field in known.items()
        if _required(field) and each not in component.arguments
    ]
    if missing:
        raise ConfigurationError(f"{component.name} in '{name}' needs {', '.join(missing)}")
    return kind(
        **{
            argument: fit(
                value, annotations[argument], None, f"{name}: {component.name}.{argument}"
            )
            for argument, value in component.arguments.items()
        }
    )


def _required(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


class _UnfitError(Exception):
    """The value cannot be made to fit; `fit` turns it into the user's error."""


def _convert(value: object, annotation: Any, current: object) -> Any:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return value
    if origin is Annotated:
        return _convert(value, arguments[0], current)
    if origin in (Union, types.UnionType):
        return _convert_to_member(value, arguments, current)
    if origin is tuple:
        return _convert_tuple(value, arguments, current)
    if isinstance(annotation, type):
        return _convert_to_class(value, annotation, current)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, dict):
        return {
            _convert(key, arguments[0], None): _convert(part, arguments[1], None)
            for key, part in value.items()
        }
    return _checked(value, annotation)


def _convert_to_member(value: object, members: tuple[Any, ...], current: object) -> Any:
    """As the class the value already has, else as the current value's, else the first that fits."""
    for member in members:
        if isinstance(member, type) and member is not float and _is_already(value, member):
            return value
    fitting = [
        (converted[0], _is_already(current, member))
        for member in members
        if (converted := _attempt(value, member, current)) is not None
    ]
    preferred = [converted for converted, is_current in fitting if is_current]
    choice = preferred or [converted for converted, _ in fitting]
    if not choice or (len(choice) > 1 and isinstance(choice[0], StepUnit)):
        raise _UnfitError
    return choice[0]


def _attempt(value: object, annotation: Any, current: object) -> tuple[Any] | None:
    try:
        return (_convert(value, annotation, current),)
    except _UnfitError:
        return None


def _convert_tuple(value: object, arguments: tuple[Any, ...], current: object) -> tuple[Any, ...]:
    if not isinstance(value, tuple | list):
        raise _UnfitError
    items = current if isinstance(current, tuple) and len(current) == len(value) else ()
    currents = items or (None,) * len(value)
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        arguments = (arguments[0],) * len(value)
    if arguments == ((),):
        arguments = ()
    if len(arguments) != len(value):
        raise _UnfitError
    return tuple(map(_convert, value, arguments, currents))


def _convert_to_class(value: object, wanted: type, current: object) -> Any:
    whole = _whole_number(value)
    if wanted is Schedule and isinstance(value, Real) and type(value) is not bool:
        return ConstantSchedule(value=float(value))
    if issubclass(wanted, StepUnit):
        unit = wanted if wanted is not StepUnit else type(current)
        if whole is not None and whole >= 0 and issubclass(unit, StepUnit) and unit is not StepUnit:
            return unit(whole)
    elif issubclass(wanted, Enum):
        return _convert_enum(value, wanted)
    elif wanted is tuple and isinstance(value, list):
        return tuple(value)
    elif wanted is float and isinstance(value, Real) and type(value) is not bool:
        return float(value)
    elif wanted is int and whole is not None:
        return whole
    elif wanted is bool and isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, bool) and wanted in (int, float):
        raise _UnfitError
    return _checked(value, wanted)


def _whole_number(value: object) -> int | None:
    if isinstance(value, Integral) and type(value) is not bool:
        return int(value)
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _convert_enum(value: object, wanted: type[Enum]) -> Enum:
    for member in wanted:
        if value is member or value == member.name or value == member.value:
            return member
    raise _UnfitError


def _checked(value: object, annotation: Any) -> Any:
    if not _is_already(value, annotation):
        raise _UnfitError
    return value


def _is_already(value: object, annotation: Any) -> bool:
    if isinstance(value, bool) and annotation in (int, float):
        return False
    if getattr(annotation, "_is_protocol", False):
        if type(value).__module__.startswith("coach_rl."):
            return belongs(type(value), annotation)
        named = all(hasattr(value, name) for name in members_of(annotation))
        return named and not isinstance(value, type)  # a user's own, which may be written freely
    try:
        check_type(
            value,
            annotation,
            forward_ref_policy=ForwardRefPolicy.IGNORE,
            collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS,
        )
    except TypeCheckError:
        return False
    return True


def _advice(value: object, annotation: Any, current: object, name: str) -> str:
    if isinstance(value, str) and value.lower() in _LOOKALIKES:
        return f"; write {_LOOKALIKES[value.lower()]}"
    members = [part for part in _leaves(annotation) if isinstance(part, type)]
    kinds = [short_name(kind) for kind in fitting(annotation)]
    if isinstance(value, type):
        return f"; write {value.__name__}(...)"
    if "Gymnasium" in kinds:
        level = repr(value) if isinstance(value, str) else "..."
        return f"; write GymnasiumParameters(level={level})"
    if kinds and (isinstance(value, Component) or is_dataclass(value)):
        return f"; fitting: {', '.join(kinds)}"
    for member in members:
        if issubclass(member, Enum):
            return f"; allowed: {', '.join(known.name for known in member)}"
    if is_dataclass(current) and not isinstance(current, StepUnit | type):
        names = [field.name for field in fields(current)]
        return f"; set its own parameters, e.g. {name}.{names[0]}" if names else ""
    return ""


def _leaves(annotation: Any) -> tuple[Any, ...]:
    if get_origin(annotation) in (Union, types.UnionType):
        return get_args(annotation)
    return (annotation,)
