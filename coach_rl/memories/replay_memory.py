"""Replay memory: the newest transitions of every row, sampled any number of times.

`ReplayLayout` lists the columns kept of each transition, and computes their size, which is checked
before anything is allocated. `RowHistory` reads transitions by the steps of a row. Built by
`replay_parameters` from a `RingStore`, which stores, and a `SamplerChain`, which draws.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np
import psutil  # type: ignore[import-untyped]  # has no types
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.agents import LevelPlace
from coach_rl.core.equal_spaces import loss_of_cast
from coach_rl.core.errors import ConfigurationError, RunError, SpaceError
from coach_rl.core.records import (
    HIDDEN_STATE,
    Array,
    BoolArray,
    FloatArray,
    IntArray,
    Observation,
    Transition,
)
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.shown_text import readable
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    BELOW_BITS,
    END_BITS,
    FOLLOWS,
    LOW_BEGIN,
    LOW_END,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    ROWS,
    columns_of,
    extra,
    shown_as,
    under,
)
from coach_rl.memories.parts import DrawParameters, MemoryPart, Stored
from coach_rl.memories.ring_store import LEDGER, RingStore
from coach_rl.memories.samplers import PositionParameters, SamplerChain
from coach_rl.memories.stacked_column import StackedColumnKind
from coach_rl.memories.tables import Field, kept_dtype
from coach_rl.memories.transition_batch import TransitionBatch, as_batch

CGROUP = Path("/sys/fs/cgroup")

RECORDED = frozenset(path.removeprefix("/") for path in (LOW_BEGIN, LOW_END, END_BITS, BELOW_BITS))
"""Extras that a memory makes itself of each transition, if they are wanted."""
MakeExtras = Callable[[Transition], Mapping[str, Array]]
MakeColumns = Callable[[Transition, Mapping[str, Array]], Mapping[str, Array]]


@dataclass(frozen=True)
class MemorySize:
    """Bytes a memory takes when it is full."""

    host: int
    """Bytes in the machine's memory."""
    device: int
    """Bytes on the learner's device, if its columns lie there."""


def check_size(size: MemorySize, *, capacity: int, device: torch.device) -> None:
    """Raise `ConfigurationError` unless so much memory is free.

    Args:
        size: What is needed.
        capacity: Transitions, for the message.
        device: The learner's.
    """
    where = "this machine"
    needed = size.host
    free = free_host_bytes()
    if needed <= free and size.device:
        where = str(device)
        needed = size.device
        free = free_device_bytes(device)
    if needed > free:
        fitting = int(capacity * free / needed)
        raise ConfigurationError(
            f"a replay memory of {capacity:,} transitions takes {readable(needed)} on {where}, "
            f"where {readable(free)} are free; lower `capacity` (about {fitting:,} would fit), or "
            "keep stacked images once per frame with `frame_stack`"
        )


def free_host_bytes() -> int:
    """Return the bytes this process can still take, within the limit of its control group."""
    free = int(psutil.virtual_memory().available)
    try:
        limit = (CGROUP / "memory.max").read_text().strip()
        used = int((CGROUP / "memory.current").read_text())
        files = re.search(r"^inactive_file (\d+)$", (CGROUP / "memory.stat").read_text(), re.M)
    except (OSError, ValueError):  # no such control group: the machine is the limit
        return free
    if limit == "max":
        return free
    cached = int(files[1]) if files else 0  # cached files are evicted when memory is needed
    return min(free, max(0, int(limit) - used + cached))


