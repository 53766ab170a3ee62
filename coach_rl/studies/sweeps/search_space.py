"""The search space of a sweep: the settings it varies, and their ranges.

    learning_rate=log(1e-4, 3e-3); layers=choice((128, 128), (256, 256))

A setting is a name on the preset's panel or a dotted path, as after `-cp`. Values are parsed,
never evaluated, and every bound and every choice is tried on the preset before anything is run.
"""

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from coach_rl.configuration.overrides import (
    assignments,
    format_overrides,
    made,
    parameter_paths,
    read_call,
)
from coach_rl.configuration.preset_file import Preset, require_given_once
from coach_rl.core.errors import ConfigurationError, UnknownNameError, require
from coach_rl.core.typed_values import fit

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


Overrides = dict[str, object]

_DIGITS = 4
"""Significant digits of a number that is drawn, so that it is printed as it was used."""
_MOST_COMBINATIONS = 200
"""Combinations of the other settings that are tried for a value which the defaults don't allow."""
_HINT = "write log(1e-4, 1e-2), uniform(0, 1), int(1, 8) or choice(64, 128)"


Drawn = float | str
"""A value as Optuna draws it: a number, or the text of a choice."""


class Dimension(ABC):
    """The values that a sweep may give one setting."""

    @abstractmethod
    def distribution(self) -> "BaseDistribution":
        """The same for Optuna, whose values can all be written to its journal."""

    @abstractmethod
    def value(self, drawn: Drawn) -> object:
        """The setting's value for a value that Optuna drew."""

    @abstractmethod
    def rounded(self, drawn: Drawn) -> Drawn:
        """The value that Optuna drew, with no more digits than are of use."""

    @abstractmethod
    def probes(self) -> tuple[object, ...]:
        """Representative values, to be tried on a preset."""

    @abstractmethod
    def grid(self) -> tuple[Drawn, ...] | None:
        """Every value as Optuna has it; None where there are too many to count."""


@dataclass(frozen=True, kw_only=True)
class Numbers(Dimension):
    """Numbers between two bounds, both included."""

    low: float
    high: float
    is_whole: bool = False
    is_log: bool = False
    """If True, they are drawn uniformly on a logarithmic scale."""
    step: float | None = None
    """Interval between them; None for all there are."""

    def __str__(self) -> str:
        kind = "int" if self.is_whole else "log" if self.is_log else "uniform"
        step = "" if self.step is None else f", step={self.step!r}"
        log = ", log=True" if self.is_log and self.is_whole else ""
        return f"{kind}({self.low!r}, {self.high!r}{step}{log})"

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import FloatDistribution, IntDistribution

        if self.is_whole:
            low, high, step = int(self.low), int(self.high), int(self.step or 1)
            return IntDistribution(low, high, log=self.is_log, step=step)
        return FloatDistribution(self.low, self.high, log=self.is_log, step=self.step)

    def value(self, drawn: Drawn) -> float:
        return int(drawn) if self.is_whole else float(drawn)

    def rounded(self, drawn: Drawn) -> Drawn:
        """Four digits, relative to the number on a logarithmic scale and to the range elsewhere."""
        if self.is_whole or self.step is not None:
            return drawn
        size = abs(float(drawn)) if self.is_log else self.high - self.low
        number = round(float(drawn), _DIGITS - 1 - math.floor(math.log10(size)))
        return min(max(number, self.low), self.high)

    def probes(self) -> tuple[object, ...]:
        """Both ends and, unless they are whole, a number between that is not."""
        if self.is_whole:
            return int(self.low), int(self.high)
        between = self.low + (self.high - self.low) * 0.381966
        return self.low, self.high, self.low + self.step if self.step else between

    def grid(self) -> tuple[Drawn, ...] | None:
        step = 1 if self.is_whole and not self.is_log and self.step is None else self.step
        if step is None:
            return None
        count = round((self.high - self.low) / step) + 1
        return tuple(self.value(round(self.low + index * step, 12)) for index in range(count))


