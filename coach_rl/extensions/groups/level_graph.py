"""Levels that form a graph: of several below, a level selects one for each decision.

GraphParameters(
    levels=(selector, walk, push),
    arrangement=LevelGraph(below={"selector": ("walk", "push")}),
    ...,
)
"""

from collections.abc import Iterator, Mapping, Sequence

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, UnknownNameError
from coach_rl.core.infos import PLAIN_SUMS, Sums
from coach_rl.core.interfaces import Environment
from coach_rl.core.levels import LevelDescription, received_by
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.seeding import integer_seed
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.extensions.groups.graph_level import GraphLevel
from coach_rl.extensions.groups.graph_stack import GraphStack
from coach_rl.extensions.groups.junction import Junction, Routes
from coach_rl.graph_managers.arrangement import AgentSource, Links
from coach_rl.graph_managers.stack_signals import StackSignals
from coach_rl.levels.level_checks import agent_spaces, check_ending, check_level


@parameter_class
class LevelGraph:
    """Levels each of which acts through some of those listed behind it."""

    below: Mapping[str, tuple[str, ...]] = FrozenMapping[str]()
    """Names of the levels directly below a level, by its name. Of several, each decision selects
    the one that carries it out. Levels without an entry act in the environment."""
    preempt: tuple[str, ...] = ()
    """Names of the levels that decide again after each decision of the level that carries out
    their own: that one continues under an equal decision, and is cut off under another."""

    def links(self, levels: Sequence[LevelDescription]) -> Links:
        numbers = {level.name: number for number, level in enumerate(levels)}
        names = (self.below.get(level.name, ()) for level in levels)
        return tuple(tuple(numbers[each] for each in own if each in numbers) for own in names)

    def settings(self, level: LevelDescription) -> Iterator[str]:
        if level.name in self.preempt:
            yield "takes control back after each decision below"

    def problems(self, levels: Sequence[LevelDescription]) -> Iterator[str | ConfigurationError]:
        broken = list(self._problems_of_names(levels))
        yield from broken or self._problems_of_levels(levels)

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
    ) -> GraphStack:
        routes = Routes(environment, levels, links=self.links(levels), preempt=self.preempt)
        for index in reversed(range(len(levels))):
            params = levels[index]
            junction = Junction(routes, index)
            below = junction.spaces
            is_top = index == 0
            check_level(params, below, is_top=is_top)
            owned = agent(index, agent_spaces(below, received_by(params)))
            check_ending(params, owned, is_top=is_top)
            routes.levels[index] = GraphLevel(
                params,
                agent=owned,
                junction=junction,
                clock=clock,
                seed=integer_seed(seed, purpose, params.name),
                above=[levels[each] for each in routes.ancestors(index)],
                sums=sums,
            )
        return GraphStack(
            levels=tuple(routes.levels[index] for index in range(len(levels))),
            clock=clock,
            signals=StackSignals(num_envs=environment.num_envs) if signals is None else signals,
            routes=routes,
        )

    def _problems_of_names(
        self, levels: Sequence[LevelDescription]
    ) -> Iterator[str | ConfigurationError]:
        """The names that cannot be followed."""
        numbers = {level.name: number for number, level in enumerate(levels)}
        for field, names in (("below", tuple(self.below)), ("preempt", self.preempt)):
            for name in names:
                if name not in numbers:
                    yield _unknown(name, numbers, f"in {field} of LevelGraph")
        for level in levels:
            names = self.below.get(level.name, ())
            for name in dict.fromkeys(names):
                problem = _problem_of_link(level.name, name, numbers, names.count(name))
                if problem is not None:
                    yield problem

    def _problems_of_levels(self, levels: Sequence[LevelDescription]) -> Iterator[str]:
        """The levels that are never reached, and those that cannot act where they stand."""
        links = self.links(levels)
        for number, level in enumerate(levels):
            above = [each for each in range(number) if number in links[each]]
            if number and not above:
                yield (
                    f"level '{level.name}' is never reached: no level names it in below; name it "
                    "there, or leave the level out"
                )
                continue
            yield from self._problems_of_control(level, [levels[each] for each in above])
            selected = all(len(links[each]) > 1 for each in above)
            if number and level.goal_space is None and not selected:
                first = next(levels[each].name for each in above if len(links[each]) == 1)
                yield f"level '{level.name}' needs a goal_space: level '{first}' above acts in it"

    def _problems_of_control(
        self, level: LevelDescription, above: Sequence[LevelDescription]
    ) -> Iterator[str]:
        name = f"level '{level.name}'"
        if level.name in self.preempt and not self.below.get(level.name):
            yield (
                f"{name} is in preempt and has no level below to take control back from; leave it "
                "out there"
            )
        may_keep = level.goal_space is None and level.horizon is None
        if above and may_keep and not all(each.name in self.preempt for each in above):
            yield (
                f"{name} receives no goals and has no horizon, so that it would keep control to "
                "the end of the episode; give it a horizon"
            )
        for change in level.changes:
            for problem in change.for_chains(is_top=not above):
                yield (
                    f"{name} {problem} in a chain, where each acts through the next; leave it out "
                    "in a graph of levels"
                )


def _unknown(name: str, numbers: Mapping[str, int], where: str) -> UnknownNameError:
    return UnknownNameError("level", name, numbers, "they stand in levels", where=where)


def _problem_of_link(
    level: str, name: str, numbers: Mapping[str, int], times: int
) -> str | ConfigurationError | None:
    """The reason why a level cannot act through one of this name; None: it can."""
    if name not in numbers:
        return _unknown(name, numbers, f"in below of '{level}'")
    if name == level:
        return f"level '{level}' names itself in below, and could never act; leave that out"
    if numbers[name] < numbers[level]:
        return (
            f"level '{level}' names '{name}' in below, which stands above it: levels are "
            "listed top first, and a cycle has no top; change their order, or leave that out"
        )
    if times > 1:
        return (
            f"level '{level}' names '{name}' {times} times in below, and the later ones "
            "could never be selected; name it once"
        )
    return None