def free_device_bytes(device: torch.device) -> int:
    """Return the free bytes of a device."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return free_host_bytes()


@dataclass(frozen=True, kw_only=True)
class ReplayLayout:
    """The columns of a replay memory."""

    num_rows: int
    """N."""
    row_capacity: int
    """Transitions kept per row."""
    keeps: bool
    """False for an agent that only acts: nothing is kept, no room is taken."""
    is_on_host: bool
    """True if the big columns are in the machine's memory."""
    is_on_device: bool
    """True if they are on the learner's device."""
    observation_space: spaces.Dict
    """The agent's observation space."""
    action_space: Space
    """The agent's action space."""
    extras: tuple[str, ...]
    """Columns of the extras kept with the agent's actions."""
    frame_stack: Mapping[str, StackedColumnKind]
    """Observation keys that are kept in a way of their own, which keeps each frame once."""
    keeps_follows: bool
    """True if each transition's `follows` is kept, for n-step returns."""
    draws: DrawParameters
    """The kind of samples that are drawn."""
    parts: tuple[MemoryPart, ...]
    """Parts that keep columns of their own, the relabelling of goals first."""
    positions: PositionParameters | None
    """Draws other than uniform ones; None: draws are uniform."""

    @cached_property
    def observations(self) -> dict[str, Field]:
        """The columns of every observation key."""
        seen = self.observation_space.spaces.items()
        return {key: _field(part) for key, part in seen if key != HIDDEN_STATE}

    @cached_property
    def actions(self) -> dict[str, Field]:
        """The columns of the action, by path."""
        if isinstance(self.action_space, spaces.Dict):
            parts = self.action_space.spaces.items()
            return {f"{ACTION_PARTS}{key}": _field(part) for key, part in parts}
        return {ACTIONS: _field(self.action_space)}

    @property
    def stacks(self) -> dict[str, tuple[StackedColumnKind, Field]]:
        """Ways and columns of the observations whose frames are kept once each, by key."""
        return {key: (kind, self.observations[key]) for key, kind in self.frame_stack.items()}

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The big columns except extras and frames, by path."""
        fields = dict(self.actions)
        for key, field in self.observations.items():
            if key not in self.frame_stack:
                fields[f"{OBSERVATIONS}{key}"] = fields[f"{NEXT_OBSERVATIONS}{key}"] = field
        for key in self.draws.states:
            fields[extra(key)] = _field(self.observation_space[key])
        return fields

    @cached_property
    def ledger(self) -> dict[str, Field]:
        """The small columns beyond those that every store has, by path."""
        fields: dict[str, Field] = {}
        if self.keeps_follows:
            fields[FOLLOWS] = Field((), np.bool_)
        for part in self.parts:
            fields |= part.ledger
        return fields

    @property
    def gathered(self) -> tuple[list[str], list[str]]:
        """The columns of a batch from the positions drawn, and from where n-step returns end."""
        here = [f"{OBSERVATIONS}{key}" for key in self.observations]
        ends = [f"{NEXT_OBSERVATIONS}{key}" for key in self.observations]
        return [*here, *self.actions, *map(extra, self.extras)], ends

    @property
    def size(self) -> MemorySize:
        """The memory's size when it is full."""
        if not self.keeps:
            return MemorySize(host=0, device=0)
        entries = self.num_rows * self.row_capacity
        big = entries * sum(field.bytes for field in self.fields.values())
        for kind, field in self.stacks.values():
            big += self.num_rows * kind.bytes_per_row(field, self.row_capacity)
        # bytes of the indices per transition
        episodes = 16
        frames = 16 * len(self.stacks)
        small = sum(field.bytes for field in (LEDGER | self.ledger).values()) + episodes + frames
        small += 8 * len(self.extras)  # whose shapes are known from the first transition on
        host = entries * small
        if self.positions is not None:
            host += self.positions.host_bytes(entries)
        return MemorySize(host=host + self.is_on_host * big, device=self.is_on_device * big)

    def columns(self, transition: Transition) -> dict[str, Array]:
        """Everything that is kept of a transition, [R, ...] each."""
        columns = columns_of(transition)
        for more in self._further_columns:
            columns |= more(transition, columns)
        return columns

    @cached_property
    def _further_columns(self) -> tuple[MakeColumns, ...]:
        """Functions from transitions and their columns so far to more columns, [R, ...] each."""
        found: list[MakeColumns] = []
        if self.extras or self.draws.states:
            found.append(self._extras_of)
        if self.parts:
            found.append(self._kept_of)
        if self.keeps_follows:
            found.append(lambda transition, _: {FOLLOWS: transition.follows_or_all})
        return tuple(found)

    def _kept_of(self, transition: Transition, columns: Mapping[str, Array]) -> Mapping[str, Array]:
        return self.kept(
            Stored(
                transition.observation,
                transition.next_observation,
                columns,
                transition.below,
                transition.tested,
            )
        )

    def _extras_of(self, transition: Transition, _: Mapping[str, Array]) -> dict[str, Array]:
        names = (*self.extras, *self.draws.states)
        return {extra(name): transition.extras[name] for name in names}

    def kept(self, stored: Stored) -> dict[str, Array]:
        """Return the columns that parts keep of transitions, [R, ...] each."""
        kept: dict[str, Array] = {}
        for part in self.parts:
            kept |= part.kept(stored)
        return kept


