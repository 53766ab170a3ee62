"""Comparing answers bit by bit, taking rows of them, and writing into them."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from coach_rl.core.records import Array, EnvResponse, Observation
from coach_rl.testing.violations import equal_arrays, expect

_PRESENT = np.ones(1, np.bool_)


def expect_equal(left: Observation, right: Observation, what: str) -> None:
    """Violation unless two observations are equal."""
    expect(set(left) == set(right), f"{what} have the keys {sorted(left)} and {sorted(right)}")
    for key, values in left.items():
        expect(
            equal_arrays(values, right[key]), f"{what} differ in '{key}': {values} and {right[key]}"
        )


def expect_same(one: EnvResponse, other: EnvResponse, what: str) -> None:
    """Violation unless two answers are equal."""
    found = difference(one, other)
    expect(not found, f"{what} must be equal, but differ in {found}")


def expect_same_run(one: list[EnvResponse], other: list[EnvResponse], what: str) -> None:
    """Violation unless two runs are equal, answer by answer."""
    for step, (left, right) in enumerate(zip(one, other, strict=True)):
        expect_same(left, right, f"{what} (answer {step})")


def difference(one: EnvResponse, other: EnvResponse) -> str:
    """The name of the first array that differs; empty when none does."""
    for name in ("rows", "reward", "terminated", "truncated", "end", "duration"):
        if not equal_arrays(getattr(one, name), getattr(other, name)):
            return f"{name}: {getattr(one, name)} and {getattr(other, name)}"
    for name in ("observation", "first_observation", "info"):
        left: Mapping[str, Array] = getattr(one, name)
        right: Mapping[str, Array] = getattr(other, name)
        if set(left) != set(right):
            return f"the keys of {name}: {sorted(left)} and {sorted(right)}"
        for key, values in left.items():
            if not equal_arrays(values, right[key]):
                return f"{name}['{key}']: {values} and {right[key]}"
    return ""


def one_row(response: EnvResponse, position: int) -> EnvResponse:
    """One row of a response as if it were row 0 and alone.

    Rows that `_<name>` in the info marks as without `<name>` have none; the masks are removed.
    """
    single = response.rows_of(np.array([position]))
    info = {
        name: values
        for name, values in single.info.items()
        if not (name.startswith("_") and name[1:] in single.info)
        and single.info.get(f"_{name}", _PRESENT).all()
    }
    return replace(single, rows=np.zeros(1, np.int64), info=info)


def write_into(response: EnvResponse) -> None:
    """Write into every array of a response that can be written to."""
    arrays = [
        response.rows,
        response.reward,
        response.terminated,
        response.truncated,
        response.end,
        response.duration,
        *response.observation.values(),
        *response.first_observation.values(),
        *response.info.values(),
    ]
    for values in arrays:
        if values.flags.writeable:
            values[...] = np.ones((), values.dtype)
