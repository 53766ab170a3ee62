"""The workers of a run, as an environment: each collects the experience of a block of rows."""

import copy
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from coach_rl.core.errors import RunError, warn
from coach_rl.core.infos import joined
from coach_rl.core.interfaces import Environment
from coach_rl.core.parts import TimedCall
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    Fault,
    IntArray,
    Observation,
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.extensions.workers.frozen_statistics import FrozenStatistics
from coach_rl.extensions.workers.worker_places import Worker
from coach_rl.processes.worker_messages import WorkerLost
from coach_rl.processes.worker_process import Method, Result

MOST_LOSSES = 3
"""Number of times in a row that a worker may be lost before it has made a step."""


@dataclass(frozen=True, kw_only=True)
class BlockTick:
    """One step of a block's rows."""

    answer: EnvResponse
    """The simulators' answer; rows are numbered as in the whole run."""
    decisions: list[State]
    """The decision that each of these rows made last, by level, top first; arrays [R, ...]."""
    requested_at: int = 0
    """Ticks of the run when the parameters behind it were sent."""


class Collector(Protocol):
    """The levels and simulators of a block of rows, in a worker."""

    def environment_spaces(self) -> EnvironmentSpaces:
        """Observation and action space of one row."""
        ...

    def reset(self, seeds: Sequence[int], stream: int) -> EnvResponse:
        """Start all rows of the block.

        Args:
            seeds: One for each row.
            stream: Number of the random streams that its agents draw from; 0 for the run's own.
        """
        ...

    def collect(self, ticks: int, message: bytes) -> list[BlockTick]:
        """Make some ticks with the parameters and the progress that a message holds."""
        ...

    def state(self) -> State:
        """State of the block, open episodes included."""
        ...

    def load(self, state: State, stream: int) -> None:
        """Restore a state."""
        ...

    def close(self) -> None:
        """Close the simulators."""
        ...


@dataclass(kw_only=True)
class Block:
    """A worker, and the ticks that it has sent and the run has not taken yet."""

    number: int
    rows: IntArray
    worker: Worker
    made: deque[BlockTick] = field(default_factory=deque)
    """Ticks to be taken."""
    request: "Future[list[BlockTick]] | None" = None
    """The ticks that it is making."""
    ticks: int = 0
    """Number of ticks of that request."""
    requested_at: int = 0
    """Ticks of the run when the parameters behind that request were sent."""
    losses: int = 0
    """Times it was lost since it last replied."""
    replaced: int = 0
    """Times it was replaced in the whole run."""
    shown: Observation = field(default_factory=dict)
    """The last observation of its rows, [R, ...] each."""