@dataclass(frozen=True)
class Choice(Dimension):
    """One of several values of any kind."""

    values: Mapping[str, object]
    """The values, each by its text, which represents it in the journal."""

    def __str__(self) -> str:
        return f"choice({', '.join(self.values)})"

    def distribution(self) -> "BaseDistribution":
        from optuna.distributions import CategoricalDistribution

        return CategoricalDistribution(list(self.values))

    def value(self, drawn: Drawn) -> object:
        return self.values[str(drawn)]

    def rounded(self, drawn: Drawn) -> Drawn:
        return drawn

    def probes(self) -> tuple[object, ...]:
        return tuple(self.values.values())

    def grid(self) -> tuple[Drawn, ...] | None:
        return tuple(self.values)


SearchSpace = dict[str, Dimension]
"""The ranges that a sweep varies, by panel name or dotted path."""


def parse_search(text: str) -> SearchSpace:
    """The search space in `name=log(1e-4, 1e-2); path.to.name=choice(a, b)`.

    Raises:
        ConfigurationError: Something cannot be read, is unknown, or has bounds that make no range.
    """
    space = {name: _dimension(name, literal) for name, literal in assignments(text).items()}
    if not space:
        raise ConfigurationError(f"the search space is empty; {_HINT}, e.g. learning_rate=log(...)")
    return space


def format_space(space: SearchSpace) -> str:
    """The search space as it is written, each range in one way."""
    return "; ".join(f"{name}={dimension}" for name, dimension in space.items())


def check_search(space: SearchSpace, preset: Preset, fixed: Overrides) -> None:
    """Try a search space on a preset.

    Args:
        space: What a sweep will vary.
        preset: The preset.
        fixed: The changes that all its runs have in common.

    Raises:
        UnknownNameError: A setting does not exist; the message has the nearest ones.
        ConfigurationError: A setting has no type or is fixed as well, or the preset refuses a
            value with any others.
    """
    parameters = preset.configure(fixed).parameters
    typed = {path: (value, kind) for path, value, kind in parameter_paths(parameters)}
    typed |= {name: (each.default, each.annotation) for name, each in preset.panel.items()}
    for name, dimension in space.items():
        others = [each for each in space if each != name]
        require_given_once(name, fixed, preset.panel, ", as searched and as fixed")
        require_given_once(name, others, preset.panel, " in the search space")
        current, annotation = typed.get(name, (None, None))
        if annotation is Any:
            raise ConfigurationError(
                f"cannot search over '{name}': it has no type to check values against; declare one "
                f"in the preset, e.g. {name}: float"
            )
        if annotation is not None:
            _require_type(name, dimension, annotation, current)
        for value in dimension.probes():
            _require_allowed({name: value}, space, preset, fixed)


def _require_type(name: str, dimension: Dimension, annotation: object, current: object) -> None:
    for value in dimension.probes():
        try:
            fit(made(value, annotation, name), annotation, current, name)
        except ConfigurationError as error:
            advice = _whole(name, dimension, lambda: fit(1, annotation, current, name))
            raise ConfigurationError(f"{error}, from {name}={dimension}{advice}") from error


def _whole(name: str, dimension: Dimension, fits_one: Callable[[], object]) -> str:
    """The advice for a range of floats of a setting that takes whole numbers only."""
    if not isinstance(dimension, Numbers) or dimension.is_whole:
        return ""
    low, high = math.ceil(dimension.low), math.floor(dimension.high)
    try:
        fits_one()
    except ConfigurationError:
        return ""
    log = ", log=True" if dimension.is_log and low >= 1 else ""
    return f"; write {name}=int({low}, {high}{log})" if low < high else ""


