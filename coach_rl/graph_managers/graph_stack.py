"""A stack whose levels form a graph: of several below, a level selects one for each decision."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import BoolArray, EnvResponse, Sums
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.graph_managers.stack import Stack, StackSignals
from coach_rl.levels.junction import Junction, Routes
from coach_rl.levels.level_manager import LevelManager, agent_spaces, check_ending, check_level


@dataclass(frozen=True, kw_only=True)
class GraphStack(Stack):
    """Levels that form a graph, on one set of simulators."""

    routes: Routes

    @property
    def simulators(self) -> Environment:
        """The environment that the lowest levels act on."""
        return self.routes.simulators

    def path(self, row: int) -> Sequence[LevelManager]:
        """The levels that act in a row, top first."""
        return [self.levels[index] for index in self.routes.path(row)]

    def decide(self, among: BoolArray | None = None) -> None:
        """Send the decisions of all levels that are due, the top's first, in these rows [N]."""
        self.routes.begin_tick()
        super().decide(among)
        self.routes.flush()

    def pass_up(self, response: EnvResponse) -> None:
        """Let each level process what the simulators answered, the lowest first."""
        self.routes.deliver(response)
        for index in reversed(range(len(self.levels))):
            self.routes.pass_up(index)

    def _levels_state(self, state: State | None) -> State:
        levels = {level.name: level.own_state_dict() for level in self.levels}
        return {"levels": levels, "routes": self.routes.state_dict(), "environment": state}

    def _load_levels(self, state: State) -> State:
        for level in self.levels:
            level.load_own_state_dict(state["levels"][level.name])
        self.routes.load_state_dict(state["routes"])
        below: State = state["environment"]
        return below


def build_graph_stack(
    levels: Sequence[LevelParameters],
    environment: Environment,
    *,
    agent: Callable[[int, EnvironmentSpaces], AnyAgent],
    clock: Clock,
    seed: int,
    purpose: str,
    signals: StackSignals | None,
    sums: Sums,
) -> GraphStack:
    """Build levels that form a graph, the lowest first; the arguments are as of `build_stack`."""
    routes = Routes(environment, levels)
    for index in reversed(range(len(levels))):
        params, junction = levels[index], Junction(routes, index)
        below = junction.spaces
        is_top, needs_goals = index == 0, not junction.is_selected
        check_level(params, below, is_top=is_top, needs_goals=needs_goals)
        owned = agent(index, agent_spaces(below, params.goal_space))
        check_ending(params, owned, is_top=is_top)
        routes.levels[index] = LevelManager(
            params,
            agent=owned,
            environment=junction,
            clock=clock,
            seed=integer_seed(seed, purpose, params.name),
            above=[levels[each] for each in routes.ancestors(index)],
            sums=sums,
            junction=junction,
        )
    return GraphStack(
        levels=tuple(routes.levels[index] for index in range(len(levels))),
        clock=clock,
        signals=StackSignals(num_envs=environment.num_envs) if signals is None else signals,
        routes=routes,
    )
