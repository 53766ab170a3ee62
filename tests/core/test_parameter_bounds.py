"""Every field of every parameter class refuses what its type excludes, and accepts its edges.

The values follow from the declared types. `parameter_bounds.toml` repeats the ranges, so that none
is changed by accident. Rules between fields are tested beside their classes.
"""

import importlib.util
import inspect
import math
import pkgutil
import re
import tomllib
from collections import defaultdict
from contextlib import suppress
from dataclasses import MISSING, fields
from enum import Enum
from itertools import chain
from operator import attrgetter
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np
import pytest
from annotated_types import Ge, Gt, Interval, Le, Lt, MinLen
from gymnasium import spaces

import coach_rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.ranges import Rising, has_range
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.steps import Hours, StepUnit
from coach_rl.core.typed_values import declared_types, describe_type, fit

TABLE = tomllib.loads(Path(__file__).with_name("parameter_bounds.toml").read_text())
SPACES = EnvironmentSpaces(observation=spaces.Dict(), action=spaces.Discrete(2))
STRANGE = object()
"""A value of a class that no field has."""


def leaves(annotation):
    """A type and the types in it."""
    return [annotation, *chain.from_iterable(map(leaves, get_args(annotation)))]


def is_parameter_class(thing):
    return inspect.isclass(thing) and vars(thing).get("__parameter_class__") is thing


def parameter_classes():
    """Every parameter class, those of extensions too, but for abstract ones."""
    names = [each.name for each in pkgutil.walk_packages(coach_rl.__path__, "coach_rl.")]
    described = [
        vars(importlib.import_module(name)).values()
        for name in names
        if "\n@parameter_class\n" in Path(importlib.util.find_spec(name).origin).read_text()
    ]
    found = filter(is_parameter_class, chain.from_iterable(described))
    classes = {each for each in found if not inspect.isabstract(each)}
    return sorted(classes, key=lambda each: (each.__name__, each.__module__))


CLASSES = parameter_classes()


def types_of(cls, name):
    """The type of a field, and those with a range that it overrides."""
    bases = [cls, *(each for each in cls.__mro__[1:] if "__parameter_class__" in vars(each))]
    own, *others = [types[name] for each in bases if name in (types := declared_types(each))]
    return [own, *(each for each in dict.fromkeys(others) if has_range(each) and each != own)]


# Values that a type allows, its edges among them, and values that it excludes.


def cases(annotation):
    parts = get_args(annotation)
    match get_origin(annotation):
        case kind if kind is Annotated:
            return of_range(parts[0], parts[1:])
        case kind if kind in (Union, UnionType):
            return of_union(parts)
        case kind if kind is Literal:
            return [*parts], ["no such word", STRANGE]
        case kind if kind is tuple:
            return of_tuple(parts)
    return ([STRANGE], []) if annotation in (Any, object) else of_class(annotation)


def of_class(wanted):
    if wanted is bool:
        return [True, False], ["true", 2, STRANGE]
    if wanted is int:
        return [-1, 0, 2, np.int64(3), 4.0], [0.5, True, "1", math.inf, STRANGE]
    if wanted is float:
        return [-1.5, 0, 2, np.float32(0.5)], [True, "1.5", STRANGE]
    if wanted is str:
        return ["a"], [3, STRANGE]
    if wanted in (None, NoneType):
        return [None], []
    if not inspect.isclass(wanted):
        return [], [STRANGE]
    if issubclass(wanted, StepUnit) and wanted is not StepUnit:
        return [wanted(0), wanted(3)], ["3", -1, STRANGE]
    if issubclass(wanted, Enum):
        return [*wanted, *(each.name for each in wanted)], ["no such member", STRANGE]
    return [], [STRANGE]


def of_union(parts):
    """Of what a member excludes, that which no other may take for its own."""
    members = [cases(part) for part in parts]
    inside = [value for each, _ in members for value in each]
    outside = [
        value
        for part, (_, excluded) in zip(parts, members, strict=True)
        for value in excluded
        if not any(may_take(other, value) for other in parts if other is not part)
    ]
    return inside, outside


def may_take(annotation, value):
    """Whether values of this kind belong to a type, in its range or not."""
    if value is STRANGE:
        return annotation in (Any, object)
    parts = get_args(annotation)
    match get_origin(annotation):
        case kind if kind is Annotated:
            return may_take(parts[0], value)
        case kind if kind is tuple:
            return isinstance(value, tuple | list)
        case kind if kind is Literal:
            return value in parts
    if annotation is float or (inspect.isclass(annotation) and issubclass(annotation, StepUnit)):
        return isinstance(value, int | float | StepUnit)
    return inspect.isclass(annotation) and isinstance(value, annotation)


def of_tuple(parts):
    """With each value that an element may or may not have, one tuple."""
    if parts == ((),):
        return [()], [(1,), 3]
    if parts[-1] is Ellipsis:
        inside, outside = cases(parts[0])
        return [(), (*inside,), [*inside]], [*((each,) for each in outside), STRANGE]
    elements = [cases(part) for part in parts]
    usual = tuple(inside[-1] if inside else None for inside, _ in elements)

    def with_each(number):
        return [
            (*usual[:place], value, *usual[place + 1 :])
            for place, values in enumerate(elements)
            for value in values[number]
        ]

    inside = [] if None in usual else with_each(0)
    return inside, [*with_each(1), usual[:-1], (*usual, usual[-1]), STRANGE]


