"""The search space of a sweep: the settings it varies, and Optuna's distributions of them.

    learning_rate=log(1e-4, 3e-3); layers=choice((128, 128), (256, 256))

A setting is a name on the preset's panel or a dotted path, as after `-cp`. Values are parsed,
never evaluated, and every bound and every choice is tried on the preset before anything is run.
A choice is known to Optuna by its text, which its journal can hold.
"""

import itertools
import math
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

from coach_rl.configuration.overrides import (
    assignments,
    format_overrides,
    parse_overrides,
    read_call,
)
from coach_rl.configuration.preset_file import Preset, require_given_once
from coach_rl.core.errors import ConfigurationError, UnknownNameError, how_to_install, require

SearchSpace = dict[str, Any]
"""The distribution of each setting, one of `optuna.distributions`, by panel name or dotted path."""
Drawn = Mapping[str, Any]
"""A value for each setting, as Optuna has it: a number, or the text of a choice."""
Overrides = dict[str, object]

_DIGITS = 4
"""Significant digits of a number that is drawn, so that it is printed as it was used."""
_MOST_COMBINATIONS = 200
"""Combinations of the other settings that are tried for a value which the defaults don't allow."""
_HINT = "write log(1e-4, 1e-2), uniform(0, 1), int(1, 8) or choice(64, 128)"
_NAMED = {"log": (), "uniform": ("step",), "int": ("step", "log"), "choice": ()}
"""The arguments that each kind of range takes by name."""


def imported_optuna() -> ModuleType:
    """The package Optuna, which logs warnings only, or an error if it isn't installed."""
    try:
        import optuna
    except ImportError as error:
        raise ConfigurationError(
            f"a sweep needs Optuna, which is not installed; {how_to_install('sweep')}"
        ) from error
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def parse_search(text: str) -> SearchSpace:
    """The search space in `name=log(1e-4, 1e-2); path.to.name=choice(a, b)`.

    Raises:
        ConfigurationError: Something cannot be read, is unknown, or has bounds that make no range,
            or Optuna isn't installed.
    """
    if re.fullmatch(r"\s*[A-Za-z_][\w.]*\s*", text):
        name = text.strip()
        raise ConfigurationError(
            f"'{name}' needs a range: write {name}=log(low, high), or uniform, int or choice"
        )
    return {name: _distribution(name, literal) for name, literal in assignments(text).items()}


def format_space(space: SearchSpace) -> str:
    """The search space as it is written, each range in one way."""
    return "; ".join(f"{name}={_written(each)}" for name, each in space.items())


def drawn_overrides(drawn: Drawn) -> Overrides:
    """The changes of a preset that the values of a trial are."""
    return parse_overrides("; ".join(f"{name}={value}" for name, value in drawn.items()))


def rounded(space: SearchSpace, drawn: Drawn) -> dict[str, Any]:
    """The values with no more digits than are of use.

    A number keeps four, relative to itself on a logarithmic scale and to its range elsewhere.
    """
    result = dict(drawn)
    for name, each in space.items():
        if not _is_choice(each) and each.step is None:
            size = drawn[name] if each.log else each.high - each.low
            number = round(drawn[name], _DIGITS - 1 - math.floor(math.log10(size)))
            result[name] = min(max(number, each.low), each.high)
    return result


def grid_of(space: SearchSpace) -> dict[str, list[Any]]:
    """Every value of each setting, as Optuna has it.

    Raises:
        ConfigurationError: A range has too many values to count.
    """
    found = {}
    for name, each in space.items():
        if _is_choice(each):
            found[name] = list(each.choices)
            continue
        require(
            each.step is not None and not each.log,
            f"a grid needs values that can be counted, not {format_space({name: each})}; write a "
            "choice, or a step where the range takes one",
        )
        count = round((each.high - each.low) / each.step) + 1
        found[name] = [round(each.low + index * each.step, 12) for index in range(count)]
    return found


def check_search(space: SearchSpace, preset: Preset, fixed: Overrides) -> None:
    """Try a search space on a preset, with the changes that all its runs have in common.

    Raises:
        UnknownNameError: A setting does not exist; the message has the nearest ones.
        ConfigurationError: A setting has no type or is fixed as well, or the preset refuses a
            value with any others.
    """
    for name in space:
        others = [each for each in space if each != name]
        require_given_once(name, fixed, preset.panel, ", as searched and as fixed")
        require_given_once(name, others, preset.panel, " in the search space")
        require(
            name not in preset.panel or preset.panel[name].annotation is not Any,
            f"cannot search over '{name}': it has no type to check values against; declare one "
            f"in the preset, e.g. {name}: float",
        )
        for value in _probes(space, name):
            _require_allowed(name, value, space, preset, fixed)


