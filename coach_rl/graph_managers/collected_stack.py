"""The stacks of a run whose experience workers collect: a worker's, and the one that trains.

A `BlockWorker` steps a block of the run's rows. Its stack has all N rows of the run, so that row i
draws the numbers it would draw there; only the rows of its block ever act.

The training stack repeats the ticks of the workers, with the decisions and the answers they send:
goals, rewards, transitions, statistics and memories come about here, as in a run without workers.
What is left out is choosing actions and stepping simulators.
"""

import copy
import pickle
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import torch

from coach_rl.core.agents import PacedAgent, require_whole_policies
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import InputFilter
from coach_rl.core.records import Array, BoolArray, EnvResponse, FloatArray, IntArray, Observation
from coach_rl.core.runtime import Runtime
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.level_phases import LevelPhases
from coach_rl.graph_managers.parameters import CollectionParameters, GraphParameters
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.torch_settings import torch_settings
from coach_rl.processes.collectors import BlockOfRows, Blocks, BlockTick, rows_of
from coach_rl.processes.worker_places import Worker, workers_at


class BlockWorker:
    """A block of rows with copies of the run's agents, which learn nothing; a `Collector`.

    Args:
        parameters: The experiment.
        runtime: The run's; a worker computes on the CPU.
        rows: The rows of its block.
    """

    def __init__(self, parameters: GraphParameters, runtime: Runtime, rows: IntArray) -> None:
        self._parameters, self._rows = parameters, rows
        self._runtime = replace(
            runtime, device="cpu", divergence=parameters.divergence, acts_only=True
        )
        self._num_envs = parameters.num_envs
        self._among = np.zeros(self._num_envs, np.bool_)
        self._among[rows] = True
        self._clock = Clock(planned=parameters.schedule.training, collects=True)
        self._agents = LevelAgents(parameters, self._runtime, self._clock)
        environment = parameters.environment.build(num_envs=len(rows))
        self._simulators = BlockOfRows(environment, rows, num_envs=self._num_envs)
        try:
            self._stack = self._new_stack(0)
        except BaseException:
            environment.close()
            raise

    def environment_spaces(self) -> EnvironmentSpaces:
        return self._simulators.spaces

    def reset(self, seeds: Sequence[int], stream: int) -> EnvResponse:
        """See `Collector`; the first answer has the block's rows alone."""
        self._stack = self._new_stack(stream)
        every = np.zeros(self._num_envs, np.int64)
        every[self._rows] = seeds
        self._stack.reset(every.tolist())
        return self._simulators.start

    def collect(self, ticks: int, message: bytes) -> list[BlockTick]:
        received = pickle.loads(message)  # from the run that started this worker
        for name, policy in received["policies"].items():
            self._agents.built[name].load_policy(policy)
        self._clock.load_state_dict(received["clock"])
        self._clock.wall_seconds = received["wall_seconds"]
        with torch_settings(self._runtime):
            made = [self._tick() for _ in range(ticks)]
        for level in self._stack.levels:
            level.drain()  # the run counts them
        return made

    def state(self) -> State:
        return self._stack.state_dict()

    def load(self, state: State, stream: int) -> None:
        self._stack = self._new_stack(stream)
        self._stack.load_state_dict(state)

    def close(self) -> None:
        self._simulators.close()

    def _new_stack(self, stream: int) -> Stack:
        seed = self._runtime.seed
        return self._parameters.arrangement.build_stack(
            self._agents.levels(self._simulators.spaces.observation),
            self._simulators,
            agent=self._agents,
            clock=self._clock,
            seed=seed if not stream else integer_seed(seed, "collection", str(stream)),
            purpose="training",
            sums=self._parameters.sums,
        )

    def _tick(self) -> BlockTick:
        steps = self._clock.environment_steps
        answer = self._stack.tick_of(self._among)
        # The other blocks are taken to make a step of each row meanwhile.
        self._clock.environment_steps = steps + self._num_envs
        decisions = [rows_of(level.decisions(), self._rows) for level in self._stack.levels]
        return BlockTick(answer=answer, decisions=decisions)