def _field(space: Space) -> Field:
    if space.shape is None or space.dtype is None:
        raise SpaceError(
            f"a replay memory cannot keep values of {space}; allowed: Box, Discrete, "
            "MultiDiscrete, MultiBinary"
        )
    return Field(tuple(space.shape), kept_dtype(space.dtype))


class RowHistory:
    """Reads a store by the steps of its rows instead of by positions.

    Args:
        store: Where the transitions are kept.
    """

    def __init__(self, store: RingStore) -> None:
        self._store = store

    def newest_episodes(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The steps [begin, end) of each row's newest (sub-)episode, [R] each."""
        ends = self._store.counts[rows]
        begins, _ = self._store.episodes_of(self._store.positions_of(rows, ends - 1))
        return begins, ends

    def has_kept(self, rows: IntArray, steps: IntArray) -> BoolArray:
        """Return whether the steps of rows have not been overwritten, [...]."""
        kept: BoolArray = steps >= self._store.counts[rows] - self._store.row_capacity
        return kept

    def observations(self, rows: IntArray, steps: IntArray, keys: Iterable[str]) -> Observation:
        """Return the observations of rows before each of these steps, [..., ...] each."""
        return {key: self._read(f"{OBSERVATIONS}{key}", rows, steps) for key in keys}

    def next_observation(self, rows: IntArray, steps: IntArray, key: str) -> Array:
        """Return the observations of rows under one key after each of these steps, [..., ...]."""
        return self._read(f"{NEXT_OBSERVATIONS}{key}", rows, steps)

    def actions(self, rows: IntArray, steps: IntArray) -> FloatArray:
        """Return the actions of rows in each of these steps, [..., A]."""
        return self._read(ACTIONS, rows, steps)

    def _read(self, path: str, rows: IntArray, steps: IntArray) -> Array:
        return self._store.read(path, self._store.positions_of(rows, steps))


class ReplayMemory:
    """Stores the newest transitions of each row; samples batches from all of them.

    memory.add(transition)
    if len(memory) >= learning_starts:
        batch = memory.sample(256)
        errors = learn(batch)                                # [B], of whatever sign
        memory.note_errors(batch.position, errors)

    Args:
        layout: Its columns.
        store: Keeps them.
        sampler: Draws batches from the store.
        rng: The stream that the sampler draws from.
        recorded: Makes extras of transitions, see `recorded_extras`; None: there are none.
    """

    def __init__(
        self,
        layout: ReplayLayout,
        *,
        store: RingStore,
        sampler: SamplerChain,
        rng: np.random.Generator,
        recorded: MakeExtras | None = None,
    ) -> None:
        self.layout = layout
        self.store = store
        self.sampler = sampler
        self._rng = rng
        self._recorded = recorded
        self._awaits_first = True
        self._drawn = 0
        """Number of samples that were drawn for the last batch."""
        self._noting_additions = sampler.overriding("added")
        self._noting_errors = sampler.overriding("note_errors")
        self._showing = sampler.overriding("as_shown")
        self.is_prioritised = bool(self._noting_errors)
        """True if `note_errors` changes anything: learners need not compute errors otherwise."""

    def __len__(self) -> int:
        """Transitions kept."""
        return len(self.store)

    @property
    def capacity(self) -> int:
        """Transitions it has room for: the requested capacity, rounded down to equal rows."""
        return self.layout.num_rows * self.layout.row_capacity

    @property
    def history(self) -> RowHistory:
        """The kept transitions, by rows and their steps."""
        return RowHistory(self.store)

    def rows_of(self, positions: Tensor) -> IntArray:
        """The rows of sampled transitions, [B]."""
        return self.store.rows_of(positions.cpu().numpy())

    def add(self, transition: Transition) -> None:
        """Store R transitions, replacing the oldest of rows that are full."""
        if not self.layout.keeps:
            raise RunError(
                "a replay memory with storage='none' keeps nothing; use cpu, pinned or device to "
                "learn from it"
            )
        if self._recorded is not None:
            extras = {**self._recorded(transition), **transition.extras}
            transition = replace(transition, extras=extras)
        values = self.layout.columns(transition)
        if self._awaits_first:
            self._allocate_first(values)
        positions = self.store.add(transition.rows, values)
        for unit in self._noting_additions:
            unit.added(positions, int(transition.duration.sum()))

    def truncate(self, rows: IntArray) -> None:
        """Truncate the open episodes of these rows at their newest transitions."""
        self.store.truncate(rows)

    def sample(self, size: int) -> TransitionBatch:
        """A batch of B = `size` transitions, drawn with replacement from those kept."""
        self._drawn = self.layout.draws.count(size)
        return as_batch(self.sampler(self._drawn))

    def as_shown(self, observation: Observation) -> Observation:
        """Observations as batches contain them: a share may have relabelled goals.

        For statistics of what a learner sees. Needs at least one transition; where something is
        changed, this draws from the sampling stream.

        Args:
            observation: Of transitions that were added, [R, ...] each; not written to.
        """
        for unit in self._showing:
            observation = unit.as_shown(observation)
        return observation

    def note_errors(self, positions: Tensor, errors: Tensor) -> None:
        """Record the learner's errors, [B] each; on a CUDA device this waits for them."""
        if not self.is_prioritised:
            return
        drawn = positions.detach().cpu().numpy()
        sizes = errors.detach().cpu().numpy()
        drawn, sizes = self.layout.draws.priorities(drawn, sizes, self._drawn)
        for unit in self._noting_errors:
            unit.note_errors(drawn, sizes)

    def metrics(self) -> dict[str, float]:
        """Return the metrics since the last call, by name."""
        return {"memory/transitions": float(len(self)), **self.sampler.metrics()}

    def clear(self) -> None:
        """Remove all transitions."""
        self.store.clear()
        for unit in self.sampler.units:
            unit.clear()

    def fill(self, episodes: Iterable[Mapping[str, Array]], owner: str) -> None:
        """Add whole episodes, each to the row that has fewest transitions.

        Args:
            episodes: Their columns, [T, ...] each.
            owner: What they are from, for messages.

        Raises:
            ConfigurationError: They don't fit in.
        """
        layout = self.layout
        capacity = self.store.row_capacity
        rows = np.minimum(self.store.counts, capacity)
        for episode in episodes:
            row = int(rows.argmin())
            time = len(episode[REWARDS])
            rows[row] += time
            if rows[row] > capacity:
                raise ConfigurationError(
                    f"{owner} does not fit into the memory: each of its {len(rows)} rows holds "
                    f"{capacity:,} transitions and whole episodes go to one row; raise `capacity` "
                    f"({self.capacity:,})"
                )
            values = dict(episode)
            if layout.parts:
                before = under(OBSERVATIONS, episode)
                after = under(NEXT_OBSERVATIONS, episode)
                values |= layout.kept(Stored(before, after, episode, None, None))
            if layout.keeps_follows:
                values[FOLLOWS] = np.arange(time) > 0
            self._check_casts(values, owner)
            positions = self.store.extend(row, values)
            for unit in self._noting_additions:
                unit.added(positions, 0)

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """Everything kept by flat path, [N, T, ...] each, oldest first, zeros behind a row's end.

        Args:
            agent: Under whose name actions and extras are shown.

        Returns:
            The paths of `memories.batches.shown_as`, and `/mask` [N, T].
        """
        sizes = self.store.sizes
        kept = np.arange(int(sizes.max(initial=0))) < sizes[:, None]  # [N, T]
        rows, time = np.nonzero(kept)
        positions = self.store.positions_of(rows, (self.store.counts - sizes)[rows] + time)
        paths = [*self.store.fields, *LEDGER]
        columns = {path: self.store.read(path, positions) for path in paths}
        shown: dict[str, Array] = {}
        for path, values in {**columns, ROWS: rows}.items():
            padded = np.zeros((*kept.shape, *values.shape[1:]), values.dtype)
            padded[kept] = values
            shown[shown_as(path, agent)] = padded
        return {**shown, MASK: kept}

    def state_dict(self) -> State:
        return {
            "store": self.store.state_dict(),
            "sampler": self.sampler.state_dict(),
            "generator": generator_state(self._rng),
        }

    def load_state_dict(self, state: State) -> None:
        """Load a saved memory; without storage, do nothing."""
        if not self.layout.keeps:
            return
        self.store.load_state_dict(state["store"])
        self.sampler.load_state_dict(state["sampler"])
        load_generator_state(self._rng, state["generator"])

    def _allocate_first(self, values: Mapping[str, Array]) -> None:
        """Allocate the extras' columns, and check the first transitions against the spaces."""
        for path in map(extra, self.layout.extras):
            if path not in self.store.fields:
                kept = values[path]
                field = Field(kept.shape[1:], kept_dtype(kept.dtype))
                self.store.table.allocate(path, field)
        for path, field in self.store.fields.items():
            shape = values[path].shape[1:] if path in values else None
            if shape != field.shape:
                raise RunError(
                    f"the first transition has {shape} under '{path}', the memory was built "
                    f"for {field.shape}; build it for the agent's filtered spaces"
                )
        self._check_casts(values, "the first transition")
        self._awaits_first = False

    def _check_casts(self, values: Mapping[str, Array], owner: str) -> None:
        """Raise `SpaceError` naming a number that a column would keep as another one."""
        for path, field in {**self.store.fields, REWARDS: LEDGER[REWARDS]}.items():
            loss = loss_of_cast(values[path], field.dtype)
            if loss is not None:
                raise SpaceError(
                    f"{owner} has {loss[1]} under '{path}', as the memory keeps it; correct the "
                    "space, or what makes the numbers"
                )


def recorded_extras(names: Iterable[str], place: LevelPlace) -> MakeExtras:
    """A function that makes those of the named extras that are `RECORDED`.

    Args:
        names: Extras that a memory keeps.
        place: The place of its agent.

    Raises:
        ConfigurationError: The steps of a level below are wanted, which has no replay memory.
    """
    wanted = RECORDED & set(names)
    begin, end = LOW_BEGIN.removeprefix("/"), LOW_END.removeprefix("/")
    history = None
    if wanted & {begin, end}:
        memory = getattr(place.agent_below, "memory", None)
        if not isinstance(memory, ReplayMemory):
            raise ConfigurationError(
                "a sampler unit reads the steps of the level below, and there is no agent with a "
                f"replay memory (got {type(place.agent_below).__name__}); leave the unit out"
            )
        history = memory.history

    def make(transition: Transition) -> Mapping[str, Array]:
        bits = {END_BITS: transition.end, BELOW_BITS: transition.below}
        made: dict[str, Array] = {
            path.removeprefix("/"): np.zeros(len(transition.rows), np.uint8)
            if each is None
            else each
            for path, each in bits.items()
        }
        if history is not None:
            # The level below closes a sub-episode before the one above gets its outcome, so these
            # are the steps of the decision that has just ended.
            made[begin], made[end] = history.newest_episodes(transition.rows)
        return {name: made[name] for name in wanted}

    return make
