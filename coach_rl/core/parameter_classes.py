"""Parameter classes: frozen dataclasses that check their values, and roles that they take on.

@parameter_class
class WalkParameters:
    stride: Positive[float] = 0.5
    limit: EnvironmentSteps = EnvironmentSteps(1_000)

WalkParameters(limit=500)                # a whole number stands for a step unit
WalkParameters(strid=0.4)                # UnknownNameError: did you mean 'stride'?
WalkParameters(stride="0.4")             # ParameterError: WalkParameters.stride must be float > 0
WalkParameters(stride=-1)                # the same, got -1

Rules between fields stand in `__post_init__`. A subclass that is a plain dataclass is checked too.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import cache, wraps
from typing import Any, Self, TypeVar, dataclass_transform

from coach_rl.core.errors import ParameterError, UnknownNameError, field_hints, require
from coach_rl.core.ranges import has_range
from coach_rl.core.steps import StepUnit
from coach_rl.core.typed_values import classes_of, declared_types, describe_value, fit

T = TypeVar("T")

ADVICE = "advice"
"""Under this name a field's metadata may hold a function from a value of the wrong type to the end
of the error message: what to write instead."""


_MARK = "__parameter_class__"
"""Name of the attribute by which a class knows the nearest parameter class: itself or a base."""


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def parameter_class(cls: type[T]) -> type[T]:
    """Make a class a frozen dataclass of keyword arguments, checked against the declared types.

    Values are fitted as those of `-cp` are (see `typed_values`), before `__post_init__` checks
    their rules. Every mistake is a `ParameterError` or `UnknownNameError` that names the field.
    """
    check_rules: Callable[[object], None] | None = getattr(cls, "__post_init__", None)

    def fit_and_check(self: object) -> None:
        if getattr(type(self), _MARK) is described:
            _fit_fields(self)
        if check_rules is not None:
            check_rules(self)

    setattr(cls, "__post_init__", fit_and_check)  # noqa: B010 (mypy knows no such attribute)
    described = dataclass(frozen=True, kw_only=True)(cls)
    setattr(described, _MARK, described)
    assign = described.__init__

    @wraps(assign)
    def construct(self: object, *positional: object, **given: object) -> None:
        _check_names(type(self), positional, given)
        assign(self, **given)

    described.__init__ = construct  # type: ignore[method-assign]  # the checks come first
    return described


def with_values(parameters: T, **values: object) -> T:
    """A copy with other values of some fields, which our own code has made and nothing checks.

    Values of users go through the constructor, or `dataclasses.replace`.
    """
    changed: T = object.__new__(type(parameters))
    vars(changed).update(vars(parameters), **values)
    return changed


def narrowed(parameters: object, base: type[T]) -> T:
    """The values of a base class's fields alone, which were checked with the others."""
    plain = object.__new__(base)
    described: Any = base
    for name in _arguments(described):
        object.__setattr__(plain, name, getattr(parameters, name))
    return plain


def require_printable(text: object, what: str) -> None:
    """Raise `ParameterError` for a text with control characters, line ends or invisible marks."""
    is_printable = not isinstance(text, str) or text.isprintable()
    require(is_printable, f"{what} must be printable text, got {text!r}; leave out what is escaped")


def _check_names(cls: type, positional: tuple[object, ...], given: Mapping[str, object]) -> None:
    arguments = _arguments(cls)
    of = f" of '{given['name']}'" if isinstance(given.get("name"), str) else ""
    if positional:
        raise ParameterError(
            f"{cls.__name__} takes keyword arguments ({', '.join(arguments)}), "
            f"got {describe_value(positional[0])}"
        )
    for name in given:
        if name not in arguments:
            near = [each for hint in field_hints for each in hint(name, arguments)]
            raise UnknownNameError(
                "parameter", name, arguments, near=near, where=f"of {cls.__name__}"
            )
    for name, argument in arguments.items():
        is_required = argument.default is MISSING and argument.default_factory is MISSING
        if is_required and name not in given:
            hint = f"write {cls.__name__}({name}=...)"
            raise ParameterError(f"{cls.__name__}{of} lacks {name}; {hint}")


