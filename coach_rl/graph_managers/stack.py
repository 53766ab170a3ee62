"""Building the levels of an experiment on top of one set of environments."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import CoachError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import Action, BoolArray, Directive, EnvResponse, IntArray
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.levels.level_manager import LevelManager
from coach_rl.levels.spaces import agent_spaces, check_level

AgentSource = Callable[[int, EnvironmentSpaces], AnyAgent]
"""(index of the level, what its agent sees and where it acts) to the agent."""


class Simulators:
    """A stack's environment, whose answers the stack hears at every tick.

    A level answers only where a sub-episode is over; episodes are followed by what the simulators
    answer.

    Args:
        environment: The simulators themselves.
    """

    def __init__(self, environment: Environment) -> None:
        self.environment = environment
        self.answer: EnvResponse | None = None
        """The last; None before the first tick."""

    @property
    def num_envs(self) -> int:
        """N."""
        return self.environment.num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What a row shows and takes."""
        return self.environment.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew."""
        return self.environment.reset(seed)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do."""
        self.environment.send(directive, rows)

    def recv(self) -> EnvResponse:
        """The rows that have answered."""
        self.answer = self.environment.recv()
        return self.answer

    def state_dict(self) -> State:
        """That of the simulators."""
        return self.environment.state_dict()

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self.environment.load_state_dict(state)

    def close(self) -> None:
        """Close the simulators."""
        self.environment.close()


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Levels above one set of environments, with a clock of their own."""

    levels: tuple[LevelManager, ...]
    """Top first."""
    simulators: Simulators
    """What the lowest level acts on."""
    clock: Clock

    @property
    def num_envs(self) -> int:
        """N."""
        return self.levels[0].num_envs

    def reset(self, seed: int | Sequence[int]) -> None:
        """Start every row anew, with the seeds given."""
        self.levels[0].reset(seed)

    def tick(self) -> EnvResponse:
        """One step of all environments; what they answered."""
        self.levels[0].recv()
        answer = self.simulators.answer
        assert answer is not None  # however many levels: the lowest has asked them
        self.clock.environment_steps += int(np.add.reduce(answer.duration))
        return answer

    def begin_counting(self, rows: BoolArray) -> None:
        """Forget how sub-episodes have gone, and go on with those of the rows [N] alone."""
        for level in self.levels:
            level.sub_episodes.drain()
        self.count_only(rows)

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the sub-episodes of other rows than these, [N]."""
        for level in self.levels:
            level.sub_episodes.count_only(rows)

    def state_dict(self) -> State:
        """Levels, open episodes, simulators and clock."""
        return {"top": self.levels[0].state_dict(), "clock": self.clock.state_dict()}

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self.levels[0].load_state_dict(state["top"])
        self.clock.load_state_dict(state["clock"])

    def close(self) -> None:
        """Close the environments."""
        self.levels[0].close()


def build_stack(
    levels: tuple[LevelParameters, ...],
    environment: Environment,
    *,
    agent: AgentSource,
    clock: Clock,
    seed: int,
    purpose: str,
    discount: float = 1.0,
) -> Stack:
    """Stack levels on an environment, from the lowest up.

    Args:
        levels: Top first.
        environment: The simulators; closed with the stack, and here if building fails.
        agent: Where each level's agent comes from.
        clock: The stack's clock.
        seed: The run's seed.
        purpose: Names the random streams of the rows, e.g. `training`.
        discount: Of rewards per simulator step, when a level adds them up for the one above.
    """
    built: list[LevelManager] = []
    simulators = Simulators(environment)
    below: Environment = simulators
    try:
        for index in reversed(range(len(levels))):
            params = levels[index]
            check_level(params, below.spaces, is_top=index == 0)
            level = LevelManager(
                params,
                agent=agent(index, agent_spaces(below.spaces, params.goal_space)),
                environment=below,
                clock=clock,
                seed=integer_seed(seed, purpose, params.name),
                above=levels[:index],
                discount=discount,
            )
            built.append(level)
            below = level
    except CoachError:
        environment.close()
        raise
    return Stack(levels=tuple(reversed(built)), simulators=simulators, clock=clock)
