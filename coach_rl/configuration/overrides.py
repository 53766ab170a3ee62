"""Changes of parameters by the user: read from text, and made in a tree of parameters.

    learning_rate=0.001; agent.exploration=OrnsteinUhlenbeckNoise(sigma=0.2)

A name without a dot that is an argument of the preset goes to the preset's panel, every other name
is a path into the resolved parameters, with the index for an element of a tuple
(`levels.0.horizon`). All changes below one dataclass are made at once, so coupled values never pass
through a forbidden state.

A component is a frozen dataclass among the public names of `coach_rl`, written like a call;
`Parameters` at the end of its name may be left out. Text is parsed, never executed: arguments are
values or components themselves, and only the constructors of those dataclasses are called.
"""

import ast
import dataclasses
import inspect
import re
import types
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin

import coach_rl
from coach_rl.configuration.extensions import installed_extensions
from coach_rl.configuration.familiar_names import familiar_settings, names_here
from coach_rl.configuration.parameters_json import (
    constructor_fields,
    encode,
    is_frozen_dataclass,
    resolve,
)
from coach_rl.configuration.strict_json import Json, from_json
from coach_rl.configuration.trust import Trust
from coach_rl.core.clock import ConstantSchedule, Schedule
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    ParameterError,
    UnknownNameError,
    near_names,
    require_no_problems,
    suggestion,
)
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import belongs, declared_types, describe_type, fit

_PATH = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_BARE_WORD = re.compile(r"[^\s'\"()\[\]{},=]+")
_SHORT_NUMBER = re.compile(r"(\d+(?:\.\d+)?)([kKmM])")
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_SUFFIX = "Parameters"
_UNIONS = (Union, types.UnionType)
_UNREADABLE = (ValueError, SyntaxError, TypeError, MemoryError, RecursionError)
"""Errors of reading a text that is no literal."""


def parse_overrides(text: str) -> dict[str, object]:
    """The assignments in `name=value; path.to.name=value`.

    Args:
        text: Assignments separated by `;`, or objects of JSON, `{"name": value}`; a `;` inside
            quotes or brackets belongs to the value.

    Returns:
        Values by name: literals and components.

    Raises:
        ConfigurationError: Something is no assignment, has no readable value, or is given twice.
    """
    return {name: _value(name, literal) for name, literal in assignments(text).items()}


def assignments(text: str) -> dict[str, str]:
    """The texts of the values in `name=value; path.to.name=value`, by name.

    Raises:
        ConfigurationError: Something is no assignment, or is given twice.
    """
    found: dict[str, str] = {}
    for name, literal in _assigned(text):
        if name in found:
            raise ConfigurationError(f"the override '{name}' is given twice; give one")
        found[name] = literal
    return found


def _assigned(text: str) -> Iterator[tuple[str, str]]:
    """The names and the texts of the values in assignments and objects of JSON."""
    for part in _split(text):
        if part.startswith("{"):
            yield from _assigned_in_json(part)
            continue
        name, equals, literal = (piece.strip() for piece in part.partition("="))
        if not equals or not _PATH.fullmatch(name):
            raise ConfigurationError(
                f"cannot read the override '{part}'; write name=value or path.to.name=value, "
                "separated by ';'"
            )
        yield name, literal


def _assigned_in_json(text: str) -> Iterator[tuple[str, str]]:
    """The names in an object of JSON, and its values as they are written in assignments."""
    try:
        document = from_json(text, source="the override")
    except CheckpointError as error:
        example = """write '{"name": value, "path.to.name": value}', or name=value"""
        raise ConfigurationError(f"{error}; {example}") from error
    for name, value in document.items():
        if not _PATH.fullmatch(name):
            raise ConfigurationError(f"cannot read the override '{name}'; give a name or a path")
        is_component = isinstance(value, str) and read_call(value)
        yield name, value if is_component else repr(value)


def read_call(text: str) -> tuple[str, list[object], dict[str, object]] | None:
    """The name, the values and the named values of `name(value, name=value)`.

    Values are read as those of overrides are; nothing is executed.

    Returns:
        None where the text is no call, or a value in it cannot be read.

    Raises:
        ConfigurationError: A component in it does not exist, or its arguments have no names.
    """
    try:
        match ast.parse(text.strip(), mode="eval").body:
            case ast.Call(func=ast.Name(id=name), args=values, keywords=named):
                by_name = {each.arg: _read(_quoted(each.value)) for each in named if each.arg}
                if len(by_name) == len(named):
                    return name, [_read(_quoted(value)) for value in values], by_name
    except _UNREADABLE:
        pass
    return None


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


