"""A worker: a block of the run's rows, stepped with its own stack of levels.

The worker's stack has all N rows of the run, so that row i draws the numbers it would draw there;
only the rows of its block ever act.
"""

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.interfaces import Environment
from coach_rl.core.joined_answers import infos_with_same_keys
from coach_rl.core.records import (
    Action,
    Array,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
)
from coach_rl.core.runtime import Runtime
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.level_agents import LevelAgents
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.stack import Stack
from coach_rl.graph_managers.stacking import build_stack
from coach_rl.graph_managers.torch_settings import torch_settings


@dataclass(frozen=True, kw_only=True)
class BlockTick:
    """One step of a block's rows."""

    answer: EnvResponse
    """The simulators' answer; rows are numbered as in the whole run."""
    decisions: list[State]
    """The decision that each of these rows made last, by level, top first; arrays [R, ...]."""
    asked_at: int = 0
    """Ticks of the run when the parameters behind it were sent."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """Everything a worker is built from."""

    parameters: GraphParameters
    runtime: Runtime
    rows: IntArray
    """The rows of its block."""


class BlockWorker:
    """Steps a block of rows with a copy of the run's agents, which learn nothing here.

    Args:
        setup: The experiment, and which rows.
    """

    def __init__(self, setup: Setup) -> None:
        parameters = setup.parameters
        runtime = replace(
            setup.runtime, device="cpu", divergence=parameters.divergence, acts_only=True
        )
        self._setup = replace(setup, runtime=runtime)
        self._num_envs = parameters.num_envs
        self._among = np.zeros(self._num_envs, np.bool_)
        self._among[setup.rows] = True
        self._agents = LevelAgents(parameters, runtime)
        self._clock = Clock(planned=parameters.schedule.training, collects=True)
        environment = parameters.environment.build(num_envs=len(setup.rows))
        self._simulators = BlockOfRows(environment, setup.rows, num_envs=self._num_envs)
        try:
            self._stack = self._new_stack(0)
        except BaseException:
            environment.close()
            raise

    @property
    def spaces(self) -> EnvironmentSpaces:
        """The environment's."""
        return self._simulators.spaces

    def reset(self, seeds: Sequence[int], stream: int) -> EnvResponse:
        """Start the block's rows anew.

        Args:
            seeds: Of its rows.
            stream: Number of the random streams that its agents draw from; 0 for the run's own.
        """
        self._stack = self._new_stack(stream)
        every = np.zeros(self._num_envs, np.int64)
        every[self._setup.rows] = seeds
        self._stack.reset(every.tolist())
        return self._simulators.start

    def collect(self, ticks: int, message: bytes) -> list[BlockTick]:
        """Make some ticks with the parameters and the progress that a message holds."""
        received = pickle.loads(message)  # from the run that started this worker
        for name, policy in received["policies"].items():
            self._agents.built[name].load_policy(policy)
        self._clock.load_state_dict(received["clock"])
        self._clock.wall_seconds = received["wall_seconds"]
        with torch_settings(self._setup.runtime):
            made = [self._tick() for _ in range(ticks)]
        for level in self._stack.levels:
            level.drain()  # the run counts them
        return made

    def state(self) -> State:
        """The block's stack, open episodes included."""
        return self._stack.state_dict()

    def load(self, state: State, stream: int) -> None:
        """Go on from a saved state."""
        self._stack = self._new_stack(stream)
        self._stack.load_state_dict(state)

    def close(self) -> None:
        """Close the environments."""
        self._simulators.close()

    def _new_stack(self, stream: int) -> Stack:
        seed = self._setup.runtime.seed
        return build_stack(
            self._setup.parameters.levels,
            self._simulators,
            agent=self._agents,
            clock=self._clock,
            seed=seed if not stream else integer_seed(seed, "collection", str(stream)),
            purpose="training",
            discount=self._setup.parameters.reward_discount,
        )

    def _tick(self) -> BlockTick:
        steps = self._clock.environment_steps
        answer = self._stack.tick_of(self._among)
        # The other blocks are taken to make a step of each row meanwhile.
        self._clock.environment_steps = steps + self._num_envs
        rows = self._setup.rows
        decisions = [rows_of(level.decisions(), rows) for level in self._stack.levels]
        return BlockTick(answer=answer, decisions=decisions)


class BlockOfRows(Saved):
    """Some rows of N, in an environment that has no others.

    Args:
        environment: Of as many rows as there are in `rows`.
        rows: Their numbers among the N.
        num_envs: N.
    """

    SAVED = (SavedAttribute("_environment", inline=True),)

    def __init__(self, environment: Environment, rows: IntArray, *, num_envs: int) -> None:
        self._environment, self._rows, self.num_envs = environment, rows, num_envs
        self.spaces = environment.spaces
        self.start: EnvResponse
        """Answer of the last reset, of the block's own rows."""

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start the block's rows; zeros stand in the others."""
        assert not isinstance(seed, int | None), "every row has a seed of its own"
        start = self._environment.reset([seed[row] for row in self._rows])
        self.start = replace(start, rows=self._rows)

        def spread(values: Array) -> Array:
            whole = np.zeros((self.num_envs, *values.shape[1:]), values.dtype)
            whole[self._rows] = values
            return whole

        shown: Observation = {key: spread(of) for key, of in start.first_observation.items()}
        return EnvResponse.reset(shown, num_envs=self.num_envs)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Send to the block's rows."""
        assert rows is not None
        self._environment.send(directive, np.searchsorted(self._rows, rows))

    def recv(self) -> EnvResponse:
        """The block's answer, its rows by their numbers in the whole."""
        answer = self._environment.recv()
        faults = tuple(replace(each, row=int(self._rows[each.row])) for each in answer.faults)
        return replace(answer, rows=self._rows[answer.rows], faults=faults)

    def close(self) -> None:
        """Close the environment."""
        self._environment.close()


def rows_of(tree: Any, rows: IntArray) -> Any:
    """A tree of arrays [N, ...] with these rows alone, copied."""
    if isinstance(tree, dict):
        return {name: rows_of(part, rows) for name, part in tree.items()}
    return tree[rows]


def put_rows(into: State, tree: State, rows: IntArray, num_envs: int) -> None:
    """Put a tree of arrays [R, ...] into one of arrays [N, ...], which grows where it has to."""
    for name, part in tree.items():
        if isinstance(part, dict):
            put_rows(into.setdefault(name, {}), part, rows, num_envs)
            continue
        if name not in into:
            into[name] = np.zeros((num_envs, *part.shape[1:]), part.dtype)
        into[name][rows] = part


def joined_answers(parts: Sequence[EnvResponse]) -> EnvResponse:
    """Answers of blocks in the order of their rows; see `infos_with_same_keys`."""
    infos = infos_with_same_keys([part.info for part in parts], [len(part) for part in parts])

    def by_key(dicts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        return {key: np.concatenate([each[key] for each in dicts]) for key in dicts[0]}

    def whole(name: str) -> Any:
        return np.concatenate([getattr(part, name) for part in parts])

    return EnvResponse(
        rows=whole("rows"),
        observation=by_key([part.observation for part in parts]),
        first_observation=by_key([part.first_observation for part in parts]),
        reward=whole("reward"),
        terminated=whole("terminated"),
        truncated=whole("truncated"),
        end=whole("end"),
        duration=whole("duration"),
        info=by_key(infos),
        faults=tuple(fault for part in parts for fault in part.faults),
    )
