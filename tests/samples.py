"""Long lists of cases, of which each day runs others.

A case that isn't drawn is marked slow, so `make slow` runs what `make test` leaves out. The report
of pytest begins with the seed; `COACH_TEST_SEED=N` draws the same cases again, and
`COACH_TEST_SEED=every` all cases.
"""

import os
import random
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest

SEED = os.environ.setdefault("COACH_TEST_SEED", str(datetime.now(UTC).toordinal()))
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
    """Whether the day's seed draws a case; no other case matters to it."""
    return random.Random(f"{SEED} {values_of(case)[0]}").randrange(one_of) == 0


def values_of(case: Any) -> tuple[Any, ...]:
    return tuple(getattr(case, "values", (case,)))


def marks_of(case: Any) -> Iterable[pytest.MarkDecorator]:
    return tuple(getattr(case, "marks", ()))