class Blocks:
    """All rows in their workers' blocks, in place of the simulators of a stack.

    `take` brings the next tick; `recv` then answers with it.

    Args:
        start: Starts the worker of some rows, whose object is a `Collector`.
        blocks: The rows of each worker.
        seed: The run's.
        staleness: Most ticks of the run between sending parameters and learning from a tick that
            was made with them; None: workers act with the newest, all at a time.
    """

    def __init__(
        self,
        start: Callable[[IntArray], Worker],
        blocks: Sequence[IntArray],
        *,
        seed: int,
        staleness: int | None,
    ) -> None:
        self.num_envs = sum(map(len, blocks))
        self.statistics = FrozenStatistics()
        """Statistics that workers filter by."""
        self.decisions: list[State] = []
        """Decisions that the rows made last, by level, top first; arrays [N, ...]."""
        self._start_worker = start
        self._seed = seed
        self._staleness = staleness
        self._stream = self._ticks = 0
        self._answer: EnvResponse | None = None
        self._waited = self._since = 0.0
        self._ages: list[int] = []
        self._sent = b""
        """The last message to workers."""
        self.blocks: list[Block] = []
        try:
            for number, rows in enumerate(blocks):
                self.blocks.append(Block(number=number, rows=rows, worker=start(rows)))
            started = [block.worker.submit(Collector.environment_spaces) for block in self.blocks]
            self.spaces: EnvironmentSpaces = [each.result() for each in started][-1]
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerLost):
                raise RunError(f"a worker ended before it could begin: {error}") from error
            raise

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        assert seed is not None, "training rows are seeded"
        seeds = [seed + row for row in range(self.num_envs)] if isinstance(seed, int) else seed
        self._settle()
        if self._ticks:
            self._stream += 1  # random numbers continue; they are not drawn again
        given = [([seeds[row] for row in each.rows], self._stream) for each in self.blocks]
        starts = self._call_all(Collector.reset, given)
        for block, start in zip(self.blocks, starts, strict=True):
            block.made.clear()
            block.shown = start.first_observation
        return replace(joined_blocks(starts), rows=np.arange(self.num_envs))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Does nothing: the workers have sent it to their simulators already."""

    def recv(self) -> EnvResponse:
        """Answer of the tick that `take` has brought."""
        assert self._answer is not None
        return self._answer

    def take(self, ticks: int, message: Callable[[], bytes]) -> BoolArray:
        """Bring the next tick; the rows it is of, [N].

        Args:
            ticks: Number to request from workers that have nothing to do.
            message: Makes the message with the parameters that they act with.
        """
        if self._staleness is None:
            idle = [block for block in self.blocks if not block.made]
            ahead = [len(block.made) for block in self.blocks if block.made]
            if idle and ahead and self._sent:  # a worker was lost: it catches up with the others
                self._request_ticks(idle, min(ahead), self._sent)
            elif idle:
                self._request_ticks(idle, min([ticks, *ahead]), message())
            self._await(idle)
        else:
            idle = [
                block for block in self.blocks if block.request is None and len(block.made) <= ticks
            ]
            if idle:
                self._request_ticks(idle, ticks, message())
            self._await_some()
        ready = [block for block in self.blocks if block.made]
        answers = [self._taken(block, block.made.popleft()) for block in ready]
        self._answer = joined_blocks(answers)
        self._ticks += 1
        among = np.zeros(self.num_envs, np.bool_)
        among[self._answer.rows] = True
        return among

    def timed_calls(self) -> list[TimedCall]:
        """The call whose time a profile shows: waiting for workers."""
        return [TimedCall(self, "take", "collect")]

    def metrics(self) -> dict[str, float]:
        """Age of decisions, and the share of time that learning waited for workers."""
        now = time.perf_counter()
        seconds = max(now - self._since, 1e-9)
        ages = self._ages
        found = {"collection/waiting_share": min(self._waited / seconds, 1.0)}
        if ages and self._staleness is not None:
            found["collection/staleness_mean"] = float(np.mean(ages))
            found["collection/staleness_max"] = float(max(ages))
        self._waited = 0.0
        self._since = now
        self._ages = []
        return found

    def state_dict(self) -> State:
        """Every worker's stack, and the ticks that the run has not taken yet."""
        self._settle()
        return {
            "workers": self._call_all(Collector.state, [()] * len(self.blocks)),
            "blocks": [
                {
                    "made": [_tick_state(tick) for tick in block.made],
                    "replaced": block.replaced,
                    "shown": copy.deepcopy(block.shown),
                }
                for block in self.blocks
            ],
            "decisions": copy.deepcopy(self.decisions),
            "held": copy.deepcopy(self.statistics.state_dict()),
            "stream": self._stream,
            "ticks": self._ticks,
        }

    def load_state_dict(self, state: State) -> None:
        self._settle()
        self._stream = state["stream"]
        self._ticks = state["ticks"]
        self.decisions = copy.deepcopy(state["decisions"])
        self.statistics.load_state_dict(state["held"])
        self._sent = b""
        self._call_all(Collector.load, [(worker, self._stream) for worker in state["workers"]])
        for block, own in zip(self.blocks, state["blocks"], strict=True):
            block.made = deque(_tick_of_state(tick) for tick in own["made"])
            block.replaced = own["replaced"]
            block.shown = own["shown"]

    def close(self) -> None:
        """End every worker; harmless when repeated."""
        for block in self.blocks:
            block.worker.close()
        self.blocks = []

    def _request_ticks(self, blocks: Sequence[Block], ticks: int, message: bytes) -> None:
        self._sent = message
        for block in blocks:
            block.ticks = ticks
            block.requested_at = self._ticks
            block.request = block.worker.submit(Collector.collect, ticks, message)

    def _await_some(self) -> None:
        """Wait until a block has made a tick, and for those that would be too old later."""
        assert self._staleness is not None
        allowed = self._staleness
        busy = [each for each in self.blocks if each.request]
        # A block is late if its newest tick would be older than allowed once the run takes it.
        late = [
            each
            for each in busy
            if self._ticks - each.requested_at + len(each.made) + each.ticks > allowed
        ]
        self._await(late)
        busy = [each for each in busy if each.request is not None]
        if not any(block.made for block in self.blocks):
            began = time.perf_counter()
            wait([block.request for block in busy if block.request], return_when=FIRST_COMPLETED)
            self._waited += time.perf_counter() - began
        self._await([each for each in busy if each.request and each.request.done()])

    def _await(self, blocks: Sequence[Block]) -> None:
        """Collect the replies of these blocks; replaces workers that are gone."""
        began = time.perf_counter()
        for block in blocks:
            assert block.request is not None
            try:
                made = block.request.result()
            except WorkerLost as lost:
                block.made.append(self._replaced(block, lost))
            else:
                block.losses = 0
                block.made.extend(replace(tick, requested_at=block.requested_at) for tick in made)
            block.request = None
        self._waited += time.perf_counter() - began

    def _taken(self, block: Block, tick: BlockTick) -> EnvResponse:
        """A tick's answer, its decisions noted."""
        for number, made in enumerate(tick.decisions):
            if number == len(self.decisions):
                self.decisions.append({})
            put_rows(self.decisions[number], made, tick.answer.rows, self.num_envs)
        self._ages.append(self._ticks - tick.requested_at)
        block.shown = tick.answer.first_observation
        return tick.answer

    def _replaced(self, block: Block, lost: WorkerLost) -> BlockTick:
        """Replace a worker that is gone: its rows begin new episodes after a tick without a step.

        Raises:
            RunError: It was lost again and again, or before it had ever worked.
        """
        block.losses += 1
        block.replaced += 1
        rows = f"rows {block.rows[0]} to {block.rows[-1]}"
        message = f"worker {block.number} ({rows}) was lost: {lost}"
        if not self._ticks or block.losses > MOST_LOSSES:
            often = f", {block.losses} times before it had made a step" if self._ticks else ""
            raise RunError(f"{message}{often}; see the system's log, and how much memory is free")
        warn(f"{message}; another replaces it, and its {len(block.rows)} episodes are cut off")
        # The rows' open decisions are answered by a step of no reward that cuts their episodes off
        # (truncated, lost); `first_observation` already is that of the new worker's episodes.
        last = block.shown
        start = self._restart(block)
        count = len(block.rows)
        answer = EnvResponse.step(
            block.rows,
            observation=last,
            first_observation=start.first_observation,
            reward=np.zeros(count, np.float64),
            terminated=np.zeros(count, np.bool_),
            truncated=np.ones(count, np.bool_),
            info={},
            faults=tuple(Fault(cause="died", row=int(row), message=message) for row in block.rows),
            lost=np.ones(count, np.bool_),
        )
        return BlockTick(answer=answer, decisions=[], requested_at=block.requested_at)

    def _restart(self, block: Block) -> EnvResponse:
        """Start a worker again; the first answer of new episodes, from new random streams."""
        block.worker.close()
        block.worker = self._start_worker(block.rows)
        place = f"worker {block.number} replaced {block.replaced}"
        seeds = [integer_seed(self._seed, "collection", place, str(row)) for row in block.rows]
        stream = (block.replaced << 32) + self._stream
        try:
            return block.worker.submit(Collector.reset, seeds, stream).result()
        except WorkerLost as again:
            raise RunError(f"worker {block.number} was lost, and so was its successor") from again

    def _settle(self) -> None:
        """Wait for all requests."""
        self._await([block for block in self.blocks if block.request is not None])

    def _call_all(
        self, method: Method[Result], arguments: Sequence[tuple[object, ...]]
    ) -> list[Result]:
        """Results of a method of every worker; a lost one is replaced, and called again."""
        pairs = list(zip(self.blocks, arguments, strict=True))
        futures = [block.worker.submit(method, *given) for block, given in pairs]
        results = []
        for future, (block, given) in zip(futures, pairs, strict=True):
            try:
                results.append(future.result())
            except WorkerLost as lost:
                block.made.append(self._replaced(block, lost))
                results.append(block.worker.submit(method, *given).result())
        return results


