"""A replay memory that begins with a data set, which its checkpoints name and do not hold.

The first transitions of each row are the data's, and those of the world follow. A saved state has
the world's alone: where it is loaded, the memory must be filled from the same data, before or
after.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
import torch
from annotated_types import Interval

from coach_rl.core.errors import ConfigurationError, RunError, require
from coach_rl.core.parameter_classes import parameter_class, with_values
from coach_rl.core.records import IntArray
from coach_rl.core.state import State
from coach_rl.memories.batches import POSITIONS, Columns
from coach_rl.memories.parts import MemoryPart, MemoryPartParameters, PartContext, ReplaySettings
from coach_rl.memories.replay_memory import (
    RECORDED,
    MakeExtras,
    ReplayLayout,
    ReplayMemory,
    recorded_extras,
)
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import SamplerChain, SamplerUnit, UnitContext

Share = Annotated[float, Interval(ge=0, le=1)]


@parameter_class
class FromDataParameters(MemoryPartParameters):
    """Marks a memory that the source of the run fills, and mixes its batches."""

    fills: ClassVar[bool] = True

    data_share: Share | None = None
    """Share of the data in each batch; None: all transitions are equally likely."""

    def check(self, memory: ReplaySettings) -> None:
        prioritised = getattr(memory, "prioritised", None)
        require(
            self.data_share is None or prioritised is None,
            f"data_share is {self.data_share}, and a prioritised memory draws by errors alone; "
            "leave data_share or memory.prioritised out",
        )

    def at(self, context: PartContext) -> "FromData":  # noqa: ARG002 - everywhere the same
        return FromData(self.data_share)


class FromData(MemoryPart):
    """The data's part of a memory."""

    def __init__(self, data_share: float | None) -> None:
        self.share = data_share
        """Share of the data in each batch; None: all transitions are equally likely."""

    def units(
        self,
        context: UnitContext,
        own: object,  # noqa: ARG002 - of all parts
    ) -> list[tuple[str, SamplerUnit]]:
        self.known: IntArray = np.zeros(context.store.num_rows, np.int64)
        """Transitions of each row that are the data's, its first, [N]."""
        return [("positions", DataShare(context.store, context.rng, self.share, self.known))]


class DataShare(SamplerUnit):
    """Draws a fixed share of each batch from the data, and the rest from the world.

    Until the world has as many transitions as a batch takes of it, all are drawn from the data.
    Half and half: Ball et al. 2023 (RLPD), section 4.1.

    Args:
        store: Where the transitions are kept.
        rng: The memory's stream.
        share: The data's, in [0, 1]; None: positions stay as they were drawn.
        known: Transitions of each row that are the data's, [N]; shared with the memory.
    """

    name = "data_share"
    inputs = (POSITIONS,)
    outputs = (POSITIONS,)

    def __init__(
        self, store: RingStore, rng: np.random.Generator, share: float | None, known: IntArray
    ) -> None:
        self._store = store
        self._rng = rng
        self._share = share
        self._known = known

    def __call__(self, batch: Columns, size: int) -> Columns:
        if self._share is None:
            return {POSITIONS: batch[POSITIONS]}
        store = self._store
        oldest = np.maximum(store.counts - store.row_capacity, 0)  # the first step kept, [N]
        turn = np.maximum(self._known, oldest)  # the world's first step, [N]
        of_data = round(size * self._share)
        of_world = size - of_data
        if int((store.counts - turn).sum()) < max(of_world, 1):
            return {POSITIONS: batch[POSITIONS]}
        if of_data and not int((turn - oldest).sum()):
            raise RunError(
                "the world's transitions have replaced all data in the memory, of which data_share "
                f"({self._share}) takes a part of each batch; fork the run from before with a "
                f"larger agent.memory.capacity (-cp) than {store.num_rows * store.row_capacity:,}"
            )
        drawn = [
            self._drawn(begin, end, count)
            for begin, end, count in ((oldest, turn, of_data), (turn, store.counts, of_world))
            if count
        ]
        return {POSITIONS: torch.from_numpy(np.concatenate(drawn))}

    def _drawn(self, begins: IntArray, ends: IntArray, count: int) -> IntArray:
        """Positions [count] of equally likely steps in [begin, end) of each row, [N] each."""
        passed = np.cumsum(ends - begins)  # [N]
        numbers = self._rng.integers(passed[-1], size=count)
        rows: IntArray = np.searchsorted(passed, numbers, side="right")
        steps = (ends[rows] - (passed[rows] - numbers)).astype(np.int64)
        return self._store.positions_of(rows, steps)


