"""Workers as the source of a run's ticks: the training stack repeats what they did.

Goals, rewards, transitions, statistics and memories come about here, as in a run without workers,
from the decisions and the answers that workers send. What is left out is choosing actions and
stepping simulators.
"""

import pickle
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from coach_rl.core.agents import PacedAgent, require_whole_policies
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import BoolArray, IntArray
from coach_rl.extensions.workers.block_worker import BlockWorker
from coach_rl.extensions.workers.collectors import Blocks
from coach_rl.extensions.workers.worker_places import Worker, workers_at
from coach_rl.graph_managers.level_timing import LevelTimings
from coach_rl.graph_managers.parameters import GraphParameters, SourceContext, SourceParameters
from coach_rl.graph_managers.stack import Stack, TickSource


@parameter_class
class CollectionParameters(SourceParameters):
    """Workers that act and step environments for a run; see docs/scaling.md."""

    CHANGEABLE = ("source.on",)

    workers: Positive[int]
    """Processes that collect, each with a block of the environments (required)."""
    on: str = "local"
    """Place of the workers. local: processes of this machine. ray: actors of the Ray cluster that
    is found, or one started on this machine. ray:ADDRESS: actors of that cluster. inline: one after
    the other in the run's own process, to debug them and to compare numbers."""
    mode: Literal["synchronous", "asynchronous"] = "synchronous"
    """synchronous: learning sees a tick of all workers at a time, and they act with the newest
    parameters; the numbers don't depend on where workers are. asynchronous: the run learns from
    each worker that is ready, and workers act while the run learns, with older parameters; only for
    off-policy agents, and another algorithm."""
    ticks: Positive[int] = 32
    """Steps of each environment that a worker makes on one request, at most; fewer in synchronous
    mode where learning is due before."""
    staleness: Positive[int] = 64
    """Ticks of the run that may pass, in asynchronous mode, between sending parameters to a worker
    and learning from what it did with them; twice `ticks` or more."""

    def __post_init__(self) -> None:
        require(
            self.on in ("local", "inline", "ray") or re.fullmatch(r"ray:\S+", self.on) is not None,
            f"CollectionParameters.on must be local, inline, ray or ray:ADDRESS, got '{self.on}'; "
            "other places make whole runs (--seeds)",
        )
        require(
            self.mode == "synchronous" or 2 * self.ticks <= self.staleness,
            f"CollectionParameters.staleness ({self.staleness}) must be twice `ticks` "
            f"({self.ticks}) or more: a worker makes as many while those before are learned from",
        )
        require(
            self.mode == "synchronous" or self.on != "inline",
            "CollectionParameters.on='inline' works only in synchronous mode: one process does one "
            "thing at a time",
        )

    def problems(self, experiment: GraphParameters) -> Iterator[str]:
        if self.workers > experiment.num_envs:
            yield (
                f"source.workers ({self.workers}) must be num_envs ({experiment.num_envs}) or "
                "less, because each worker has an environment at least; lower it, or raise "
                "num_envs (-n)"
            )

    def build(self, context: SourceContext, clock: Clock) -> Stack:
        runtime = context.runtime
        runtime.on_activity(f"starting {self.workers:,} workers")
        start_worker = workers_at(self.on, self.workers)

        def start(rows: IntArray) -> Worker:
            return start_worker(partial(BlockWorker, context.parameters, runtime.recorded(), rows))

        blocks = Blocks(
            start,
            np.array_split(np.arange(context.parameters.num_envs), self.workers),
            seed=runtime.seed,
            staleness=None if self.mode == "synchronous" else self.staleness,
        )
        runtime.on_activity("")
        context.opened.callback(blocks.close)
        stack = context.stack_on(blocks, clock)
        _check_collection(stack, self)
        timings = LevelTimings(context.parameters.levels)
        return replace(stack, source=CollectedTicks(self, blocks, stack, timings))


class CollectedTicks(TickSource):
    """Workers that make the ticks of a stack.

    Args:
        parameters: Of the workers.
        blocks: The workers, in place of simulators.
        stack: Repeats their ticks.
        timings: What changes its levels while it trains.
    """

    acts_here = False

    def __init__(
        self,
        parameters: CollectionParameters,
        blocks: Blocks,
        stack: Stack,
        timings: LevelTimings,
    ) -> None:
        self.name = f"{parameters.workers} workers"
        self._parameters = parameters
        self._blocks = blocks
        self._timings = timings
        for level in stack.levels:
            blocks.statistics.add(level.name, level.agent)
            level.begin_streams()  # the memory of rows depends on the filter

    def metrics(self) -> dict[str, float]:
        return self._blocks.metrics()

    def begin(self, stack: Stack) -> BoolArray:
        """The rows [N] of the next tick: all of them in synchronous mode."""
        among = self._blocks.take(self._ticks_ahead(stack), lambda: self._message(stack))
        for level, made in zip(stack.levels, self._blocks.decisions, strict=True):
            level.follow(made)
        return among

    def _message(self, stack: Stack) -> bytes:
        """Parameters and progress for workers; freezes their filter statistics."""
        self._blocks.statistics.freeze()
        policies = {level.name: level.agent.policy_state_dict() for level in stack.levels}
        message = {
            "policies": {name: _on_cpu(policy) for name, policy in policies.items() if policy},
            "clock": stack.clock.state_dict(),
            "wall_seconds": stack.clock.wall_seconds,
        }
        return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)

    def _ticks_ahead(self, stack: Stack) -> int:
        """Ticks that can be made before the parameters change, or before they may be too old."""
        most = self._parameters.ticks
        if stack.clock.phase is Phase.HEATUP:
            return 1
        if self._parameters.mode == "asynchronous":
            return most
        if self._timings.may_change_at_any_tick:
            return 1
        paces = [
            level.agent.decisions_until_training() if isinstance(level.agent, PacedAgent) else 1
            for level in stack.levels
            if not level.params.frozen
        ]
        return min([most, *(-(-pace // stack.num_envs) for pace in paces)])


def _check_collection(stack: Stack, params: CollectionParameters) -> None:
    """Raise `ConfigurationError` where workers cannot collect for an agent in the chosen mode."""
    require_whole_policies({level.name: level.agent for level in stack.levels})
    for level in stack.levels:
        level.decisions()
        agent = level.agent
        is_on_policy = isinstance(agent, PacedAgent) and agent.is_on_policy
        if params.mode == "asynchronous" and is_on_policy:
            raise ConfigurationError(
                f"the agent of level '{level.name}' learns only from what its newest policy "
                "did, and source.mode='asynchronous' lets workers act with older ones; "
                "use synchronous, or an off-policy agent"
            )
        goals = level.params.goal_space
        scheduled = any(change.scheduled for change in level.params.changes)
        if params.mode == "asynchronous" and scheduled:
            raise ConfigurationError(
                f"level '{level.name}' changes while it trains, and source.mode='asynchronous' "
                "lets workers follow an older moment; use synchronous"
            )
        if params.mode == "asynchronous" and isinstance(goals, GoalSpace) and goals.learns:
            raise ConfigurationError(
                f"the goals of level '{level.name}' learn ({type(goals).__name__}), and "
                "source.mode='asynchronous' lets workers judge by older ones; use synchronous"
            )


def _on_cpu(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _on_cpu(part) for name, part in tree.items()}
    return tree.cpu() if isinstance(tree, torch.Tensor) else tree
