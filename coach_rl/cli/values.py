"""Values of flags: parsers with errors that list what is allowed, and what each value sets."""

import argparse
import math
import sys
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps, Hours

_FACTORS = {"k": 1_000, "m": 1_000_000}
"""Factors by the letter that stands for them after a number."""


def whole(text: str) -> int:
    """A whole number of 0 or more, also as `1e6`, `100k` or `1.5M`."""
    factor = _FACTORS.get(text[-1:].lower(), 1)
    try:
        number = Decimal(text if factor == 1 else text[:-1]) * factor
        if number >= 0 and number == int(number):
            return int(number)
    except (ArithmeticError, ValueError):
        pass
    raise argparse.ArgumentTypeError(f"must be a whole number of 0 or more, got '{text}'")


def positive(text: str) -> int:
    """A whole number of 1 or more."""
    try:
        number = whole(text)
    except argparse.ArgumentTypeError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of 1 or more, got '{text}'")
    return number


def seconds(text: str) -> float:
    """A number of seconds above 0."""
    return _float(text, sys.float_info.min, sys.float_info.max, "a number of seconds above 0")


def hours(text: str) -> Hours:
    """A number of hours above 0."""
    least = sys.float_info.min
    most = sys.float_info.max
    return Hours(_float(text, least, most, "a number of hours above 0"))


def factor(text: str) -> float:
    """A factor from 0.01 to 100."""
    return _float(text, 0.01, 100.0, "a factor from 0.01 to 100")


def _float(text: str, least: float, most: float, what: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"must be {what}, got '{text}'")
    return number


def steps(text: str) -> EnvironmentSteps:
    """A number of environment steps of 1 or more."""
    return EnvironmentSteps(positive(text))


def episodes(text: str) -> EnvironmentEpisodes:
    """A number of episodes of 1 or more."""
    return EnvironmentEpisodes(positive(text))


def target(text: str) -> str:
    """The condition that counts as solved: `reward=475`, `success_rate=0.9`, or `off`."""
    name, _, number = text.partition("=")
    try:
        is_known = text in ("preset", "off") or (
            name in ("reward", "success_rate") and bool(float(number))
        )
    except ValueError:
        is_known = False
    if not is_known:
        raise argparse.ArgumentTypeError(
            f"must be reward=NUMBER, success_rate=NUMBER or off, or nothing, got '{text}'"
        )
    return text


def names(text: str) -> tuple[str, ...]:
    """Names, separated by commas."""
    return tuple(text.split(","))


def until_solved(text: str) -> Mapping[str, object]:
    """The parameters that a target stands for."""
    # Not at the top, here and below: these import numpy or torch, and --help needs neither.
    from coach_rl.graph_managers.parameters import ValidationParameters

    name, _, number = text.partition("=")
    changes: dict[str, object] = {"schedule.until_solved": name != "off"}
    if number:
        least: dict[str, Any] = {name: float(number)}
        changes["validation"] = ValidationParameters(**least)
    return changes


def no_checkpoints(_: object) -> Mapping[str, object]:
    """The parameters of a run without checkpoints."""
    from coach_rl.graph_managers.parameters import CheckpointParameters

    return {"checkpoints": CheckpointParameters(enabled=False)}
