"""The parameters of a replay memory, and how it is put together from them."""

from collections.abc import Set
from dataclasses import field, replace
from functools import partial
from operator import attrgetter
from typing import Any, Literal, Protocol, Self

import torch
from gymnasium import spaces

from coach_rl.core.agents import ALONE, LevelPlace
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.parameter_classes import KeepingParameters, MovableParameters, parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.scratch import Scratch
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import Space
from coach_rl.core.variants import variant_for
from coach_rl.memories.batches import extra
from coach_rl.memories.draws import SingleTransitions
from coach_rl.memories.parts import (
    DrawParameters,
    MemoryPartParameters,
    PartContext,
    RelabellingParameters,
    RelabellingRequest,
)
from coach_rl.memories.replay_memory import (
    RECORDED,
    ReplayLayout,
    ReplayMemory,
    check_size,
    recorded_extras,
)
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import (
    Gather,
    NStep,
    OneStep,
    PositionParameters,
    SamplerChain,
    SamplerUnit,
    ToDevice,
    UniformPositions,
    UnitContext,
    Window,
)
from coach_rl.memories.tables import DeviceTable, PinnedTable, StorageParameters, Table, Tables

END = "sample"
"""The end of a chain of sampler units, behind the last one."""
Storage = Literal["cpu", "pinned", "device", "none"]


class SamplerUnitParameters(Protocol):
    """A frozen description of a sampler unit of the user's own."""

    @property
    def after(self) -> str:
        """Name of the unit before it: positions, n_step, gather, ..., or sample (the end)."""
        ...

    def build(self, context: UnitContext) -> SamplerUnit:
        """The unit; ConfigurationError where it does not fit its place."""
        ...


