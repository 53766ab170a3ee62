"""Long lists of cases, of which each version of the code runs others.

A case that isn't drawn is marked slow, so `make slow` runs what `make test` leaves out. The report
of pytest begins with the seed, which follows from the sizes of all files of code;
`COACH_TEST_SEED=N` draws the cases of another one, and `COACH_TEST_SEED=every` all cases.

Names are drawn before there are tests, by `drawn`. A test with several parameters has a mark, which
draws from all its cases, and at least one::

    @pytest.mark.drawn(one_of=3)
    @pytest.mark.drawn(one_of=3, each="kind")  # at least one of each kind
    pytestmark = pytest.mark.drawn(one_of=2)  # each test of a file, with its name in any class
"""

import os
import random
import zlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
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


def leave_out(items: Sequence[pytest.Function]) -> None:
    """Mark slow what the seed doesn't draw of tests that are marked `drawn`.

    Args:
        items: All collected tests.
    """
    groups: dict[Hashable, list[pytest.Function]] = defaultdict(list)
    for item in items:
        mark = item.get_closest_marker("drawn")
        if mark is not None and item.get_closest_marker("slow") is None:
            groups[group_of(item, **mark.kwargs)].append(item)
    if SEED == "every":
        return
    for (_, one_of, *_), cases in groups.items():
        count = -(-len(cases) // one_of)
        for case in sorted(cases, key=place_in_draw)[count:]:
            case.add_marker(pytest.mark.slow)


def group_of(
    item: pytest.Function, *, one_of: int, each: str | None = None
) -> tuple[Hashable, ...]:
    """The test of a case, how many cases one is drawn of, and its value of `each` if given."""
    test = f"{item.path}::{item.originalname}"  # in whichever class
    return (test, one_of) if each is None else (test, one_of, repr(item.callspec.params[each]))


def place_in_draw(item: pytest.Function) -> float:
    """A number that depends on the seed and the case alone; the lowest ones are drawn."""
    return random.Random(f"{SEED} {item.nodeid}").random()


def values_of(case: Any) -> tuple[Any, ...]:
    return tuple(getattr(case, "values", (case,)))


def marks_of(case: Any) -> Iterable[pytest.MarkDecorator]:
    return tuple(getattr(case, "marks", ()))
