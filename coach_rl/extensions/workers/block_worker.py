"""A worker's stack, which steps a block of the run's rows.

It has all N rows of the run, so that row i draws the numbers it would draw there; only the rows of
its block ever act.
"""

import pickle
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.records import BoolArray, EnvResponse, IntArray
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.extensions.workers.collectors import BlockOfRows, BlockTick, rows_of
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.stack import Stack, TickSource
from coach_rl.graph_managers.torch_settings import torch_settings


class RowsAlone(TickSource):
    """Ticks of some rows of a stack.

    Args:
        among: The rows, [N].
    """

    def __init__(self, among: BoolArray) -> None:
        self._among = among

    def begin(self, stack: Stack) -> BoolArray:  # noqa: ARG002 - always the same
        return self._among


class BlockWorker:
    """A block of rows with copies of the run's agents, which learn nothing; a `Collector`.

    Args:
        parameters: The experiment.
        runtime: The run's; a worker computes on the CPU.
        rows: The rows of its block.
    """

    def __init__(self, parameters: GraphParameters, runtime: Runtime, rows: IntArray) -> None:
        self._parameters = parameters
        self._rows = rows
        self._runtime = replace(
            runtime, device="cpu", divergence=parameters.divergence, acts_only=True
        )
        self._num_envs = parameters.num_envs
        self._among = np.zeros(self._num_envs, np.bool_)
        self._among[rows] = True
        self._clock = Clock(planned=parameters.schedule.training, acts_only=True)
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
        stack = self._parameters.arrangement.build_stack(
            self._agents.levels(self._simulators.spaces.observation),
            self._simulators,
            agent=self._agents,
            clock=self._clock,
            seed=seed if not stream else integer_seed(seed, "collection", str(stream)),
            purpose="training",
            sums=self._parameters.sums,
        )
        return replace(stack, source=RowsAlone(self._among))

    def _tick(self) -> BlockTick:
        steps = self._clock.environment_steps
        answer = self._stack.tick()
        # The other blocks are taken to make a step of each row meanwhile.
        self._clock.environment_steps = steps + self._num_envs
        decisions = [rows_of(level.decisions(), self._rows) for level in self._stack.levels]
        return BlockTick(answer=answer, decisions=decisions)
