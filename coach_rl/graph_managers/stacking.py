"""Building the levels of an experiment on top of one set of environments."""

from collections.abc import Callable

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import Environment
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stack_signals import StackSignals
from coach_rl.levels.level_manager import LevelManager
from coach_rl.levels.spaces import agent_spaces, check_level

AgentSource = Callable[[int, EnvironmentSpaces], AnyAgent]
"""(index of the level, what its agent sees and where it acts) to the agent."""


def build_stack(
    levels: tuple[LevelParameters, ...],
    environment: Environment,
    *,
    agent: AgentSource,
    clock: Clock,
    seed: int,
    purpose: str,
    signals: StackSignals | None = None,
    discount: float = 1.0,
) -> Stack:
    """Stack levels on an environment, from the lowest up.

    Args:
        levels: Top first.
        environment: The simulators; closed with the stack, and by the caller if building fails.
        agent: Where each level's agent comes from.
        clock: The stack's clock.
        seed: The run's seed.
        purpose: Names the random streams of the rows, e.g. `training`.
        signals: Collects the stack's signals; None: nobody asks for any.
        discount: Of rewards per simulator step, when a level adds them up for the one above.
    """
    built: list[LevelManager] = []
    below = environment
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
    if signals is None:
        signals = StackSignals(num_envs=environment.num_envs)
    return Stack(levels=tuple(reversed(built)), clock=clock, signals=signals)