def _require_allowed(
    name: str, value: object, space: SearchSpace, preset: Preset, fixed: Overrides
) -> None:
    """Raise the preset's own error unless it allows a value with some values of the others."""
    refused: ConfigurationError | None = None
    for others in _other_values(space, name):
        try:
            preset.configure({**fixed, **others, name: value})
        except UnknownNameError:
            raise
        except ConfigurationError as error:
            refused = refused or error
        else:
            return
    assert refused is not None
    is_between = not _is_choice(space[name]) and value not in (space[name].low, space[name].high)
    advice = "; write int(low, high) for whole numbers" if is_between else ""
    raise ConfigurationError(
        f"{refused}; the search space allows {format_overrides({name: value})}{advice}"
    ) from refused


def _other_values(space: SearchSpace, name: str) -> Iterator[Overrides]:
    """Nothing, for the defaults; then combinations of the other settings' values."""
    yield {}
    others = {other: _probes(space, other) for other in space if other != name}
    combined = itertools.product(*others.values())
    for values in itertools.islice(combined, _MOST_COMBINATIONS):
        yield dict(zip(others, values, strict=True))


def _probes(space: SearchSpace, name: str) -> list[object]:
    """All choices; of a range its ends and, unless it is of whole numbers, one between."""
    each = space[name]
    if _is_choice(each):
        return [drawn_overrides({name: text})[name] for text in each.choices]
    if isinstance(each.low, int):
        return [each.low, each.high]
    return [each.low, each.high, each.low + (each.step or (each.high - each.low) * 0.381966)]


def _distribution(name: str, text: str) -> Any:
    call = read_call(text)
    if call is None:
        advice = f"{_HINT}, separated by ';'"
        raise ConfigurationError(f"cannot read the range '{name}={text}'; {advice}")
    kind, values, named = call
    if kind not in _NAMED:
        raise UnknownNameError("range", kind, _NAMED, _HINT, where=f"in '{name}={text}'")
    for unknown in named.keys() - _NAMED[kind]:
        where = f"of {kind}(...) in '{name}={text}'"
        raise UnknownNameError("argument", unknown, _NAMED[kind], where=where)
    try:
        return _choice(values) if kind == "choice" else _numbers(kind, values, **named)
    except (ConfigurationError, ValueError, OverflowError) as error:
        raise ConfigurationError(f"{name}={text}: {error}") from error


def _choice(values: Sequence[object]) -> Any:
    texts = [repr(value) for value in values]
    require(len(texts) > 1, "a choice needs two values or more; a fixed one belongs after -cp")
    require(len(set(texts)) == len(texts), "each value of a choice stands once")
    return imported_optuna().distributions.CategoricalDistribution(texts)


def _numbers(kind: str, bounds: Sequence[Any], *, step: Any = None, log: Any = False) -> Any:
    """Optuna's distribution, which refuses what makes no range with an error of its own."""
    distributions = imported_optuna().distributions
    require(len(bounds) == 2, f"give two bounds, {kind}(low, high)")
    for value in bounds if step is None else (*bounds, step):
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        is_fit = is_number and math.isfinite(value) and (kind != "int" or value % 1 == 0)
        what = "whole numbers" if kind == "int" else "numbers"
        require(is_fit, f"bounds and step must be {what}, got {value!r}")
    require(isinstance(log, bool), f"log must be True or False, got {log!r}")
    low, high = bounds
    require(low < high, f"the lower bound stands first, write {kind}({high!r}, {low!r})")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a step that doesn't fit, which is refused below
        if kind == "int":
            whole = 1 if step is None else step
            found = distributions.IntDistribution(low, high, log=log, step=whole)
        else:
            found = distributions.FloatDistribution(low, high, log=kind == "log", step=step)
    require(
        found.high == high, f"step must divide the range from {low!r} to {high!r}, got {step!r}"
    )
    return found


def _is_choice(distribution: Any) -> bool:
    return hasattr(distribution, "choices")


def _written(distribution: Any) -> str:
    if _is_choice(distribution):
        return f"choice({', '.join(distribution.choices)})"
    is_whole = isinstance(distribution.low, int)
    kind = "int" if is_whole else "log" if distribution.log else "uniform"
    has_step = distribution.step != (1 if is_whole else None)
    step = f", step={distribution.step!r}" if has_step else ""
    log = ", log=True" if is_whole and distribution.log else ""
    return f"{kind}({distribution.low!r}, {distribution.high!r}{step}{log})"
