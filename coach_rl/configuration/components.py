"""Components: parts of an experiment that `-cp` switches, written like a call.

    agent.exploration=OrnsteinUhlenbeckNoise(sigma=0.2)

A component is a frozen dataclass among the public names of `coach_rl`; `Parameters` at the end of
its name may be left out. What the user wrote is read, never executed: arguments are values or
components themselves, and nothing is called but the constructors of those dataclasses.
"""

import inspect
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin

import coach_rl
from coach_rl.configuration.parameters_json import constructor_fields, is_frozen_dataclass
from coach_rl.core.errors import ParameterError, UnknownNameError
from coach_rl.core.protocols import belongs
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import declared_types, describe_type, fit

_SUFFIX = "Parameters"
_UNIONS = (Union, types.UnionType)


@dataclass(frozen=True)
class Component:
    """A component as it was written; `made` makes it."""

    name: str
    """The name of its class."""
    arguments: Mapping[str, object]
    """Values by argument, which may be components or contain some."""

    def __repr__(self) -> str:
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.name}({arguments})"


def component_type(name: str) -> type[object]:
    """The class of a component.

    Args:
        name: Its name in `coach_rl`, with or without `Parameters` at the end.

    Raises:
        UnknownNameError: There is no such component.
    """
    for full_name in (name, name + _SUFFIX):
        if full_name in coach_rl.__all__ and _is_component(getattr(coach_rl, full_name)):
            found: type[object] = getattr(coach_rl, full_name)
            return found
    raise UnknownNameError("component", name, map(short_name, component_types()))


@cache
def component_types() -> tuple[type[object], ...]:
    """The classes of all components."""
    public = (getattr(coach_rl, name) for name in coach_rl.__all__)
    return tuple(thing for thing in public if _is_component(thing))


def short_name(kind: type[object]) -> str:
    """The shortest name by which a component can be written."""
    name = kind.__name__.removesuffix(_SUFFIX)
    return kind.__name__ if name in coach_rl.__all__ else name


def made(value: object, annotation: object, name: str) -> object:
    """A value with its components made; where a schedule is wanted, a number is a constant one.

    Args:
        value: What was written.
        annotation: The type it should have.
        name: What is being set, for errors.

    Raises:
        UnknownNameError: There is no such component, or it has no such argument.
        ParameterError: A component lacks an argument, or does not fit; says which would.
    """
    match value:
        case Component():
            return _made_component(value, annotation, name)
        case tuple() | list():
            return type(value)(made(part, Any, name) for part in value)
        case dict():
            return {key: made(part, Any, name) for key, part in value.items()}
        case int() | float() if value is not True and value is not False:
            types = list(_members(annotation))
            is_constant = Schedule in types and not {int, float} & set(types)
            return ConstantSchedule(value=float(value)) if is_constant else value
    return value


def fitting(annotation: object) -> list[type[object]]:
    """The components that a field of this type accepts, but for step units, which are numbers."""
    wanted = [part for part in _members(annotation) if inspect.isclass(part)]
    return [
        kind
        for kind in component_types()
        if not issubclass(kind, StepUnit) and any(belongs(kind, each) for each in wanted)
    ]


def owners_advice(name: str) -> str:
    """The end of an error message: the components with a parameter of that name, if few have."""
    owners = [
        kind.__name__
        for kind in component_types()
        if name in {field.name for field in constructor_fields(kind)}
    ]
    have = "has" if len(owners) == 1 else "have"
    few = 0 < len(owners) <= 3
    return f" ({' and '.join(owners)} {have} a parameter of that name)" if few else ""


def fitting_advice(annotation: object) -> str:
    """The end of an error message: the components that a field of this type accepts, if any."""
    names = ", ".join(map(short_name, fitting(annotation)))
    return f"; fitting: {names}" if names else ""


def _made_component(component: Component, annotation: object, name: str) -> object:
    try:
        kind = component_type(component.name)
    except UnknownNameError as error:
        fit_here = [short_name(kind) for kind in fitting(annotation)]
        if not fit_here:
            raise
        hint = f"fitting: {', '.join(fit_here)}"
        raise UnknownNameError(
            "component", component.name, error.allowed, hint, where=f"in '{name}'"
        ) from None
    known, types = constructor_fields(kind), declared_types(kind)
    for argument in component.arguments:
        if argument not in [field.name for field in known]:
            names = [field.name for field in known]
            where = f"of {component.name} in '{name}'"
            raise UnknownNameError("argument", argument, names, where=where)
    required = [
        field.name
        for field in known
        if field.default is MISSING and field.default_factory is MISSING
    ]
    missing = [argument for argument in required if argument not in component.arguments]
    if missing:
        raise ParameterError(f"{component.name} in '{name}' needs {', '.join(missing)}")
    allowed = [*fitting(annotation), *_members(annotation)]
    if annotation is not Any and kind not in allowed:
        raise ParameterError(
            f"{name} must be {describe_type(annotation)}, got {component!r}"
            f"{fitting_advice(annotation)}"
        )
    arguments = {}
    for argument, value in component.arguments.items():
        path, declared = f"{name}: {component.name}.{argument}", types[argument]
        arguments[argument] = fit(made(value, declared, path), declared, None, path)
    return kind(**arguments)


def _members(annotation: object) -> Iterator[object]:
    """The types that a union allows; the annotation itself where it is none."""
    if get_origin(annotation) is Annotated:
        yield from _members(get_args(annotation)[0])
    elif get_origin(annotation) in _UNIONS:
        for part in get_args(annotation):
            yield from _members(part)
    else:
        yield annotation


def _is_component(thing: object) -> bool:
    return is_frozen_dataclass(thing) and not inspect.isabstract(thing)
