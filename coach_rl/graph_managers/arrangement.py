"""Arrangements of levels: which level acts through which, and the stack that this makes.

    GraphParameters(levels=(high, low), arrangement=LevelChain(), ...)      # the default

An arrangement of your own is a parameter class with the methods of `Arrangement`. The extension
`groups` has `LevelGraph`, in which a level selects one of several below it.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.infos import PLAIN_SUMS, Sums
from coach_rl.core.interfaces import Environment
from coach_rl.core.levels import LevelDescription, received_by
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stack_signals import StackSignals
from coach_rl.levels.level_checks import agent_spaces, check_ending, check_level
from coach_rl.levels.level_manager import LevelManager

Links = tuple[tuple[int, ...], ...]
"""The levels directly below each level, by number; empty above the environment."""
AgentSource = Callable[[int, EnvironmentSpaces], AnyAgent]
"""(index of the level, what its agent sees and where it acts) to the agent."""


class Arrangement(Protocol):
    """A frozen description of how the levels of an experiment act through each other."""

    def links(self, levels: Sequence[LevelDescription]) -> Links:
        """The levels directly below each level.

        Args:
            levels: Top first, each before those below it.
        """
        ...

    def problems(self, levels: Sequence[LevelDescription]) -> Iterator[str | ConfigurationError]:
        """The rules that it breaks with these levels, top first, with different names."""
        ...

    def settings(self, level: LevelDescription) -> Iterator[str]:
        """Lines for people on what a level does besides acting through those below it."""
        ...

    def build_stack(
        self,
        levels: Sequence[LevelDescription],
        environment: Environment,
        *,
        agent: AgentSource,
        clock: Clock,
        seed: int,
        purpose: str,
        signals: StackSignals | None = None,
        sums: Sums = PLAIN_SUMS,
    ) -> Stack:
        """The levels on an environment, built from the lowest up.

        Args:
            levels: Top first.
            environment: The simulators; closed with the stack, and by the caller if building fails.
            agent: Source of each level's agent.
            clock: The stack's clock.
            seed: The run's seed.
            purpose: Names the random streams of the rows, e.g. `training`.
            signals: Collects the stack's signals; None: none are collected.
            sums: What decisions are of those of the level below.
        """
        ...


@parameter_class
class LevelChain:
    """Each level acts through the next, and the last in the environment."""

    def links(self, levels: Sequence[LevelDescription]) -> Links:
        return (*zip(range(1, len(levels)), strict=True), ())

    def problems(self, levels: Sequence[LevelDescription]) -> Iterator[str | ConfigurationError]:
        for level in levels[1:]:
            if level.goal_space is None:
                yield f"level '{level.name}' needs a goal_space: the level above acts in it"

    def settings(self, level: LevelDescription) -> Iterator[str]:  # noqa: ARG002 - of others
        yield from ()

    def build_stack(
        self,
        levels: Sequence[LevelDescription],
        environment: Environment,
        *,
        agent: AgentSource,
        clock: Clock,
        seed: int,
        purpose: str,
        signals: StackSignals | None = None,
        sums: Sums = PLAIN_SUMS,
    ) -> Stack:
        built: list[LevelManager] = []
        below = environment
        for index in reversed(range(len(levels))):
            params = levels[index]
            check_level(params, below.spaces, is_top=index == 0)
            owned = agent(index, agent_spaces(below.spaces, received_by(params)))
            check_ending(params, owned, is_top=index == 0)
            for note_above in built[-1].notes_above if built else ():
                note_above(owned)
            level = LevelManager(
                params,
                agent=owned,
                environment=below,
                clock=clock,
                seed=integer_seed(seed, purpose, params.name),
                above=levels[:index],
                sums=sums,
            )
            built.append(level)
            below = level
        if signals is None:
            signals = StackSignals(num_envs=environment.num_envs)
        return Stack(levels=tuple(reversed(built)), clock=clock, signals=signals)
