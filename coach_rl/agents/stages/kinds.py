"""The kinds of stages that agents have: those of the files here, and those of their classes."""

from bisect import bisect_left
from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import NamedTuple

from coach_rl.agents import stages
from coach_rl.agents.stages.stage import INSIDE, StageKind
from coach_rl.core.parts import declared


class StageKinds(NamedTuple):
    """Kinds of stages, outermost first."""

    outside: tuple[StageKind, ...]
    """Those outside the agent's InputFilter."""
    inside: tuple[StageKind, ...]
    """Those behind it."""


@cache
def kinds_of(agent: type) -> StageKinds:
    """The kinds of stages that agents of a class may have.

    Those are the `KIND` of every file of this folder, and the `STAGES` of the class and its bases.
    """
    found: list[StageKind] = []
    for each in iter_modules(stages.__path__):
        file = import_module(f"{stages.__name__}.{each.name}")
        if hasattr(file, "KIND"):
            found.append(file.KIND)
    for own in declared(agent, "STAGES"):
        found += own
    order = attrgetter("order")
    found.sort(key=order)
    first = bisect_left(found, INSIDE, key=order)
    return StageKinds(tuple(found[:first]), tuple(found[first:]))