@dataclass(frozen=True)
class OfKind:
    """A component with these arguments, in place of one of another class; of one, they are changed.

    `--workers 4` sets `{"source": OfKind("CollectionParameters", {"workers": 4})}`. Changes of
    further arguments may be given beside it, by their paths.
    """

    name: str
    """The name of its class."""
    arguments: Mapping[str, object]
    """Values by argument."""

    def further(self, path: str, others: Iterable[str]) -> set[str]:
        """The other paths that set further arguments of this component at `path`."""
        own = {_join(path, argument) for argument in self.arguments}
        return {other for other in others if other.startswith(f"{path}.")} - own

    def within(self, current: object, others: Mapping[str, object]) -> Mapping[str, object]:
        """The changes of a value that make it such a component, with further changes below it."""
        changes = {**self.arguments, **others}
        if isinstance(current, component_type(self.name)):
            return changes
        return {"": Component(self.name, changes)}


@dataclass(frozen=True)
class InPlaceOf:
    """Elements of a tuple in place of those of their classes; the others stay, and come first.

    The flag of a callback sets `{"callbacks": InPlaceOf({Gait: (Gait(legs=4),)})}`.
    """

    elements: Mapping[type[object], tuple[object, ...]]
    """The new elements by their class; none where those of the class are left out."""

    def __or__(self, other: "InPlaceOf") -> "InPlaceOf":
        """Both at once."""
        return InPlaceOf({**self.elements, **other.elements})

    def within(self, current: tuple[object, ...]) -> tuple[object, ...]:
        """The elements of a tuple with these in it."""
        kept = [each for each in current if type(each) not in self.elements]
        return (*kept, *(new for several in self.elements.values() for new in several))


def component_type(name: str) -> type[object]:
    """The class of a component.

    Args:
        name: Its name in `coach_rl` or in an installed extension, with or without `Parameters` at
            the end.

    Raises:
        UnknownNameError: There is no such component.
    """
    for full_name in (name, name + _SUFFIX):
        if full_name in coach_rl.__all__ and _is_component(getattr(coach_rl, full_name)):
            found: type[object] = getattr(coach_rl, full_name)
            return found
    for extension in installed_extensions()[0]:
        places = extension.public_names()
        for full_name in {name, name + _SUFFIX} & places.keys():
            module, there = places[full_name]
            found = resolve(f"{module}:{there}", name, trust=Trust(modules=frozenset({module})))
            if _is_component(found):
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
        ParameterError: A component lacks an argument, or does not fit; the message names
            those that would.
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


def fitted(given: object, annotation: object, default: object, name: str) -> object:
    """A value with its components made, as a field takes it.

    Args:
        given: What was written.
        annotation: The field's type.
        default: The field's value so far.
        name: What is being set, for errors.

    Raises:
        UnknownNameError: There is no such component, or it has no such argument.
        ParameterError: The value does not fit; the message names what would, where that is known.
    """
    value = made(given, annotation, name)
    try:
        return fit(value, annotation, default, name)
    except ParameterError as error:
        raise ParameterError(f"{error}{_written(value, annotation)}") from None


def _written(value: object, annotation: object) -> str:
    """The end of an error message: how what was meant is written, or the components that fit."""
    if isinstance(value, str):
        named = [kind for kind in fitting(annotation) if value.lower() == short_name(kind).lower()]
        if named:
            return f"; write {short_name(named[0])}({_needed(named[0])})"
        if short := _SHORT_NUMBER.fullmatch(value):
            zeros = {"k": 3, "m": 6}[short[2].lower()]
            return f"; write {short[1]}e{zeros}"
        if _arguments(annotation, tuple):
            return f"; several values are written in brackets, and one as ({value!r},)"
    return fitting_advice(annotation)


def fitting(annotation: object) -> list[type[object]]:
    """The components that a field of this type accepts, but for step units, which are numbers."""
    return [kind for kind in component_types() if _fits(kind, annotation)]


