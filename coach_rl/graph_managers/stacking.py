"""Stacking levels on one set of environments, with the forks in which they try decisions."""

from collections.abc import Callable

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.interfaces import Environment
from coach_rl.core.levels import is_chain
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.forks import Forks, certifies, check_certifying
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.graph_managers.stack import Stack, StackSignals
from coach_rl.levels.certifier import Certifier, Fork
from coach_rl.levels.level_manager import LevelManager, agent_spaces, check_ending, check_level

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
    forks: Forks | None = None,
) -> Stack:
    """Stack levels on an environment, from the lowest up.

    Args:
        levels: Top first.
        environment: The simulators; closed with the stack, and by the caller if building fails.
        agent: Source of each level's agent.
        clock: The stack's clock.
        seed: The run's seed.
        purpose: Names the random streams of the rows, e.g. `training`.
        signals: Collects the stack's signals; None: none are collected.
        discount: Of rewards per simulator step, when a level adds them up for the one above.
        forks: Simulators in which levels certify their decisions; None: none does.
    """
    if not is_chain(levels):
        # Here, so that a chain does not load what only a graph needs.
        from coach_rl.graph_managers.graph_stack import build_graph_stack

        return build_graph_stack(
            levels,
            environment,
            agent=agent,
            clock=clock,
            seed=seed,
            purpose=purpose,
            signals=signals,
            discount=discount,
        )

    def stacked(environment: Environment, clock: Clock, highest: int) -> tuple[LevelManager, ...]:
        """The levels from number `highest` down; top first."""
        built: list[LevelManager] = []
        below = environment
        for index in reversed(range(highest, len(levels))):
            params = levels[index]
            check_level(params, below.spaces, is_top=index == 0)
            owned = agent(index, agent_spaces(below.spaces, params.goal_space))
            check_ending(params, owned, is_top=index == 0)
            if built:
                built[-1].note_above(owned)
            level = LevelManager(
                params,
                agent=owned,
                environment=below,
                clock=clock,
                seed=integer_seed(seed, purpose, params.name),
                above=levels[:index],
                discount=discount,
                certifier=certifier(index, owned, clock),
            )
            built.append(level)
            below = level
        return tuple(reversed(built))

    def certifier(index: int, owned: AnyAgent, clock: Clock) -> Certifier | None:
        """Tries the decisions of a level; None where they are sent untried."""
        level = levels[index]
        if forks is None or not certifies(level, purpose):
            return None
        check_certifying(level, owned, environment, forks.environment, purpose=purpose)
        fork_clock = Clock(phase=Phase.TEST, collects=True, planned=clock.planned)
        below = stacked(forks.build(environment.num_envs), fork_clock, index + 1)
        below[0].note_above(owned)
        return Certifier(
            level,
            agent=owned,
            fork=Fork(below, clock=fork_clock, channel=forks.channel),
            clock=clock,
            num_envs=environment.num_envs,
            seed=integer_seed(seed, purpose, level.name, "alternatives"),
            above=levels[:index],
        )

    if signals is None:
        signals = StackSignals(num_envs=environment.num_envs)
    return Stack(levels=stacked(environment, clock, 0), clock=clock, signals=signals)
