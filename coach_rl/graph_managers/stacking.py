"""Building stacks: levels on a set of environments."""

from contextlib import ExitStack

from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import DrawableParameters, Environment, EnvironmentParameters
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stack_signals import StackSignals


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
        if is_drawn and isinstance(described, DrawableParameters):
            described = described.drawable()
        simulators = self._built("evaluation", described, num_envs)
        return self.stack_on(simulators, clock, purpose="evaluation")

    def stack_on(
        self, simulators: Environment, clock: Clock, *, purpose: str = "training"
    ) -> Stack:
        """All levels on simulators."""
        return self.parameters.arrangement.build_stack(
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
