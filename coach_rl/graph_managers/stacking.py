"""Building stacks: levels on a set of environments."""

from collections.abc import Callable
from contextlib import ExitStack

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import DrawableParameters, Environment, EnvironmentParameters
from coach_rl.core.levels import is_chain
from coach_rl.core.records import PLAIN_SUMS, Sums
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters, LevelParameters
from coach_rl.graph_managers.stack import Stack, StackSignals
from coach_rl.levels.level_manager import LevelManager, agent_spaces, check_ending, check_level

AgentSource = Callable[[int, EnvironmentSpaces], AnyAgent]
"""(index of the level, what its agent sees and where it acts) to the agent."""


class StackBuilder:
    """Builds the stacks of a graph, all with the same agents.

    Args:
        parameters: The experiment.
        runtime: The run's.
        agents: The levels' agents and goals.
        opened: Closes the environments that are built.
    """

    def __init__(
        self,
        parameters: GraphParameters,
        runtime: Runtime,
        *,
        agents: LevelAgents,
        opened: ExitStack,
    ) -> None:
        self.parameters = parameters
        self.runtime = runtime
        self.opened = opened
        self._agents = agents

    def environments(self) -> Environment:
        """See `SourceContext`."""
        return self._built("training", self.parameters.environment, self.parameters.num_envs)

    def evaluation(self, clock: Clock, num_envs: int, *, is_drawn: bool) -> Stack:
        """The stack of evaluations."""
        parameters = self.parameters
        described = parameters.evaluation_environment or parameters.environment
        environment = _drawn(described, is_drawn=is_drawn)
        simulators = self._built("evaluation", environment, num_envs)
        return self.stack_on(simulators, clock, purpose="evaluation")

    def stack_on(
        self, simulators: Environment, clock: Clock, *, purpose: str = "training"
    ) -> Stack:
        """All levels on simulators."""
        return build_stack(
            self._agents.levels(simulators.spaces.observation, purpose),
            simulators,
            agent=self._agents,
            clock=clock,
            seed=self.runtime.seed,
            purpose=purpose,
            signals=StackSignals(
                params=self.parameters.signals,
                channel=self.runtime.signals.channel,
                num_envs=simulators.num_envs,
            ),
            sums=self.parameters.sums,
        )

    def _built(
        self, purpose: str, environment: EnvironmentParameters, num_envs: int
    ) -> Environment:
        """New environments, closed with the graph."""
        self.runtime.on_activity(f"building {num_envs:,} environments for {purpose}")
        simulators = environment.build(num_envs=num_envs)
        self.runtime.on_activity("")
        self.opened.callback(simulators.close)
        return simulators


def build_stack(
    levels: tuple[LevelParameters, ...],
    environment: Environment,
    *,
    agent: AgentSource,
    clock: Clock,
    seed: int,
    purpose: str,
    signals: StackSignals | None = None,
    sums: Sums = PLAIN_SUMS,
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
        sums: What decisions are of those of the level below.
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
            sums=sums,
        )

    built: list[LevelManager] = []
    below = environment
    for index in reversed(range(len(levels))):
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
            sums=sums,
        )
        built.append(level)
        below = level
    if signals is None:
        signals = StackSignals(num_envs=environment.num_envs)
    return Stack(levels=tuple(reversed(built)), clock=clock, signals=signals)


def _drawn(environment: EnvironmentParameters, *, is_drawn: bool) -> EnvironmentParameters:
    """The environment, made so that it can be drawn if it will be."""
    if is_drawn and isinstance(environment, DrawableParameters):
        return environment.drawable()
    return environment
