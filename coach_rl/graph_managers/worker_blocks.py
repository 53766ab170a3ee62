"""The workers of a run, as an environment: each collects the experience of a block of rows."""

import copy
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from coach_rl.core.errors import CheckpointError, CoachWarning, RunError
from coach_rl.core.main_guard import script_advice
from coach_rl.core.profiling import TimedCall
from coach_rl.core.records import (
    Action,
    BoolArray,
    Directive,
    EnvResponse,
    Fault,
    IntArray,
    Observation,
)
from coach_rl.core.runtime import Runtime
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.graph_managers.block_worker import BlockTick, Setup, joined_answers, put_rows
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.worker_places import (
    Handle,
    Reply,
    WorkerLost,
    WorkerTraceback,
    handles,
    packed,
)

_LOSSES = 3
"""Times a worker may be lost before it has done anything."""


@dataclass(kw_only=True)
class Block:
    """A worker, and what it has sent and nobody has taken yet."""

    number: int
    rows: IntArray
    handle: Handle
    made: deque[BlockTick] = field(default_factory=deque)
    """Ticks to be taken."""
    request: "Future[Reply] | None" = None
    """The request it is at work on."""
    ticks: int = 0
    """Ticks asked for with that request."""
    asked_at: int = 0
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
        parameters: The experiment, collection included.
        runtime: The run's.
    """

    def __init__(self, parameters: GraphParameters, runtime: Runtime) -> None:
        collection = parameters.collection
        self.num_envs = parameters.num_envs
        self.held: dict[str, State] = {}
        """Statistics that workers filter by, by level."""
        self.decisions: list[State] = []
        """Decisions that the rows made last, by level, top first; arrays [N, ...]."""
        self._collection, self._runtime = collection, runtime.recorded()
        self._parameters = parameters
        self._stream = self._ticks = 0
        self._answer: EnvResponse | None = None
        self._waited = self._since = 0.0
        self._ages: list[int] = []
        self._sent = b""
        """The last message to workers."""
        self._make = handles(collection.on, collection.workers)
        self.blocks: list[Block] = []
        try:
            shares = np.array_split(np.arange(parameters.num_envs), collection.workers)
            for number, rows in enumerate(shares):
                self.blocks.append(Block(number=number, rows=rows, handle=self._make()))
            begun = [self._begin(block) for block in self.blocks]
            self.spaces: EnvironmentSpaces = [self._reply(each)[1] for each in begun][-1]
        except BaseException as error:
            self.close()
            if isinstance(error, WorkerLost):
                advice = script_advice()
                raise RunError(f"a worker ended before it could begin: {error}{advice}") from (
                    None if advice else error
                )
            raise

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew; see `core.interfaces.Environment.reset`."""
        assert seed is not None, "training rows are seeded"
        seeds = [seed + row for row in range(self.num_envs)] if isinstance(seed, int) else seed
        self._settle()
        if self._ticks:
            self._stream += 1  # random numbers go on; they are not drawn again
        starts = self._ask_all(
            "reset", [([seeds[row] for row in each.rows], self._stream) for each in self.blocks]
        )
        for block, start in zip(self.blocks, starts, strict=True):
            block.made.clear()
            block.shown = start.first_observation
        return replace(joined_answers(starts), rows=np.arange(self.num_envs))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Nothing: the workers have sent it to their simulators already."""

    def recv(self) -> EnvResponse:
        """Answer of the tick that `take` has brought."""
        assert self._answer is not None
        return self._answer

    def take(self, ticks: int, message: Callable[[], bytes]) -> BoolArray:
        """Bring the next tick; the rows it is of, [N].

        Args:
            ticks: To ask workers for, where some have nothing to do.
            message: Makes the message with the parameters that they act with.
        """
        if self._collection.mode == "synchronous":
            idle = [block for block in self.blocks if not block.made]
            ahead = [len(block.made) for block in self.blocks if block.made]
            if idle and ahead and self._sent:  # a worker was lost: it catches up with the others
                self._ask_to_collect(idle, min(ahead), self._sent)
            elif idle:
                self._ask_to_collect(idle, min([ticks, *ahead]), message())
            self._await(idle)
        else:
            idle = [
                block for block in self.blocks if block.request is None and len(block.made) <= ticks
            ]
            if idle:
                self._ask_to_collect(idle, ticks, message())
            self._await_some()
        ready = [block for block in self.blocks if block.made]
        answers = [self._taken(block, block.made.popleft()) for block in ready]
        self._answer = joined_answers(answers)
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
        seconds, ages = max(now - self._since, 1e-9), self._ages
        found = {"collection/waiting_share": min(self._waited / seconds, 1.0)}
        if ages and self._collection.mode == "asynchronous":
            found["collection/staleness_mean"] = float(np.mean(ages))
            found["collection/staleness_max"] = float(max(ages))
        self._waited, self._since, self._ages = 0.0, now, []
        return found

    def state_dict(self) -> State:
        """Every worker's stack, and what the workers have sent and is not taken yet."""
        self._settle()
        return {
            "workers": self._ask_all("state", [()] * len(self.blocks)),
            "blocks": [
                {
                    "made": [_tick_state(tick) for tick in block.made],
                    "replaced": block.replaced,
                    "shown": copy.deepcopy(block.shown),
                }
                for block in self.blocks
            ],
            "decisions": copy.deepcopy(self.decisions),
            "held": copy.deepcopy(self.held),
            "stream": self._stream,
            "ticks": self._ticks,
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state; CheckpointError where there were other workers, or none."""
        saved = len(state["workers"]) if "workers" in state else 0
        if saved != len(self.blocks):
            raise CheckpointError(f"they are those of {saved} workers, not {len(self.blocks)}")
        self._settle()
        self._stream, self._ticks = state["stream"], state["ticks"]
        self.decisions, self.held = copy.deepcopy(state["decisions"]), state["held"]
        self._sent = b""
        self._ask_all("load", [(worker, self._stream) for worker in state["workers"]])
        for block, own in zip(self.blocks, state["blocks"], strict=True):
            block.made = deque(_tick_of_state(tick) for tick in own["made"])
            block.replaced, block.shown = own["replaced"], own["shown"]

    def close(self) -> None:
        """End every worker; harmless when repeated."""
        for block in self.blocks:
            block.handle.close()
        self.blocks = []

    def _begin(self, block: Block) -> "Future[Reply]":
        setup = Setup(parameters=self._parameters, runtime=self._runtime, rows=block.rows)
        return block.handle.ask("begin", packed(setup))

    def _ask_to_collect(self, blocks: Sequence[Block], ticks: int, message: bytes) -> None:
        self._sent = message
        for block in blocks:
            block.ticks, block.asked_at = ticks, self._ticks
            block.request = block.handle.ask("collect", ticks, message)

    def _await_some(self) -> None:
        """Wait until a block has made a tick, and for those that would be too old later."""
        allowed, busy = self._collection.staleness, [each for each in self.blocks if each.request]
        late = [
            each
            for each in busy
            if self._ticks - each.asked_at + len(each.made) + each.ticks > allowed
        ]
        self._await(late)
        busy = [each for each in busy if each.request is not None]
        if not any(block.made for block in self.blocks):
            began = time.perf_counter()
            wait([block.request for block in busy if block.request], return_when=FIRST_COMPLETED)
            self._waited += time.perf_counter() - began
        self._await([each for each in busy if each.request and each.request.done()])

    def _await(self, blocks: Sequence[Block]) -> None:
        """Take in the replies of these blocks; replaces workers that are gone."""
        began = time.perf_counter()
        for block in blocks:
            assert block.request is not None
            try:
                made = self._reply(block.request)
            except WorkerLost as lost:
                block.made.append(self._replaced(block, lost))
            else:
                block.losses = 0
                block.made.extend(replace(tick, asked_at=block.asked_at) for tick in made)
            block.request = None
        self._waited += time.perf_counter() - began

    def _taken(self, block: Block, tick: BlockTick) -> EnvResponse:
        """A tick's answer, its decisions noted."""
        for number, made in enumerate(tick.decisions):
            if number == len(self.decisions):
                self.decisions.append({})
            put_rows(self.decisions[number], made, tick.answer.rows, self.num_envs)
        self._ages.append(self._ticks - tick.asked_at)
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
        if not self._ticks or block.losses > _LOSSES:
            often = f" {block.losses} times before it had made a step" if self._ticks else ""
            raise RunError(f"{message}{often}; look for its end in the system's log, or for memory")
        warnings.warn(
            f"{message}; another takes its place, and its {len(block.rows)} episodes are cut off",
            CoachWarning,
            stacklevel=2,
        )
        last = block.shown
        start = self._begin_anew(block)
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
        return BlockTick(answer=answer, decisions=[], asked_at=block.asked_at)

    def _begin_anew(self, block: Block) -> EnvResponse:
        """Start a worker again, with new random streams and new episodes."""
        block.handle.close()
        block.handle = self._make()
        place = f"worker {block.number} replaced {block.replaced}"
        seeds = [
            integer_seed(self._runtime.seed, "collection", place, str(row)) for row in block.rows
        ]
        stream = (block.replaced << 32) + self._stream
        try:
            self._reply(self._begin(block))
            start: EnvResponse = self._reply(block.handle.ask("reset", seeds, stream))
        except WorkerLost as again:
            raise RunError(f"worker {block.number} was lost, and so was its successor") from again
        return start

    def _settle(self) -> None:
        """Wait for what the workers are at."""
        self._await([block for block in self.blocks if block.request is not None])

    def _ask_all(self, verb: str, arguments: Sequence[tuple[object, ...]]) -> list[Any]:
        """Ask every worker at once; one that is gone is replaced, and asked again."""
        pairs = list(zip(self.blocks, arguments, strict=True))
        asked = [block.handle.ask(verb, *given) for block, given in pairs]
        replies = []
        for future, (block, given) in zip(asked, pairs, strict=True):
            try:
                replies.append(self._reply(future))
            except WorkerLost as lost:
                block.made.append(self._replaced(block, lost))
                replies.append(self._reply(block.handle.ask(verb, *given)))
        return replies

    def _reply(self, future: "Future[Reply]") -> Any:
        """A reply's result; its errors are raised and its warnings said here."""
        reply = future.result()
        for text in reply.warnings:
            warnings.warn(text, CoachWarning, stacklevel=2)
        if reply.failure is not None:
            kind, text, trace = reply.failure
            raise kind(text) from WorkerTraceback(trace)
        return reply.result


def _tick_state(tick: BlockTick) -> State:
    answer = dict(vars(tick.answer))
    answer["faults"] = [vars(fault) for fault in tick.answer.faults]
    return {"answer": answer, "decisions": tick.decisions, "asked_at": tick.asked_at}


def _tick_of_state(state: State) -> BlockTick:
    answer = dict(state["answer"])
    answer["faults"] = tuple(Fault(**fault) for fault in answer["faults"])
    made = {name: state[name] for name in ("decisions", "asked_at")}
    return BlockTick(answer=EnvResponse(**answer), **made)
