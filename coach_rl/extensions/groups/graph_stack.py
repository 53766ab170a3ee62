"""A stack whose levels form a graph: of several below, a level selects one for each decision."""

from collections.abc import Sequence
from dataclasses import dataclass

from coach_rl.core.interfaces import Environment
from coach_rl.core.records import BoolArray, EnvResponse
from coach_rl.core.state import State
from coach_rl.extensions.groups.junction import Routes
from coach_rl.graph_managers.stack import Stack
from coach_rl.levels.level_manager import LevelManager


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
