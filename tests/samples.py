"""Long lists of cases, of which each version of the code runs others.

A case that isn't drawn is marked slow, so `make slow` runs what `make test` leaves out. The report
of pytest begins with the seed, which follows from the sizes of all files of code;
`COACH_TEST_SEED=N` draws the cases of another one, and `COACH_TEST_SEED=every` all cases.
"""

import os
import random
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

CHECKOUT = Path(__file__).parent.parent


def seed_of_code() -> int:
    """A number that changes with any file of the package, its presets and its environments."""
    found = sorted(
        f"{path.relative_to(CHECKOUT).as_posix()} {path.stat().st_size}"
        for folder in ("coach_rl", "environments", "filters", "presets")
        for path in (CHECKOUT / folder).rglob("*.py")
    )
    return zlib.crc32("\n".join(found).encode())


SEED = os.environ.setdefault("COACH_TEST_SEED", str(seed_of_code()))
"""Seed of what is drawn. Processes that run tests side by side inherit it."""


def drawn(cases: Iterable[Any], *, one_of: int, is_rest: bool = False) -> list[Any]:
    """The cases of a test's parameter in their order, those not drawn marked slow.

    Args:
        cases: Names of cases, or what `pytest.param` makes of names.
        one_of: One of so many is drawn.
        is_rest: Draw those that another test of the same names leaves out.
    """
    return [
        case
        if SEED == "every" or is_drawn(case, one_of) is not is_rest
        else pytest.param(*values_of(case), marks=[*marks_of(case), pytest.mark.slow])
        for case in cases
    ]


def is_drawn(case: Any, one_of: int) -> bool:
    """Whether the seed draws a case; no other case matters to it."""
    return random.Random(f"{SEED} {values_of(case)[0]}").randrange(one_of) == 0


def values_of(case: Any) -> tuple[Any, ...]:
    return tuple(getattr(case, "values", (case,)))


def marks_of(case: Any) -> Iterable[pytest.MarkDecorator]:
    return tuple(getattr(case, "marks", ()))
