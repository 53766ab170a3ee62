"""An agent that draws every action uniformly from its whole space, in evaluations too.

Above a level of skills to be discovered it is the prior p(z); elsewhere it is the baseline that
knows nothing.
"""

from dataclasses import dataclass

import numpy as np

from coach_rl.agents.acting_only import ActingOnly
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Action, ActionRequest, FloatArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space, actions_from_uniform, uniform_size
from coach_rl.core.state import State


@parameter_class
class UniformAgentParameters:
    """An agent that acts at random; see `core.spaces.actions_from_uniform`."""

    name: str = "uniform"
    """The agent's name in logs and files."""

    def build(self, context: AgentContext) -> "UniformAgent":
        """The agent; SpaceError where nothing can be drawn from its action space."""
        return UniformAgent(self.name, context.spaces.action)


@dataclass(kw_only=True)
class UniformRows(Saved):
    """The random streams of the rows, and what was drawn from them last."""

    SAVED = ("noise", "drawn")

    noise: RowNoise
    drawn: FloatArray
    """[N, D] the uniform numbers of each row's last action."""
    followed: FloatArray | None = None
    """Numbers drawn elsewhere, [N, D], that the next actions are made of; None where the agent
    draws its own."""

    def decisions(self) -> State:
        """The numbers that each row drew last."""
        return {"drawn": self.drawn}

    def follow(self, decisions: State) -> None:
        """Take the next numbers from here."""
        self.followed = decisions["drawn"]


class UniformAgent(ActingOnly):
    """Acts at random in every phase.

    Args:
        name: The agent's name in logs.
        space: Where it acts.
    """

    def __init__(self, name: str, space: Space) -> None:
        super().__init__(name)
        self._space, self._size = space, uniform_size(space)

    def new_rows(self, num_envs: int, seed: int) -> UniformRows:
        """A random stream for each row of a stack of that many environments."""
        noise = RowNoise(
            num_rows=num_envs, size=self._size, kind="uniform", seed=seed, name="uniform"
        )
        return UniformRows(noise=noise, drawn=np.zeros((num_envs, self._size), np.float32))

    def act(self, row_state: UniformRows, request: ActionRequest, clock: Clock) -> Action:
        """Random actions, [R, ...]."""
        rows, followed = request.rows, row_state.followed
        row_state.drawn[rows] = row_state.noise.draw(rows) if followed is None else followed[rows]
        return actions_from_uniform(self._space, row_state.drawn[rows])

    def description(self) -> str:
        """The space it draws from, for people."""
        return f"uniform over {self._space}"