def _fit_fields(parameters: object) -> None:
    """Convert every field to its declared type.

    What a field accepts by its class alone is recognised by that: parameters among them are frozen,
    and were fitted when they were made.
    """
    cls: Any = type(parameters)
    arguments = _arguments(cls)
    types = _types(cls)
    accepted = _accepted(cls)
    given = getattr(parameters, "name", None) if "name" in arguments else None
    if given is not None:
        require_printable(given, f"{cls.__name__}.name")
    for name, argument in arguments.items():
        value = getattr(parameters, name)
        if type(value) in accepted[name]:
            continue
        is_named = isinstance(given, str) and given != arguments["name"].default
        called = f"{cls.__name__}.{name}" + (f" of '{given}'" if is_named else "")
        # The default determines the step unit of a whole number.
        unit = argument.default if isinstance(argument.default, StepUnit) else None
        advice = argument.metadata.get(ADVICE)
        own, *overridden = types[name]
        fitted = fit(value, own, unit, called, advice=advice)
        for ranged in overridden:
            fit(fitted, ranged, unit, called, advice=advice)
        object.__setattr__(parameters, name, fitted)
        if fitted is value and is_dataclass(value) and not any(map(has_range, types[name])):
            accepted[name].add(type(value))


@cache
def _arguments(cls: type) -> dict[str, Field[object]]:
    """The fields that the constructor takes, by name."""
    return {each.name: each for each in fields(cls) if each.init}


@cache
def _types(cls: type) -> dict[str, tuple[object, ...]]:
    """The declared types of every field: its own, then others with a range that it overrides."""
    bases = [declared_types(base) for base in cls.__mro__[1:] if _MARK in vars(base)]
    found: dict[str, tuple[object, ...]] = {}
    for name, own in declared_types(cls).items():
        inherited = [base[name] for base in bases if base.get(name, own) != own]
        found[name] = (own, *filter(has_range, inherited))
    return found


@cache
def _accepted(cls: type) -> dict[str, set[type]]:
    """The classes whose objects each field accepts unchanged, by its name; grows with use."""
    return {
        name: classes_of(types[0]) if len(types) == 1 else set()
        for name, types in _types(cls).items()
    }


class MovableParameters(ABC):
    """Parameters that may request what only some machines support."""

    @abstractmethod
    def moved_to(self, device: str) -> Self:
        """The same for a run that continues elsewhere, without what cannot be done there.

        Args:
            device: Where networks live from now on, e.g. `cpu` or `cuda:0`.
        """

    def check_device(self, device: str) -> None:  # noqa: B027 # most check nothing beforehand
        """Raise `ConfigurationError` where something requested cannot be done on the device."""


class KeepingParameters(ABC):
    """Parameters of a memory that keeps transitions and hands out batches of them."""

    @abstractmethod
    def keeping_nothing(self) -> Self:
        """The same memory without capacity, for an agent that only acts."""


class LearnerParameters(ABC):
    """Parameters of an agent that waits for a number of decisions before it learns."""

    @abstractmethod
    def obstacle_to_learning(self, *, num_envs: int, steps: int, heatup: int) -> str | None:
        """Return why the agent would learn nothing in a run, and what to change; None if it learns.

        Args:
            num_envs: Environments in parallel.
            steps: Environment steps of the run, summed over all of them; no level makes more
                decisions.
            heatup: How many of these are heat-up.
        """


class RecordedParameters(ABC):
    """Parameters that name what may change while runs use it, such as another run."""

    @abstractmethod
    def recorded(self) -> Self:
        """The same with what is there now, as manifests keep it; what was recorded stays."""


class CodeNamingParameters(ABC):
    """Parameters that hold names of code, which is imported and called when they are built."""

    @abstractmethod
    def code_names(self) -> tuple[str, ...]:
        """Return all of the names, each as `module:name`.

        They may come from another user's run folder, and are checked before anything is built.
        """