def _require_allowed(
    change: Overrides, space: SearchSpace, preset: Preset, fixed: Overrides
) -> None:
    """Raise the preset's own error unless a change is allowed with some values of the others."""
    refused: ConfigurationError | None = None
    for others in _other_values(space, *change):
        try:
            preset.configure({**fixed, **others, **change})
        except UnknownNameError:
            raise
        except ConfigurationError as error:
            refused = refused or error
        else:
            return
    assert refused is not None
    raise ConfigurationError(
        f"{refused}; the search space allows {format_overrides(change)}"
    ) from refused


def _other_values(space: SearchSpace, name: str) -> Iterator[Overrides]:
    """Nothing, for the defaults; then combinations of the other settings' values."""
    yield {}
    others = {other: dimension.probes() for other, dimension in space.items() if other != name}
    if others:
        combined = itertools.product(*others.values())
        for values in itertools.islice(combined, _MOST_COMBINATIONS):
            yield dict(zip(others, values, strict=True))


def _dimension(name: str, text: str) -> Dimension:
    call = read_call(text)
    if call is None:
        advice = f"{_HINT}, separated by ';'"
        raise ConfigurationError(f"cannot read the range '{name}={text}'; {advice}")
    kind, values, named = call
    if kind not in _KINDS:
        raise UnknownNameError("range", kind, _KINDS, _HINT, where=f"in '{name}={text}'")
    make, allowed = _KINDS[kind]
    for unknown in named.keys() - allowed:
        where = f"of {kind}(...) in '{name}={text}'"
        raise UnknownNameError("argument", unknown, allowed, where=where)
    try:
        return make(values, named)
    except ConfigurationError as error:
        raise ConfigurationError(f"{name}={text}: {error}") from error


def _choice(values: list[object], _named: Mapping[str, object]) -> Choice:
    texts = [repr(value) for value in values]
    require(len(texts) > 1, "a choice needs two values or more; a fixed one belongs after -cp")
    require(len(set(texts)) == len(texts), "each value of a choice stands once")
    return Choice(dict(zip(texts, values, strict=True)))


def _numbers(
    values: list[object],
    named: Mapping[str, object],
    *,
    kind: str,
    is_whole: bool = False,
    is_log: bool = False,
) -> Numbers:
    number = int if is_whole else float
    what = "whole numbers" if is_whole else "numbers"
    require(len(values) == 2, f"give two bounds, {kind}(low, high)")
    low, high = (_number(value, number, f"the bounds must be {what}") for value in values)
    step = _number(named["step"], number, f"step must be of {what}") if "step" in named else None
    is_log = is_log or named.get("log", False) is True
    require(low < high, f"the lower bound stands first, write {kind}({high!r}, {low!r})")
    require(not is_log or low > 0, f"a logarithmic range begins above 0, got {low!r}; raise it")
    require(step is None or not is_log, "a logarithmic range has no step; leave out one of them")
    if step is not None:
        steps = (high - low) / step if step > 0 else 0.0
        require(
            steps >= 1 and math.isclose(steps, round(steps), rel_tol=1e-9),
            f"step must divide the range from {low!r} to {high!r}, got {step!r}",
        )
    return Numbers(low=low, high=high, is_whole=is_whole, is_log=is_log, step=step)


def _number(value: object, number: type[float], rule: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and math.isfinite(value), f"{rule}, got {value!r}")  # type: ignore[arg-type]
    assert isinstance(value, int | float)
    require(number is float or float(value).is_integer(), f"{rule}, got {value!r}")
    return number(value)


_Make = Callable[[list[object], Mapping[str, object]], Dimension]


_KINDS: dict[str, tuple[_Make, frozenset[str]]] = {
    "log": (partial(_numbers, kind="log", is_log=True), frozenset()),
    "uniform": (partial(_numbers, kind="uniform"), frozenset({"step"})),
    "int": (partial(_numbers, kind="int", is_whole=True), frozenset({"step", "log"})),
    "choice": (_choice, frozenset()),
}
"""Each kind of range: its maker, and the arguments it takes by name."""