def _fits(kind: type[object], annotation: object) -> bool:
    """Return whether a field of this type accepts a component that is no step unit."""
    wanted = [part for part in _members(annotation) if inspect.isclass(part)]
    return not issubclass(kind, StepUnit) and any(belongs(kind, each) for each in wanted)


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


Tree = TypeVar("Tree")
Below = Mapping[str, Mapping[str, object]]
"""Changes of the parts of a value by their names, each by the paths below the part."""


def apply_overrides(
    parameters: Tree, overrides: Mapping[str, object], *, panel: Collection[str] = ()
) -> Tree:
    """The parameters with some values replaced; the original stays as it is.

    Args:
        parameters: A tree of frozen dataclasses.
        overrides: Values by dotted path.
        panel: Names of the preset's arguments, which an unknown name may have been meant for.

    Raises:
        ConfigurationError: A path does not exist (the message has the nearest names) or a value
            does not fit its type.
        ParameterError: The changed dataclass refuses the value.
    """
    names = [field.name for field in constructor_fields(type(parameters))]
    require_no_problems(
        _unknown(path, [*panel, *names], parameters, "")
        for path in overrides
        if path.partition(".")[0] not in (*panel, *names)
    )
    replaced: Tree = _replace(parameters, overrides, type(parameters), "")
    return replaced


def format_overrides(overrides: Mapping[str, object]) -> str:
    """Overrides in the form of the command line, for messages."""
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


def _split(text: str) -> list[str]:
    """The parts between the `;` that stand outside quotes and brackets."""
    parts = []
    start = 0
    quote = ""
    open_brackets = 0
    is_escaped = False
    for index, character in enumerate(text):
        if quote:
            quote = "" if character == quote and not is_escaped else quote
            is_escaped = character == "\\" and not is_escaped
        elif character in "'\"":
            quote = character
        elif character in _CLOSING:
            open_brackets += 1
        elif character in _CLOSING.values():
            open_brackets -= 1
        elif character == ";" and open_brackets <= 0:
            parts.append(text[start:index])
            start = index + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def _value(name: str, text: str) -> object:
    """The literal, bare word or component that a text is."""
    is_word = _BARE_WORD.fullmatch(text) is not None
    try:
        return (
            ast.literal_eval(text) if is_word else _read(ast.parse(text.strip(), mode="eval").body)
        )
    except _UNREADABLE:
        if is_word:
            return text
    if re.search(r",\s*[A-Za-z_][\w.]*\s*=", text):
        raise ConfigurationError(f"cannot read '{name}={text}'; separate changes with ';'")
    raise ConfigurationError(
        f"cannot read the value {text!r} of '{name}'; write a number, a word, 'quoted text', True, "
        "False, None, a tuple such as (64, 64) or ('x', 'y'), or a component such as "
        "EpsilonGreedy(epsilon=0.1)"
    )


def _read(node: ast.expr) -> object:
    """A literal that may contain components, and bare words in their arguments.

    Raises:
        ValueError: It is something else.
        ConfigurationError: A component's arguments are not given by name.
    """
    match node:
        case ast.Call(func=ast.Name(id=name), args=positional, keywords=keywords):
            arguments = {each.arg: _read(_quoted(each.value)) for each in keywords if each.arg}
            if len(positional) == 1 and name in [
                unit.__name__ for unit in StepUnit.__subclasses__()
            ]:
                arguments["count"] = _read(positional.pop())
            if positional or len(arguments) < len(keywords):
                component_type(name)  # a name that is unknown is reported first
                raise ConfigurationError(f"give the arguments of {name}(...) by name, each once")
            return Component(name, arguments)
        case ast.Tuple(elts=parts):
            return tuple(map(_read, parts))
        case ast.List(elts=parts):
            return list(map(_read, parts))
        case ast.Dict(keys=keys, values=values) if None not in keys:
            read = (_read(_quoted(key)) for key in keys if key is not None)
            return dict(zip(read, map(_read, values), strict=True))
    return ast.literal_eval(node)