def _tick_state(tick: BlockTick) -> State:
    answer = dict(vars(tick.answer))
    answer["faults"] = [vars(fault) for fault in tick.answer.faults]
    return {"answer": answer, "decisions": tick.decisions, "asked_at": tick.requested_at}


def _tick_of_state(state: State) -> BlockTick:
    answer = dict(state["answer"])
    answer["faults"] = tuple(Fault(**fault) for fault in answer["faults"])
    return BlockTick(
        answer=EnvResponse(**answer),
        decisions=state["decisions"],
        requested_at=state["asked_at"],
    )


class BlockOfRows(Saved):
    """Some rows of N, in an environment that has no others.

    Args:
        environment: Of as many rows as there are in `rows`.
        rows: Their numbers among the N.
        num_envs: N.
    """

    SAVED = (SavedAttribute("_environment", inline=True),)

    def __init__(self, environment: Environment, rows: IntArray, *, num_envs: int) -> None:
        self._environment = environment
        self._rows = rows
        self.num_envs = num_envs
        self.spaces = environment.spaces
        self.start: EnvResponse
        """Answer of the last reset, of the block's own rows."""

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start the block's rows; the others are zeros."""
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


def joined_blocks(parts: Sequence[EnvResponse]) -> EnvResponse:
    """Answers of blocks of rows as one, with all faults."""
    return joined(parts, faults=tuple(fault for part in parts for fault in part.faults))
