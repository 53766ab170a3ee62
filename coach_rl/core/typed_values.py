"""Values that a user gives, fitted to the types that were declared.

A literal of the declared type is used unchanged. Otherwise only lossless conversions are
made: a whole number for a float, `1e6` for a whole number, a number for a step unit, a
list for a tuple, a member's name for an enum. Ranges that a type declares (see `ranges`) hold.
"""

import inspect
import types
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from typeguard import (
    CollectionCheckStrategy,
    ForwardRefPolicy,
    TypeCheckError,
    check_type,
)

from coach_rl.core.errors import ConfigurationError, ParameterError, suggestion
from coach_rl.core.ranges import describe_range, is_in_range
from coach_rl.core.steps import Hours, StepUnit

K = TypeVar("K", bound=Hashable)
Arguments = Mapping[str, Any]
"""Keyword arguments of something that a preset names."""


_LOOKALIKES = {"true": "True", "false": "False", "none": "None", "null": "None"}


class FrozenMapping(Mapping[K, Any]):
    """A dict without writers.

    It keeps a copy of what it is given: mappings inside become `FrozenMapping`s, and lists and
    arrays are handed out as copies, so that nothing that is done to them reaches the original.

    Args:
        content: A mapping, or pairs of key and value.
    """

    def __init__(self, content: Mapping[K, object] | Iterable[tuple[K, object]] = ()) -> None:
        self._content = {key: _owned(value) for key, value in dict(content).items()}

    def __getitem__(self, key: K) -> Any:
        return _owned(self._content[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return hash(frozenset((key, frozen(value)) for key, value in self._content.items()))

    def __repr__(self) -> str:
        return repr(self._content)


def frozen(value: object) -> object:
    """The same value with lists and arrays in it as tuples, mappings as `FrozenMapping`s."""
    match value:
        case np.ndarray():
            return frozen(value.tolist())
        case list() | tuple():
            return tuple(frozen(part) for part in value)
        case Mapping():
            return FrozenMapping({key: frozen(part) for key, part in value.items()})
    return value


def thawed(value: object) -> Any:
    """The same value with mappings in it as plain dicts, for code that expects those."""
    match value:
        case Mapping():
            return {key: thawed(part) for key, part in value.items()}
        case list():
            return [thawed(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(thawed(part) for part in value)
    return value


def _owned(value: object) -> object:
    """The value, or a copy if it is mutable."""
    match value:
        case np.ndarray() | set():
            return value.copy()
        case list():
            return [_owned(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(_owned(part) for part in value)
        case Mapping() if not isinstance(value, FrozenMapping):
            return FrozenMapping(value)
    return value


def belongs(kind: type[object], wanted: type[object]) -> bool:
    """Return whether objects of a class satisfy another class or a protocol.

    Of a protocol, every member has to be there with a signature that fits, and `build` must return
    the wanted type: a filter of one observation is no filter of them all.
    """
    if not getattr(wanted, "_is_protocol", False):
        return issubclass(kind, wanted)
    return _has_members(kind, wanted) and builds(kind, wanted)


def builds(kind: type[object], protocol: type[object]) -> bool:
    """Return whether `build` returns what the protocol's does; methods are compared by name.

    A `build` without a return annotation is accepted.
    """
    built, wanted = (_return_type(getattr(each, "build", None)) for each in (kind, protocol))
    if not (inspect.isclass(built) and inspect.isclass(wanted)):
        return True
    if not getattr(wanted, "_is_protocol", False):
        return issubclass(built, wanted)
    methods = _members_of(wanted).items()
    return all(hasattr(built, name) for name, member in methods if inspect.isfunction(member))


def _members_of(protocol: type[object]) -> dict[str, object]:
    """Return the members that a protocol requires, by name."""
    return {
        name: member
        for each in protocol.__mro__
        if getattr(each, "_is_protocol", False)
        for name, member in vars(each).items()
        if name == "__call__" or not name.startswith("_")
    }


def _has_members(kind: type[object], protocol: type[object]) -> bool:
    # Fields without a default are in annotations alone, which `vars` doesn't hold from 3.14 on.
    own = {name for each in kind.__mro__ for name in (*vars(each), *inspect.get_annotations(each))}
    if not set(_members_of(protocol)) <= own:
        return False
    try:
        check_type(kind, type[protocol], forward_ref_policy=ForwardRefPolicy.IGNORE)
    except TypeCheckError:
        return False
    return True


def _return_type(function: object) -> object:
    try:
        declared = get_type_hints(function).get("return")
    except (TypeError, NameError):  # no function, or names that only type checkers import
        return None
    return None if declared in (Any, object) else declared


def fit(
    value: object,
    annotation: object,
    current: object,
    name: str,
    *,
    advice: Callable[[object], str] | None = None,
) -> object:
    """The value as the declared type wants it.

    Args:
        value: What the user gave, on the command line or in a program.
        annotation: The declared type, resolved; `Any` accepts everything.
        current: The value it replaces; its step unit is that of a bare number.
        name: What is being set, for errors.
        advice: From the value to the end of the error message; None for the usual advice.

    Raises:
        ParameterError: The value does not fit; the message names what was expected.
    """
    try:
        return _convert(value, annotation, current)
    except _UnfitError:
        hint = advice(value) if advice else _advice(value, annotation, current, name)
        raise ParameterError(
            f"{name} must be {describe_type(annotation)}, got {describe_value(value)}{hint}"
        ) from None


def classes_of(annotation: object) -> set[type]:
    """The classes in a type whose own objects, not those of subclasses, fit it unchanged."""
    is_union = get_origin(annotation) in (Union, types.UnionType)
    members = get_args(annotation) if is_union else (annotation,)
    classes = {member for member in members if isinstance(member, type)}
    if any(issubclass(member, int | StepUnit) for member in classes):
        classes.discard(float)  # whole numbers become one of these
    return classes


def declared_types(thing: Callable[..., object]) -> dict[str, object]:
    """The types of a dataclass's fields or a function's arguments, resolved.

    Raises:
        ConfigurationError: An annotation names something that does not exist at run time.
    """
    try:
        return get_type_hints(thing, include_extras=True)
    except NameError as error:
        raise ConfigurationError(
            f"the types of {thing.__name__} cannot be resolved: {error}; import what they "
            "name outside TYPE_CHECKING"
        ) from error


def describe_value(value: object) -> str:
    """A value as a message shows it: a class by its name, parameters without their fields."""
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if type(value) is tuple and any(map(is_dataclass, value)):
        return f"({', '.join(map(describe_value, value))}{',' * (len(value) == 1)})"
    is_large = is_dataclass(value) and not isinstance(value, StepUnit)
    return f"{type(value).__name__}(...)" if is_large else repr(value)


def describe_type(annotation: object) -> str:
    """A type as a user reads it: `float`, `int | None`, `tuple[int, ...]`, `'clip' or 'kl'`."""
    if annotation is Any:
        return "anything"
    if annotation is None or annotation is type(None):
        return "None"
    if get_origin(annotation) in (Union, types.UnionType):
        return " | ".join(describe_type(part) for part in get_args(annotation))
    if get_origin(annotation) is Annotated:
        plain, *metadata = get_args(annotation)
        return f"{describe_type(plain)} {describe_range(metadata)}".rstrip()
    if get_origin(annotation) is Literal:
        return " or ".join(repr(value) for value in get_args(annotation))
    if get_origin(annotation) is Callable:
        return "a function"
    if arguments := get_args(annotation):
        parts = ("..." if part is Ellipsis else describe_type(part) for part in arguments)
        return f"{_name(get_origin(annotation))}[{', '.join(parts)}]"
    return _name(annotation)


def _name(annotation: object) -> str:
    return str(getattr(annotation, "__name__", annotation))


class _UnfitError(Exception):
    """The value cannot be made to fit; `fit` turns it into the user's error."""


def _convert(value: object, annotation: object, current: object) -> object:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return value
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) is annotation:
        return value
    if origin is Annotated:
        converted = _convert(value, arguments[0], current)
        if not is_in_range(converted, arguments[1:]):
            raise _UnfitError
        return converted
    if origin in (Union, types.UnionType):
        return _convert_to_member(value, arguments, current)
    if origin is tuple:
        return _convert_tuple(value, arguments, current)
    if isinstance(annotation, type):
        return _convert_to_class(value, annotation, current)
    if isinstance(origin, type) and issubclass(origin, Mapping) and isinstance(value, Mapping):
        return _convert_mapping(value, annotation)
    return _checked(value, annotation)


def _convert_mapping(value: Mapping[Any, object], annotation: object) -> object:
    if get_origin(annotation) is FrozenMapping:
        return frozen(value)
    if not isinstance(value, dict):
        return _checked(value, annotation)
    of_key, of_value = get_args(annotation)
    return {
        _convert(key, of_key, None): _convert(part, of_value, None) for key, part in value.items()
    }


def _convert_to_member(value: object, members: tuple[object, ...], current: object) -> object:
    """Convert to the value's own class, else to the current value's, else the first to fit.

    So a plain number stands for the step unit that is there, or else for the first one named.
    """
    if type(value) is not float and type(value) in members:
        return value
    for member in members:
        if isinstance(member, type) and member is not float and _is_already(value, member):
            return value
    units = [part for part in members if isinstance(part, type) and issubclass(part, StepUnit)]
    unit = type(current) if type(current) in units else next(iter(units), None)
    fitting = [
        (converted[0], _is_already(current, member))
        for member in members
        if (member not in units or member is unit)
        and (converted := _attempt(value, member, current)) is not None
    ]
    preferred = [converted for converted, is_current in fitting if is_current]
    choice = preferred or [converted for converted, _ in fitting]
    if not choice:
        raise _UnfitError
    return choice[0]


def _attempt(value: object, annotation: object, current: object) -> tuple[object] | None:
    try:
        return (_convert(value, annotation, current),)
    except _UnfitError:
        return None


def _convert_tuple(
    value: object, arguments: tuple[object, ...], current: object
) -> tuple[object, ...]:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if not isinstance(value, tuple | list | range):
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


def _convert_to_class(value: object, wanted: type, current: object) -> object:
    if issubclass(wanted, Enum):
        return _convert_enum(value, wanted)
    if isinstance(value, bool):
        if wanted in (int, float):
            raise _UnfitError
    elif isinstance(value, int | float):
        return _convert_number(value, wanted, current)
    if wanted is tuple and isinstance(value, list):
        return tuple(value)
    return _checked(value, wanted)


def _convert_number(value: float, wanted: type, current: object) -> object:
    is_whole = isinstance(value, int) or value.is_integer()
    if wanted is Hours and 0 <= value < float("inf"):
        return Hours(value)
    if issubclass(wanted, StepUnit) and wanted is not Hours and is_whole and value >= 0:
        unit = wanted if wanted is not StepUnit else type(current)
        if issubclass(unit, StepUnit) and unit is not StepUnit:
            return unit(int(value))
    if wanted is float:
        return float(value)
    if wanted is int and is_whole:
        return int(value)
    return _checked(value, wanted)


def _convert_enum(value: object, wanted: type[Enum]) -> Enum:
    for member in wanted:
        if value is member or value == member.name or value == member.value:
            return member
    raise _UnfitError


def _checked(value: object, annotation: object) -> object:
    if not _is_already(value, annotation):
        raise _UnfitError
    return value


def _is_already(value: object, annotation: object) -> bool:
    if isinstance(value, bool) and annotation in (int, float):
        return False
    if isinstance(annotation, type) and getattr(annotation, "_is_protocol", False):
        is_class = isinstance(value, type)  # which has the methods that its instances have
        is_whole = _members_of(annotation).keys() <= set(dir(value))  # its properties, too
        if is_class or not is_whole or not builds(type(value), annotation):
            return False
    if get_origin(annotation) is Callable:
        return callable(value)  # its arguments are checked by the caller
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


def _advice(value: object, annotation: object, current: object, name: str) -> str:
    if meant := _rewritten(value, annotation):
        return f"; write {meant}"
    for word in value if isinstance(value, tuple | list) else (value,):
        words = _words(annotation)
        if isinstance(word, str) and words and word not in words:
            return suggestion(word, words, limit=0)
    members = [part for part in _leaves(annotation) if isinstance(part, type)]
    if members[:1] == [Hours]:
        return "; write a number of hours"
    for member in members:
        if issubclass(member, Enum):
            return f"; allowed: {', '.join(known.name for known in member)}"
        if issubclass(member, StepUnit):
            return f"; write a whole number, or {member.__name__}(3000)"
    if is_dataclass(current) and not isinstance(current, StepUnit | type):
        names = [field.name for field in fields(current)]
        return f"; set its own parameters, e.g. {name}.{names[0]}" if names else ""
    return ""


def _rewritten(value: object, annotation: object) -> str:
    """The value that was probably meant; empty if unknown."""
    if isinstance(value, str):
        return _LOOKALIKES.get(value.lower(), "")
    if isinstance(value, type):
        return f"{value.__name__}(...), with brackets"
    is_single = value is not None and not isinstance(value, tuple | list | Mapping)
    if any(_attempt(value, leaf, None) for leaf in _leaves(annotation)):
        return ""  # of a right type, out of its range
    if is_single and _attempt((value,), annotation, None) is not None:
        return f"a tuple, ({describe_value(value)},)"
    return ""


def _words(annotation: object) -> list[str]:
    """The strings of all literals in a type."""
    if get_origin(annotation) is Literal:
        return [word for word in get_args(annotation) if isinstance(word, str)]
    return [word for part in get_args(annotation) for word in _words(part)]


def _leaves(annotation: object) -> tuple[object, ...]:
    if get_origin(annotation) is Annotated:
        return _leaves(get_args(annotation)[0])
    if get_origin(annotation) in (Union, types.UnionType):
        return tuple(leaf for part in get_args(annotation) for leaf in _leaves(part))
    return (annotation,)