@parameter_class
class ReplayMemoryParameters(MovableParameters, KeepingParameters):
    """A replay memory: the columns it keeps, where, and how batches are sampled from it."""

    capacity: Positive[int] = 1_000_000
    """Transitions kept over all rows; each of N rows gets a ring of capacity // N."""
    storage: Storage | StorageParameters = "cpu"
    """cpu: in ordinary memory. pinned: the same, and batches go to a CUDA device through
    page-locked memory, beside the program. device: on the learner's device. none: nothing is
    kept, for agents that only act; evaluations of a run are made so. Or a storage of another
    kind."""
    n_step: Positive[int] = 1
    """Rewards summed before bootstrapping."""
    discount_by_duration: bool = False
    """Discount by gamma ** duration, for decisions that last several simulator steps."""
    prioritised: PositionParameters | None = None
    """Draws of transitions other than uniform ones, such as in proportion to their errors
    (PrioritisedParameters); None: uniformly."""
    relabelling: RelabellingParameters | None = None
    """Relabel goals in sampled transitions, e.g. in hindsight; None: leave them."""
    draws: DrawParameters = field(default_factory=SingleTransitions)
    """The kind of samples: transitions one by one or, for recurrent networks, sequences
    (SequenceParameters)."""
    frame_stack: tuple[str, ...] = ()
    """Observation keys stacked by ObservationStackingFilter (last axis): frames are kept once."""
    extras: tuple[str, ...] = ()
    """Extras of the agent's actions to keep, as the `extras` of a batch."""
    parts: tuple[MemoryPartParameters, ...] = ()
    """Parts that are kept and sampled beside transitions and goals, e.g. hindsight actions or a
    data set."""
    units: tuple[SamplerUnitParameters, ...] = ()
    """Sampler units of your own."""

    def __post_init__(self) -> None:
        self.draws.check(self)
        for part in self.parts:
            part.check(self)

    @property
    def is_filled(self) -> bool:
        """True if transitions are there from the start."""
        return any(map(attrgetter("fills"), self.parts))

    def check_filters(self, agent: Any, place: LevelPlace) -> None:
        """Raise `ConfigurationError` where an agent's filters or stages contradict a part."""
        if self.relabelling is not None:
            self.relabelling.check_filters(agent, place)
        for part in self.parts:
            part.check_filters(agent, place)

    def build(
        self,
        *,
        observation_space: spaces.Dict,
        action_space: Space,
        num_envs: int,
        device: torch.device,
        seed: int,
        discount: float,
        place: LevelPlace = ALONE,
        output_filter: OutputFilter | None = None,
        owner: str = "",
        scratch: Scratch | None = None,
    ) -> ReplayMemory:
        """The memory; ConfigurationError when it can't fit the machine or the spaces.

        Args:
            observation_space: What the agent sees, behind its InputFilter.
            action_space: Where the agent acts.
            num_envs: N, the rows that add to it.
            device: The learner's, where batches go.
            seed: Of the sampling stream.
            discount: Gamma per decision, or per simulator step with `discount_by_duration`.
            place: Where in a stack the agent decides.
            output_filter: What the agent's actions pass on their way out; None: nothing.
            owner: The agent, for warnings about its transitions; empty: it gets none.
            scratch: A folder for files; None: a temporary one.
        """
        self._check(observation_space, num_envs, device)
        relabelling = RelabellingRequest(params=self.relabelling, memory=self, place=place).made()
        part_context = PartContext(
            observation_space=observation_space,
            action_space=action_space,
            place=place,
            output_filter=output_filter,
            relabelling=relabelling,
            owner=owner,
        )
        parts = [] if relabelling is None else [relabelling.part(part_context)]
        layout = ReplayLayout(
            num_rows=num_envs,
            row_capacity=self.capacity // num_envs,
            keeps=self.storage != "none",
            is_on_host=self.storage in ("cpu", "pinned"),
            is_on_device=self.storage == "device",
            observation_space=observation_space,
            action_space=action_space,
            extras=self.extras,
            frame_stack={
                key: variant_for(
                    "frame_stack", observation_space[key], {}, claim=f"no frame_stack for '{key}',"
                )
                for key in self.frame_stack
            },
            keeps_follows=self.n_step > 1 or not self.draws.is_single,
            draws=self.draws,
            parts=(*parts, *(part.at(part_context) for part in self.parts)),
            positions=self.prioritised,
        )
        check_size(layout.size, capacity=self.capacity, device=device)
        store = RingStore(
            num_rows=layout.num_rows,
            row_capacity=layout.row_capacity,
            tables=self._tables(device, scratch or Scratch()),
            fields=layout.fields,
            ledger=layout.ledger,
            stacks=layout.stacks,
        )
        context = UnitContext(
            store=store,
            rng=generator(seed, "memory"),
            seed=seed,
            device=device,
            place=place,
            output_filter=output_filter,
        )
        memory = self._memory(layout, context, discount)
        if self.storage != "none" and self.is_filled:
            for part in layout.parts:
                memory.fill(part.episodes(), part.owner)
        return memory

    def moved_to(self, device: str) -> Self:
        """The same; page-locked memory, which changes no number, only beside a CUDA device."""
        if self.storage != "pinned" or device.startswith("cuda"):
            return self
        return replace(self, storage="cpu")

    def keeping_nothing(self) -> Self:
        """The same for an agent that only acts."""
        return replace(self, storage="none")

    def _check(self, observation_space: spaces.Dict, num_envs: int, device: torch.device) -> None:
        if self.capacity < num_envs:
            raise ConfigurationError(
                f"a replay memory of capacity {self.capacity} has no room for {num_envs} "
                "environments; give it at least one transition for each"
            )
        if self.storage == "pinned" and device.type != "cuda":
            raise ConfigurationError(
                f"storage 'pinned' feeds a CUDA device, the learner is on '{device}'; "
                "use storage 'cpu'"
            )
        self.draws.check_space(observation_space, self.capacity // num_envs)
        for key in self.frame_stack:
            if key not in observation_space.spaces:
                raise SpaceError(
                    f"frame_stack names the observation key '{key}', which is not there; "
                    f"observed: {', '.join(sorted(observation_space.spaces))}"
                )
            shape = observation_space[key].shape
            if not shape or len(shape) < 2:
                raise SpaceError(
                    f"frame_stack needs a stack along the last axis, '{key}' has shape {shape}; "
                    "put ObservationStackingFilter into the agent's InputFilter"
                )

    def _tables(self, device: torch.device, scratch: Scratch) -> Tables:
        match self.storage:
            case "cpu" | "pinned" | "device" | "none":
                return Tables(partial(_table, self.storage, device))
            case storage:
                return storage.build(device, scratch)

    def _memory(self, layout: ReplayLayout, context: UnitContext, discount: float) -> ReplayMemory:
        store = context.store
        rng = context.rng
        made = [each.build(context) for each in self.units]
        own: list[tuple[str, SamplerUnit]] = []
        for part in layout.parts:
            own += part.units(context, made)
        own += zip(map(attrgetter("after"), self.units), made, strict=True)
        read = {path for _, unit in own for path in unit.inputs}
        names = {path.removeprefix("/") for path in read}
        more = tuple(sorted((RECORDED & names) - set(self.extras)))
        if more and self.is_filled:
            brought = next(part for part in self.parts if part.fills)
            raise ConfigurationError(
                f"{brought} has no {', '.join(more)}, which a sampler unit reads; leave that, or "
                "the unit, out"
            )
        layout = replace(layout, extras=(*layout.extras, *more))
        units: list[SamplerUnit] = [
            UniformPositions(store, rng)
            if self.prioritised is None
            else self.prioritised.build(store, rng)
        ]
        gather = Gather(store, *layout.gathered)
        units += self.draws.units(self._return_units(store, read, discount), gather)
        recorded = None
        if RECORDED.intersection(layout.extras):
            recorded = recorded_extras(layout.extras, context.place)
        return ReplayMemory(
            layout,
            store=store,
            sampler=SamplerChain(_with_own(units, own, context.device), hidden=[*map(extra, more)]),
            rng=rng,
            recorded=recorded,
        )

    def _return_units(self, store: RingStore, read: Set[str], discount: float) -> list[SamplerUnit]:
        """Build the units from positions to rewards, discounts and the ends of the returns.

        Args:
            store: The memory's transitions.
            read: The columns that other units read; those of a window are made where one is read.
            discount: Gamma.
        """
        by_duration = self.discount_by_duration
        if self.n_step == 1 and read.isdisjoint(Window.outputs):
            return [OneStep(store, discount=discount, by_duration=by_duration)]
        returns = NStep(store, discount=discount, by_duration=by_duration)
        return [Window(store, self.n_step), returns]


def _with_own(
    units: list[SamplerUnit], own: list[tuple[str, SamplerUnit]], device: torch.device
) -> list[SamplerUnit]:
    """The units with the way to the device, and others behind the ones that they name.

    Raises:
        UnknownNameError: There is no unit of that name.
    """
    to_device = ToDevice((), device)
    units = [*units, to_device]
    for after, unit in own:
        names = [each.name for each in units]
        if after not in (*names, END):
            raise UnknownNameError("sampler unit", after, (*names, END))
        units.insert(len(units) if after == END else names.index(after) + 1, unit)
    place = units.index(to_device)
    made = dict.fromkeys(path for each in units[:place] for path in each.outputs)
    units[place] = ToDevice(tuple(made), device)
    return units


def _table(storage: Storage, device: torch.device, length: int) -> Table:
    match storage:
        case "device":
            return DeviceTable(length, device)
        case "pinned":
            return PinnedTable(length, device)
        case "none":
            return Table(0, device)
    return Table(length, device)