class FilledMemoryParameters(ReplayMemoryParameters):
    """A replay memory that begins with a data set."""

    def build(self, **surroundings: Any) -> "FilledMemory":
        """The memory, see `ReplayMemoryParameters.build`."""
        memory = super().build(**surroundings)
        assert isinstance(memory, FilledMemory)
        memory.another = partial(self._another, surroundings)
        return memory

    def _another(self, surroundings: Mapping[str, Any], capacity: int) -> "FilledMemory":
        """An empty memory of one row at the same place, of which all transitions are as likely."""
        others = [each for each in self.parts if not isinstance(each, FromDataParameters)]
        storage = self.storage if isinstance(self.storage, str) else "cpu"
        plain = with_values(
            self,
            capacity=capacity,
            parts=(*others, FromDataParameters()),
            prioritised=None,
            storage=storage,
        )
        return plain.build(**{**surroundings, "num_envs": 1})

    def _memory(self, layout: ReplayLayout, context: UnitContext, discount: float) -> ReplayMemory:
        plain = super()._memory(layout, context, discount)
        (part,) = [each for each in layout.parts if isinstance(each, FromData)]
        recorded = None
        if RECORDED.intersection(plain.layout.extras):
            recorded = recorded_extras(plain.layout.extras, context.place)
        return FilledMemory(
            plain.layout,
            store=context.store,
            sampler=plain.sampler,
            rng=context.rng,
            recorded=recorded,
            part=part,
        )


class FilledMemory(ReplayMemory):
    """A replay memory whose saved states leave the data out.

    Frames that are kept once, and memories on the disk, are saved whole: the files of the latter
    are linked.

    Args:
        layout: See `ReplayMemory`, as for the others.
        store: Keeps the transitions.
        sampler: Draws batches.
        rng: The stream that the sampler draws from.
        recorded: Makes extras.
        part: The data's part.
    """

    def __init__(
        self,
        layout: ReplayLayout,
        *,
        store: RingStore,
        sampler: SamplerChain,
        rng: np.random.Generator,
        recorded: MakeExtras | None,
        part: FromData,
    ) -> None:
        super().__init__(layout, store=store, sampler=sampler, rng=rng, recorded=recorded)
        self.another: Callable[[int], FilledMemory]
        """Makes an empty memory of one row at the same place, for so many transitions."""
        self.rng = rng
        """The stream that it draws from."""
        self.known = part.known
        """Transitions of each row that are the data's, [N]."""
        self._share = part.share
        self._unread: State | None = None

    @property
    def _leaves_data_out(self) -> bool:
        is_plain = self.layout.is_on_host or self.layout.is_on_device
        return is_plain and not self.layout.frame_stack

    @property
    def awaits_data(self) -> bool:
        """True between loading a state and `note_filled`."""
        return self._unread is not None

    def note_filled(self) -> None:
        """Note that all transitions kept now are the data's."""
        self.known[:] = self.store.counts
        self._unread = None

    def require_room(self, steps: int) -> None:
        """Raise an error where the world replaces data of which batches have a share.

        Args:
            steps: Transitions of the world that each row gets in the whole run.

        Raises:
            ConfigurationError: The memory is too small.
        """
        needed = int(self.known.max(initial=0)) + steps
        if self._share and needed > self.store.row_capacity:
            raise ConfigurationError(
                f"data_share is {self._share}, and the memory has room for {self.capacity:,} "
                f"transitions, where the data and the world's need {needed * len(self.known):,}; "
                "raise agent.memory.capacity (-cp, in a new run or a fork)"
            )

    def state_dict(self) -> State:
        if self._unread is not None:
            return self._unread
        state = {**super().state_dict(), "known": self.known.copy()}
        if self._leaves_data_out:
            entries = state["store"]["transitions"]
            first = np.maximum(entries.first, np.minimum(self.known, entries.ends))
            state["store"]["transitions"] = replace(entries, first=first)
        return state

    def load_state_dict(self, state: State) -> None:
        """Load a saved memory; what is left out must be there, or else the state waits for it."""
        if not self.layout.keeps:
            return
        if "known" not in state:  # of an earlier version, which has saved all
            sampler = {DataShare.name: {}, **state["sampler"]}
            super().load_state_dict({**state, "sampler": sampler})
            return
        known = state["known"]
        is_read = np.array_equal(self.known, known)
        if not is_read and (self._leaves_data_out or state["store"]["transitions"] is None):
            self._unread = state
            return
        entries = state["store"]["transitions"]
        if entries is not None and np.array_equal(entries.ends, known):  # nothing of the world yet
            state = {**state, "store": {**state["store"], "row_capacity": self.store.row_capacity}}
        super().load_state_dict(state)
        self.known[:] = known


def filled(memory: ReplayMemoryParameters, data_share: float | None) -> ReplayMemoryParameters:
    """A memory's parameters, for one that begins with a data set."""
    values = {name: getattr(memory, name) for name in ReplayMemoryParameters.__dataclass_fields__}
    values["parts"] = (*memory.parts, FromDataParameters(data_share=data_share))
    return FilledMemoryParameters(**values)
