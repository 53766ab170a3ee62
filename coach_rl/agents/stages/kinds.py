"""The kinds of stages that agents have: those of the files here, and those of their classes."""

from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules

from coach_rl.agents import stages
from coach_rl.agents.stages.stage import StageKind
from coach_rl.core.parts import declared


@cache
def kinds_of(agent: type) -> tuple[StageKind, ...]:
    """The kinds of stages that agents of a class may have, outermost first.

    Those are the `KIND` of every file of this folder, and the `STAGES` of the class and its bases.
    """
    names = [each.name for each in iter_modules(stages.__path__)]
    files = [import_module(f"{stages.__name__}.{name}") for name in names]
    here = [file.KIND for file in files if hasattr(file, "KIND")]
    own = [kind for kinds in declared(agent, "STAGES") for kind in kinds]
    return tuple(sorted((*here, *own), key=attrgetter("order")))
