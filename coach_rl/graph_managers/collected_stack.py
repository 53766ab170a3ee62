"""The training stack of a run whose experience workers collect.

It makes the ticks that the workers made once more, with the decisions and the answers they send:
goals, rewards, transitions, statistics and memories come about here, as in a run without workers.
What is left out is choosing actions and stepping simulators.
"""

import pickle
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from coach_rl.core.agents import AnyAgent, PacedAgent, require_whole_policies
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.frozen_statistics import freeze_statistics
from coach_rl.core.records import EnvResponse
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.level_phases import LevelPhases
from coach_rl.graph_managers.parameters import CollectionParameters, GraphParameters
from coach_rl.graph_managers.stack import Stack, StackSignals
from coach_rl.graph_managers.stacking import AgentSource, build_stack
from coach_rl.graph_managers.worker_blocks import Blocks


@dataclass(frozen=True, kw_only=True)
class CollectedStack(Stack):
    """Levels above workers."""

    parameters: GraphParameters

    @property
    def blocks(self) -> Blocks:
        """The workers."""
        assert isinstance(self.simulators, Blocks)
        return self.simulators

    def tick(self) -> EnvResponse:
        """One tick of the blocks that are ready: all of them in synchronous mode."""
        among = self.blocks.take(self._ticks_ahead(), self._message)
        for level, made in zip(self.levels, self.blocks.decisions, strict=True):
            level.follow(made)
        return self.tick_of(among)

    def metrics(self) -> dict[str, float]:
        """Metrics of the workers since the last call."""
        return self.blocks.metrics()

    def load_state_dict(self, state: State, *, with_simulators: bool = True) -> None:
        """Go on from a saved state; workers filter by the statistics that they had then."""
        super().load_state_dict(state, with_simulators=with_simulators)
        for level in self.levels:
            freeze_statistics(level.agent, self.blocks.held.get(level.name))

    def _load_simulators(self, state: State) -> None:
        self.blocks.load_state_dict(state)

    def _message(self) -> bytes:
        """Parameters and progress for workers; what they filter by stands still from here on."""
        for level in self.levels:
            if (frozen := freeze_statistics(level.agent)) is not None:
                self.blocks.held[level.name] = frozen
        policies = {level.name: level.agent.policy_state_dict() for level in self.levels}
        message = {
            "policies": {name: _on_cpu(policy) for name, policy in policies.items() if policy},
            "clock": self.clock.state_dict(),
            "wall_seconds": self.clock.wall_seconds,
        }
        return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)

    def _ticks_ahead(self) -> int:
        """Ticks that can be made before the parameters change, or before they may be too old."""
        collection = self.parameters.collection
        if self.clock.phase is Phase.HEATUP:
            return 1
        if collection.mode == "asynchronous":
            return collection.ticks
        if LevelPhases(self.parameters.levels).are_scheduled:  # any tick may bring another phase
            return 1
        paces = [
            level.agent.decisions_until_training() if isinstance(level.agent, PacedAgent) else 1
            for level in self.levels
            if not level.params.frozen
        ]
        return min([collection.ticks, *(-(-pace // self.num_envs) for pace in paces)])


def build_collected_stack(
    parameters: GraphParameters,
    runtime: Runtime,
    *,
    agents: AgentSource,
    clock: Clock,
    opened: ExitStack,
) -> CollectedStack:
    """Start workers, and build the levels that learn from what they collect.

    Args:
        parameters: The experiment.
        runtime: The run's.
        agents: Where each level's agent comes from.
        clock: Phase and counters of training.
        opened: Ends the workers.

    Raises:
        ConfigurationError: Workers cannot collect for an agent as they are asked to.
    """
    runtime.on_activity(f"starting {parameters.collection.workers:,} workers")
    blocks = Blocks(parameters, runtime)
    runtime.on_activity("")
    opened.callback(blocks.close)

    def holding(index: int, spaces: EnvironmentSpaces) -> AnyAgent:
        agent = agents(index, spaces)
        freeze_statistics(agent)
        return agent

    stack = build_stack(
        parameters.levels,
        blocks,
        agent=holding,
        clock=clock,
        seed=runtime.seed,
        purpose="training",
        signals=StackSignals(
            params=parameters.signals, channel=runtime.signals.channel, num_envs=blocks.num_envs
        ),
        discount=parameters.reward_discount,
    )
    collected = CollectedStack(
        levels=stack.levels, clock=clock, signals=stack.signals, parameters=parameters
    )
    _check_collection(collected)
    return collected


def _check_collection(stack: CollectedStack) -> None:
    """Raise `ConfigurationError` where workers cannot collect for an agent as they are asked to."""
    require_whole_policies({level.name: level.agent for level in stack.levels})
    collection: CollectionParameters = stack.parameters.collection
    for level in stack.levels:
        level.decisions()
        agent = level.agent
        is_on_policy = isinstance(agent, PacedAgent) and agent.is_on_policy
        if collection.mode == "asynchronous" and is_on_policy:
            raise ConfigurationError(
                f"the agent of level '{level.name}' learns only from what its newest policy "
                "did, and collection.mode='asynchronous' lets workers act with older ones; "
                "use synchronous, or an off-policy agent"
            )


def _on_cpu(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _on_cpu(part) for name, part in tree.items()}
    return tree.cpu() if isinstance(tree, torch.Tensor) else tree
