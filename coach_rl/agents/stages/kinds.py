"""The stages of an agent: how they are built, and of which kinds, its class's and those here."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import NamedTuple

from gymnasium.spaces import Dict
from torch import nn

from coach_rl.agents import stages
from coach_rl.agents.stages.stage import INSIDE, Stage, StageBuild, StageKind
from coach_rl.agents.stages.stages import Stages
from coach_rl.architectures.hidden_states import stateful_layers
from coach_rl.core.parts import declared


class StageKinds(NamedTuple):
    """Kinds of stages, outermost first."""

    outside: tuple[StageKind, ...]
    """Those outside the agent's InputFilter."""
    inside: tuple[StageKind, ...]
    """Those behind it."""


class StageBuilder:
    """Builds the stages of an agent, from outside to inside; at first those outside its filters.

    Args:
        agent: The agent's class.
        build: What the outermost stage is built from.
    """

    def __init__(self, agent: type, build: StageBuild) -> None:
        self.build = build
        """The agent, as the next stage is built for it."""
        self.stages = Stages(build.name)
        """The stages so far."""
        self.kinds = kinds_of(agent)
        """The kinds of stages that the agent may have."""
        self._add(self.kinds.outside)

    def inside(self, filters: Iterable[Stage], shown: Dict) -> Dict:
        """Add the stages of filters, and those behind them; the space that networks observe.

        Args:
            filters: Stages of the filters.
            shown: The space of what the InputFilter shows.
        """
        for stage in filters:
            self.stages.add(stage)
        self.build = replace(self.build, observation_space=shown)
        self._add(self.kinds.inside)
        return self.build.observation_space

    def of_networks(self, networks: Sequence[nn.Module]) -> None:
        """Add the stages that networks bring; `Stages.acting` is how the agent acts then.

        Args:
            networks: All that the agent acts and learns with.
        """
        self.build = replace(self.build, networks=tuple(networks))
        kinds = dict.fromkeys(layer.STAGE for layer in stateful_layers(networks))
        self._add(tuple(kinds))

    def _add(self, kinds: Sequence[StageKind]) -> None:
        """Add stages of these kinds, outermost first, further inside than those before."""
        build = self.build
        for kind in kinds:
            if kind.is_wanted(build.params) and (stage := kind.build(build)) is not None:
                self.stages.add(stage)
                space = stage.shown(build.observation_space)
                build = replace(build, observation_space=space)
        self.build = build


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