def _quoted(node: ast.expr) -> ast.expr:
    return ast.Constant(node.id) if isinstance(node, ast.Name) else node


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
    required = [field.name for field in known if _is_needed(field)]
    missing = [argument for argument in required if argument not in component.arguments]
    if missing:
        raise ParameterError(f"{component.name} in '{name}' needs {', '.join(missing)}")
    is_allowed = annotation is Any or kind in _members(annotation) or _fits(kind, annotation)
    if not is_allowed:
        raise ParameterError(
            f"{name} must be {describe_type(annotation)}, got {component!r}"
            f"{fitting_advice(annotation)}"
        )
    arguments = {}
    for argument, value in component.arguments.items():
        path = f"{name}: {component.name}.{argument}"
        declared = types[argument]
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


def _plain(value: object) -> object:
    """A step unit as the number it is."""
    return value.count if isinstance(value, StepUnit) else value


def _replace(current: Any, changes: Mapping[str, object], annotation: object, path: str) -> Any:
    """The value at `path` after changes by the paths below it; an empty path is its own."""
    if "" in changes:
        others = {name: value for name, value in changes.items() if name}
        given = changes[""]
        if isinstance(given, OfKind):
            return _replace(current, given.within(current, others), annotation, path)
        if others:
            last = f"{path}.{[*others][-1]}"
            raise ConfigurationError(
                f"the override '{last}' overlaps another one; give one of them"
            )
        if isinstance(given, InPlaceOf):
            given = given.within(current)
        return fitted(given, annotation, current, path)
    below: dict[str, dict[str, object]] = {}
    for name, value in changes.items():
        first, _, rest = name.partition(".")
        below.setdefault(first, {})[rest] = value
    if dataclasses.is_dataclass(current):
        return _replace_fields(current, below, annotation, path)
    if isinstance(current, tuple):
        return _replace_elements(current, below, annotation, path)
    if isinstance(current, Mapping):
        return _replace_keys(current, below, annotation, path)
    lines = "".join(f' or -cp "{path}={_call(kind)}"' for kind in fitting(annotation)).removeprefix(
        " or"
    )
    raise ConfigurationError(
        f"'{path}' is {current!r} and has no parameter '{next(iter(below))}' below it; set "
        f"'{path}' itself" + (f", e.g. by{lines}" if lines else "")
    )


def _replace_fields(current: Any, change: Below, annotation: object, path: str) -> object:
    names = [field.name for field in constructor_fields(type(current))]
    annotations = declared_types(type(current))
    replaced = {}
    problems = []
    for name, below in change.items():
        try:
            if name not in names:
                whole = _join(name, next(iter(below))).rstrip(".")
                raise _unknown(whole, names, current, path, annotation)
            replaced[name] = _replace(
                getattr(current, name), below, annotations[name], _join(path, name)
            )
        except ConfigurationError as error:
            problems.append(error)
    require_no_problems(problems)
    return dataclasses.replace(current, **replaced)


def _replace_elements(
    current: tuple[object, ...], change: Below, annotation: object, path: str
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
    """The path of an element, and the name of its value if it has one."""
    name = getattr(element, "name", None)
    return path if name is None else f"{path} ('{name}')"


def _replace_keys(
    current: Mapping[str, object], change: Below, annotation: object, path: str
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
    name: str,
    allowed: Collection[str],
    parameters: object,
    path: str,
    annotation: object = None,
) -> UnknownNameError:
    """The error about a name, with the longer paths that end in it, which may have been meant."""
    where = f"of '{path}'" if path else ""
    first = name.partition(".")[0]
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
    flags = names_here("flags").get(name.lower())
    if flags is not None and not near_names(first, allowed):
        return UnknownNameError("parameter", name, allowed, near=flags, where=where)
    kinds = fitting(annotation) if path else ()
    owners = [each for each in kinds if first in {field.name for field in constructor_fields(each)}]
    if len(owners) == 1:
        kind = short_name(owners[0])
        hint = f"{kind} has one: {path}={kind}(..., {first}=...)"
    hint = "" if suggestion(first, allowed) else hint
    return UnknownNameError("parameter", first, set(allowed), hint, where=where)


def _needed(kind: type[object]) -> str:
    """The arguments that a component has to be given."""
    return ", ".join(f"{field.name}=..." for field in constructor_fields(kind) if _is_needed(field))


def _is_needed(field: dataclasses.Field[object]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _call(kind: type[object]) -> str:
    arguments = ", ".join(f"{field.name}=..." for field in constructor_fields(kind))
    return f"{short_name(kind)}({arguments})"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