def of_range(plain, bounds):
    if get_origin(plain) in (Union, UnionType):
        return of_union([Annotated[part, *bounds] for part in get_args(plain)])
    inside, outside = cases(plain)
    sides = [side for each in bounds for side in (each if isinstance(each, Interval) else (each,))]
    judged = [of_side(plain, side) for side in sides]
    for edges, beyond, _ in judged:
        inside = [*inside, *edges]
        outside = [*outside, *beyond]
    return [each for each in inside if all(holds(each) for *_, holds in judged)], outside


def of_side(plain, side):
    """Values at a bound, values beyond it, and the rule."""
    is_unit = inspect.isclass(plain) and issubclass(plain, StepUnit)
    is_whole = plain is int or (is_unit and plain is not Hours)

    def beside(value, way):
        return value + way if is_whole else float(np.nextafter(value, way * math.inf))

    def made(*values):
        """Numbers as the type writes them; a unit counts from 0."""
        numbers = [each for each in values if not is_whole or math.isfinite(each)]
        return [plain(each) if is_unit and 0 <= each < math.inf else each for each in numbers]

    def number(value):
        return value.count if isinstance(value, StepUnit) else value

    match side:
        case Gt(gt=low):
            beyond = made(low, beside(low, -1), math.inf, math.nan)
            return made(beside(low, 1)), beyond, lambda each: low < number(each) < math.inf
        case Ge(ge=low):
            beyond = made(beside(low, -1), math.inf, math.nan)
            return made(low), beyond, lambda each: low <= number(each) < math.inf
        case Lt(lt=high):
            beyond = made(high, beside(high, 1), math.nan)
            return made(beside(high, -1)), beyond, lambda each: number(each) < high
        case Le(le=high):
            return made(high), made(beside(high, 1), math.nan), lambda each: number(each) <= high
        case MinLen(min_length=1):
            return ["a"] if plain is str else [], ["" if plain is str else ()], len
        case Rising(strictly=strictly):
            equal = [(1.0, 1.0)]
            beyond = [(1.0, 0.0), (0.0, math.nan), *(equal if strictly else [])]
            return (
                [(0.0, 1.0), *([] if strictly else equal)],
                beyond,
                lambda each: each[0] < each[1],
            )
    raise AssertionError(f"no values for {side}")


# Parameters of each class, of which one value at a time is replaced.


def needed(cls):
    """The arguments that a class cannot do without, each with a value of its type."""
    return {
        each.name: example(types_of(cls, each.name)[0])
        for each in fields(cls)
        if each.init and is_required(each)
    }


def is_required(argument):
    return argument.default is MISSING and argument.default_factory is MISSING


def defaults():
    """Parameters of every class that needs no arguments."""
    for each in CLASSES:
        if not any(map(is_required, fields(each))):
            with suppress(ParameterError):  # one of several is needed
                yield each()


DEFAULTS = [*defaults()]


def example(annotation):
    """A value of a type: an edge, or parameters of a class that it knows."""
    known = [each(**needed(each)) for each in leaves(annotation) if is_parameter_class(each)]
    for value in [*cases(annotation)[0], *known, *DEFAULTS, SPACES, Path("mine.npz")]:
        for given in (value, (value,)):
            with suppress(ParameterError):
                return fit(given, annotation, None, "")
    raise AssertionError(f"no value for {annotation}")


def is_refused(cls, given, name, value):
    """Whether the class refuses a value of a field by its type, before rules between fields."""
    try:
        cls(**given | {name: value})
    except ConfigurationError as error:
        expected = "|".join(re.escape(describe_type(each)) for each in types_of(cls, name))
        of_type = rf"{cls.__name__}\.{name}( of '.*')? must be ({expected}), got "
        return re.match(of_type, str(error)) is not None
    return False


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("cls", CLASSES, ids=lambda each: each.__name__)
def test_parameters_refuse_what_their_types_exclude_and_accept_their_edges(cls):
    given = needed(cls)
    for each in filter(attrgetter("init"), fields(cls)):
        known = [cases(annotation) for annotation in types_of(cls, each.name)]
        for value in known[0][0] if len(known) == 1 else []:
            assert not is_refused(cls, given, each.name, value), (each.name, value)
        for value in chain.from_iterable(outside for _, outside in known):
            assert is_refused(cls, given, each.name, value), (each.name, value)


def ranges():
    """The names of fields with a range or a choice by their type, each where it is declared."""
    found = defaultdict(set)
    for cls in CLASSES:
        for each in filter(is_parameter_class, cls.__mro__):
            for name, annotation in declared_types(each).items():
                is_choice = Literal in map(get_origin, leaves(annotation))
                is_own = name in inspect.get_annotations(each)
                if is_own and (has_range(annotation) or is_choice):
                    found[describe_type(annotation)].add(f"{each.__name__}.{name}")
    return {described: sorted(names) for described, names in found.items()}


def test_ranges_and_choices_are_those_of_the_table():
    found, there = ranges(), {each.__name__ for cls in CLASSES for each in cls.__mro__}
    for described in found.keys() | TABLE.keys():
        names, listed = found.get(described, []), TABLE.get(described, [])
        listed = [each for each in listed if each.partition(".")[0] in there]  # not of deleted ones
        assert names == listed, f"{described}: change parameter_bounds.toml with the field"
