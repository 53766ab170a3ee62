"""Building stacks: levels on a set of environments."""

from contextlib import ExitStack

from coach_rl.core.agents import AnyAgent
from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import DrawableParameters, Environment, EnvironmentParameters
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.graph_managers.arrangement import AgentSource
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.stack import Stack, StackSignals


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
        self._parameters, self._runtime = parameters, runtime
        self._agents, self._opened = agents, opened

    def training(self, clock: Clock) -> Stack:
        """The stack that trains, on environments of this process or on what workers collect."""
        parameters = self._parameters
        if not parameters.collection.workers:
            return self._stack("training", parameters.environment, parameters.num_envs, clock)
        # Here, so that a run without workers does not load what only they need.
        from coach_rl.graph_managers.collected_stack import Collection, freeze_statistics

        collection = Collection(parameters, self._runtime, opened=self._opened)

        def holding(index: int, spaces: EnvironmentSpaces) -> AnyAgent:
            agent = self._agents(index, spaces)
            freeze_statistics(agent)
            return agent

        return collection.serve(self._on(collection.blocks, "training", clock, agent=holding))

    def evaluation(self, clock: Clock, num_envs: int, *, is_drawn: bool) -> Stack:
        """The stack of evaluations."""
        parameters = self._parameters
        described = parameters.evaluation_environment or parameters.environment
        environment = _drawn(described, is_drawn=is_drawn)
        return self._stack("evaluation", environment, num_envs, clock)

    def _stack(
        self,
        purpose: str,
        environment: EnvironmentParameters,
        num_envs: int,
        clock: Clock,
    ) -> Stack:
        """All levels on new environments."""
        self._runtime.on_activity(f"building {num_envs:,} environments for {purpose}")
        simulators = environment.build(num_envs=num_envs)
        self._runtime.on_activity("")
        self._opened.callback(simulators.close)
        return self._on(simulators, purpose, clock, agent=self._agents)

    def _on(
        self,
        simulators: Environment,
        purpose: str,
        clock: Clock,
        *,
        agent: AgentSource,
    ) -> Stack:
        """All levels on simulators."""
        return self._parameters.arrangement.build_stack(
            self._agents.levels(simulators.spaces.observation, purpose),
            simulators,
            agent=agent,
            clock=clock,
            seed=self._runtime.seed,
            purpose=purpose,
            signals=StackSignals(
                params=self._parameters.signals,
                channel=self._runtime.signals.channel,
                num_envs=simulators.num_envs,
            ),
            sums=self._parameters.sums,
        )


def _drawn(environment: EnvironmentParameters, *, is_drawn: bool) -> EnvironmentParameters:
    """The environment, made so that it can be drawn if it will be."""
    if is_drawn and isinstance(environment, DrawableParameters):
        return environment.drawable()
    return environment
