"""Values of flags: what a flag's text may be, and what it means."""

import argparse
from decimal import Decimal

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
    return _above_zero(text, "seconds")


def hours(text: str) -> float:
    """A number of hours above 0."""
    return _above_zero(text, "hours")


def _above_zero(text: str, unit: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number of {unit} above 0, got '{text}'")
    return number


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


def tracker(text: str) -> str:
    """A tracker and its project, `wandb:walking`, or `off`."""
    service, has_project, project = text.partition(":")
    is_known = service in ("wandb", "trackio", "mlflow") and (project or not has_project)
    if not is_known and text != "off":
        raise argparse.ArgumentTypeError(
            f"must be wandb, trackio or mlflow, each also with :PROJECT, or off, got '{text}'"
        )
    return text


def modules(text: str) -> tuple[str, ...]:
    """Names of modules, separated by commas."""
    return tuple(text.split(","))


def seeds(text: str) -> tuple[int, ...]:
    """The seeds of `10`, which are 0 to 9, or of the list `3,5,8`."""
    try:
        numbers = (
            tuple(map(whole, text.split(","))) if "," in text else tuple(range(positive(text)))
        )
    except argparse.ArgumentTypeError as error:
        raise argparse.ArgumentTypeError(
            f"must be how many, such as 10 (seeds 0 to 9), or a list, such as 3,5,8; got '{text}'"
        ) from error
    for number in numbers:
        if numbers.count(number) > 1:
            raise argparse.ArgumentTypeError(f"names the seed {number} twice, in '{text}'")
    return numbers
