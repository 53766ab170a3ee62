"""Building stacks of levels: those that a graph trains in and is evaluated in."""

from contextlib import ExitStack

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.interfaces import DrawableParameters, EnvironmentParameters
from coach_rl.core.runtime import ONE_PROCESS, ProcessGroup, Runtime
from coach_rl.graph_managers.collected_stack import build_collected_stack
from coach_rl.graph_managers.forks import Forks
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.shared_environment import SharedEnvironment
from coach_rl.graph_managers.stack import Stack, StackSignals
from coach_rl.graph_managers.stacking import build_stack


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

    def training(self, clock: Clock, *, is_drawn: bool) -> Stack:
        """The stack that trains, on environments of this process or on what workers collect."""
        parameters = self._parameters
        if parameters.collection.workers:
            if self._runtime.group.size > 1:
                raise ConfigurationError(
                    "a run that learns in several processes collects in each of them; leave out "
                    "--workers (collection.workers), or torchrun"
                )
            return build_collected_stack(
                parameters,
                self._runtime,
                agents=self._agents,
                clock=clock,
                opened=self._opened,
            )
        environment = _drawn(parameters.environment, is_drawn=is_drawn)
        return self._stack("training", environment, parameters.num_envs, clock, self._runtime.group)

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
        group: ProcessGroup = ONE_PROCESS,
    ) -> Stack:
        """All levels on new environments."""
        num_envs //= group.size
        self._runtime.on_activity(f"building {num_envs:,} environments for {purpose}")
        simulators = environment.build(num_envs=num_envs)
        self._runtime.on_activity("")
        self._opened.callback(simulators.close)
        if group.size > 1:
            simulators = SharedEnvironment(simulators, group)
        return build_stack(
            self._agents.levels(simulators.spaces.observation, purpose),
            simulators,
            agent=self._agents,
            clock=clock,
            seed=self._runtime.seed,
            purpose=purpose,
            signals=self._signals(simulators.num_envs),
            discount=self._parameters.reward_discount,
            forks=Forks(
                environment=environment, opened=self._opened, channel=self._runtime.signals.channel
            ),
        )

    def _signals(self, num_envs: int) -> StackSignals:
        return StackSignals(
            params=self._parameters.signals,
            channel=self._runtime.signals.channel,
            num_envs=num_envs,
        )


def _drawn(environment: EnvironmentParameters, *, is_drawn: bool) -> EnvironmentParameters:
    """The environment, made so that it can be drawn if it will be."""
    if is_drawn and isinstance(environment, DrawableParameters):
        return environment.drawable()
    return environment