class Collection:
    """The workers that collect for a stack, and what they act by.

    Args:
        parameters: The experiment.
        runtime: The run's.
        opened: Ends the workers.
    """

    def __init__(self, parameters: GraphParameters, runtime: Runtime, *, opened: ExitStack) -> None:
        self._parameters, collection = parameters, parameters.collection
        runtime.on_activity(f"starting {collection.workers:,} workers")
        start_worker = workers_at(collection.on, collection.workers)

        def start(rows: IntArray) -> Worker:
            return start_worker(partial(BlockWorker, parameters, runtime.recorded(), rows))

        self.blocks = Blocks(
            start,
            np.array_split(np.arange(parameters.num_envs), collection.workers),
            seed=runtime.seed,
            staleness=None if collection.mode == "synchronous" else collection.staleness,
        )
        """The workers, in place of simulators."""
        runtime.on_activity("")
        opened.callback(self.blocks.close)

    def serve(self, stack: Stack) -> Stack:
        """The stack, whose decisions and steps the workers make from now on.

        Raises:
            ConfigurationError: Workers cannot collect for an agent in the chosen mode.
        """
        _check_collection(stack, self._parameters.collection)
        return replace(stack, collection=self)

    def begin_tick(self, stack: Stack) -> BoolArray:
        """The rows [N] of the next tick: all of them in synchronous mode."""
        among = self.blocks.take(self._ticks_ahead(stack), lambda: self._message(stack))
        for level, made in zip(stack.levels, self.blocks.decisions, strict=True):
            level.follow(made)
        return among

    def note_loaded(self, stack: Stack) -> None:
        """Filter by the statistics that workers had when the state was saved."""
        for level in stack.levels:
            freeze_statistics(level.agent, self.blocks.held.get(level.name))

    def _message(self, stack: Stack) -> bytes:
        """Parameters and progress for workers; freezes their filter statistics."""
        for level in stack.levels:
            if (frozen := freeze_statistics(level.agent)) is not None:
                self.blocks.held[level.name] = frozen
        policies = {level.name: level.agent.policy_state_dict() for level in stack.levels}
        message = {
            "policies": {name: _on_cpu(policy) for name, policy in policies.items() if policy},
            "clock": stack.clock.state_dict(),
            "wall_seconds": stack.clock.wall_seconds,
        }
        return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)

    def _ticks_ahead(self, stack: Stack) -> int:
        """Ticks that can be made before the parameters change, or before they may be too old."""
        collection = self._parameters.collection
        if stack.clock.phase is Phase.HEATUP:
            return 1
        if collection.mode == "asynchronous":
            return collection.ticks
        if LevelPhases(self._parameters.levels).may_change_at_any_tick:
            return 1
        paces = [
            level.agent.decisions_until_training() if isinstance(level.agent, PacedAgent) else 1
            for level in stack.levels
            if not level.params.frozen
        ]
        return min([collection.ticks, *(-(-pace // stack.num_envs) for pace in paces)])


def _check_collection(stack: Stack, collection: CollectionParameters) -> None:
    """Raise `ConfigurationError` where workers cannot collect for an agent in the chosen mode."""
    require_whole_policies({level.name: level.agent for level in stack.levels})
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
        goals = level.params.goal_space
        if collection.mode == "asynchronous" and level.params.changes:
            raise ConfigurationError(
                f"level '{level.name}' changes while it trains, and collection.mode='asynchronous' "
                "lets workers follow an older moment; use synchronous"
            )
        if collection.mode == "asynchronous" and isinstance(goals, GoalSpace) and goals.learns:
            raise ConfigurationError(
                f"the goals of level '{level.name}' learn ({type(goals).__name__}), and "
                "collection.mode='asynchronous' lets workers judge by older ones; use synchronous"
            )


def _on_cpu(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _on_cpu(part) for name, part in tree.items()}
    return tree.cpu() if isinstance(tree, torch.Tensor) else tree


class FrozenStatisticsFilter(Saved):
    """Filters the observations of training by statistics that stay as they are until `freeze`.

    Other processes act by them meanwhile, and learning has to see what they saw. Evaluations are
    filtered by the newest statistics, and so are rewards, on which no decision depends.

    Args:
        newest: The agent's filter, which learns the statistics.
    """

    SAVED = (SavedAttribute("_newest", inline=True),)

    def __init__(self, newest: InputFilter) -> None:
        self._newest, self._frozen = newest, copy.deepcopy(newest)
        self.observation_space = newest.observation_space
        self.changed_keys, self.changes_reward = newest.changed_keys, newest.changes_reward

    def parts(self) -> dict[str, object]:
        """The filter and its copy."""
        return {"newest": self._newest, "frozen": self._frozen}

    def freeze(self, frozen: State | None) -> State:
        """Use these statistics from now on, None for the newest; returns those in use."""
        self._frozen.load_state_dict(self._newest.state_dict() if frozen is None else frozen)
        return self._frozen.state_dict()

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory per row, of the filter and of its frozen copy."""
        frozen = {f"held/{name}": of for name, of in self._frozen.new_rows(num_rows).items()}
        return self._newest.new_rows(num_rows) | frozen

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter by the frozen statistics where the newest are still being learned."""
        newest = self._newest.observation(memory, rows, observation, starts=starts, learn=learn)
        if not learn:
            return newest
        own = {
            name.removeprefix("held/"): values
            for name, values in memory.items()
            if name.startswith("held/")
        }
        return self._frozen.observation(own, rows, observation, starts=starts, learn=False)

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """Filter by the newest statistics."""
        return self._newest.reward(memory, rows, reward, ends=ends, learn=learn)


def freeze_statistics(agent: Any, frozen: State | None = None) -> State | None:
    """Filter training's observations by these statistics from now on, while others are learned.

    Args:
        agent: The agent, or a group of agents.
        frozen: What this returned before; None takes the statistics as they are now.

    Returns:
        The statistics in use, those of a group by the member's name; None if nothing filters.
    """
    if members := getattr(agent, "members", None):
        found = {
            name: freeze_statistics(each, None if frozen is None else frozen.get(name))
            for name, each in members.items()
        }
        return {name: state for name, state in found.items() if state is not None}
    current = getattr(agent, "input_filter", None)
    if current is None:
        return None
    if not isinstance(current, FrozenStatisticsFilter):
        agent.input_filter = current = FrozenStatisticsFilter(current)
    return current.freeze(frozen)
