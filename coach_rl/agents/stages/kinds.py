"""The kinds of stages that agents have: those of the files here, and those of their classes."""

from collections.abc import Iterable
from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules

from torch import nn

from coach_rl.agents import stages
from coach_rl.agents.stages.stage import StageKind
from coach_rl.architectures.hidden_states import stateful_layers
from coach_rl.core.parts import declared


@cache
def kinds_of(agent: type) -> tuple[StageKind, ...]:
    """The kinds of stages that agents of a class may have, outermost first.

    Those are the `KIND` of every file of this folder, and the `STAGES` of the class and its bases.
    """
    found: list[StageKind] = []
    for each in iter_modules(stages.__path__):
        file = import_module(f"{stages.__name__}.{each.name}")
        if hasattr(file, "KIND"):
            found.append(file.KIND)
    for own in declared(agent, "STAGES"):
        found += own
    return tuple(sorted(found, key=attrgetter("order")))


def kinds_of_networks(networks: Iterable[nn.Module]) -> tuple[StageKind, ...]:
    """The kinds of stages that layers of an agent's networks bring, each of them once."""
    return tuple(dict.fromkeys(layer.STAGE for layer in stateful_layers(networks)))
