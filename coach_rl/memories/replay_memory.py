"""Off-policy memory: the newest transitions of every row, sampled any number of times.

Built from a `RingStore`, which keeps, and a `SamplerChain`, which draws.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal, Protocol, Self

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.errors import ConfigurationError, RunError, SpaceError, require
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.inspection import InspectParameters
from coach_rl.core.interfaces import ALONE, LevelPlace, OutputFilter
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, Observation, Transition
from coach_rl.core.roles import KeepingParameters, MovableParameters
from coach_rl.core.seeding import generator, generator_state, load_generator_state
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.memories.frame_ring import frames_per_row
from coach_rl.memories.hindsight import (
    Hindsight,
    HindsightGoals,
    HindsightObservations,
    HindsightParameters,
    HindsightRewards,
)
from coach_rl.memories.hindsight_actions import (
    HindsightActionParameters,
    HindsightActions,
    HindsightActionsShown,
    SubGoalTests,
)
from coach_rl.memories.inspection import Inspector
from coach_rl.memories.memory import Batch
from coach_rl.memories.memory_size import MemorySize, check_size
from coach_rl.memories.minari_data import read_minari
from coach_rl.memories.prioritised import PrioritisedParameters, PrioritisedPositions
from coach_rl.memories.ring_store import LEDGER, FrameStackField, RingStore
from coach_rl.memories.samplers import (
    FOLLOWS,
    Gather,
    NStep,
    OneStep,
    UniformPositions,
    Window,
)
from coach_rl.memories.sampling_chain import (
    SamplerChain,
    SamplerUnit,
    ToDevice,
    inserted,
)
from coach_rl.memories.sum_tree import tree_bytes
from coach_rl.memories.tables import (
    DeviceTable,
    Field,
    HostTable,
    PinnedTable,
    Table,
    kept_dtype,
)
from coach_rl.memories.trajectories import shown_as

Storage = Literal["cpu", "pinned", "device", "none"]


class SamplerUnitParameters(Protocol):
    """A frozen description of a sampler unit of the user's own."""

    @property
    def after(self) -> str:
        """The unit it stands behind: positions, n_step, gather, ..., or sample (the end)."""
        ...

    def build(
        self, *, store: RingStore, rng: np.random.Generator, device: torch.device
    ) -> SamplerUnit:
        """The unit.

        Args:
            store: What is kept.
            rng: The memory's random stream, saved with it.
            device: The learner's.
        """
        ...


@parameter_class
class ReplayMemoryParameters(MovableParameters, KeepingParameters):
    """A replay memory: what it keeps, where, and how batches are drawn from it."""

    capacity: int = 1_000_000
    """Transitions kept over all rows; each of N rows gets a ring of capacity // N."""
    storage: Storage = "cpu"
    """cpu: in ordinary memory. pinned: the same, and batches go to a CUDA device through
    page-locked memory, beside the program. device: on the learner's device. none: nothing is
    kept, for agents that only act; evaluations of a run are made so."""
    n_step: int = 1
    """Rewards summed before bootstrapping."""
    discount_by_duration: bool = False
    """Discount by gamma ** duration, for decisions that last several simulator steps."""
    prioritised: PrioritisedParameters | None = None
    """Draw surprising transitions oftener; None: all alike."""
    hindsight: HindsightParameters | None = None
    """Relabel goals in sampled transitions; None: leave them."""
    hindsight_actions: HindsightActionParameters | None = None
    """Show sub-goals asked for in hindsight, and tests of them, beside relabelled goals; None:
    show actions as they were."""
    frame_stack: tuple[str, ...] = ()
    """Observation keys stacked by ObservationStackingFilter (last axis): frames are kept once."""
    extras: tuple[str, ...] = ()
    """What the agent notes with its actions and wants back, as `/<name>` in a batch."""
    prefill: str | None = None
    """A Minari data set, by id or path, whose transitions are there from the start."""
    units: tuple[SamplerUnitParameters, ...] = ()
    """Sampler units of your own."""
    inspect: tuple[InspectParameters, ...] = ()
    """Where to look into the sampler."""

    def __post_init__(self) -> None:
        for name in ("capacity", "n_step"):
            value = getattr(self, name)
            require(value >= 1, f"ReplayMemoryParameters.{name} must be 1 or more, got {value}")
        require(
            self.hindsight_actions is None or self.hindsight is not None,
            "ReplayMemoryParameters.hindsight_actions go with hindsight; "
            "set hindsight too (its ratio may be 0)",
        )
        require(
            self.prefill is None or not self.extras,
            f"a data set has no extras: prefill {self.prefill!r} and extras {self.extras} exclude "
            "each other",
        )

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
    ) -> "ReplayMemory":
        """The memory; ConfigurationError when it can't fit the machine or the spaces."""
        self._check(observation_space, num_envs, device)
        layout = Layout(self, observation_space, action_space, num_envs, place, output_filter)
        check_size(layout.size, capacity=self.capacity, device=device)
        memory = ReplayMemory(self, layout, device=device, seed=seed, discount=discount)
        if self.prefill is not None and self.storage != "none":
            memory.prefill(
                self.prefill, observation_space=observation_space, action_space=action_space
            )
        return memory

    def moved_to(self, device: str) -> Self:
        """The same; page-locked memory, which changes no number, only beside a CUDA device."""
        if self.storage != "pinned" or device.startswith("cuda"):
            return self
        return replace(self, storage="cpu")

    def inspected(self, inspections: tuple[InspectParameters, ...]) -> Self:
        """The same, with these inspections added to its own."""
        return replace(self, inspect=(*self.inspect, *inspections))

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


class Layout:
    """The columns a memory needs, and what they take.

    Args:
        params: What is asked for.
        observation_space: What the agent sees.
        action_space: Where it acts.
        num_envs: N.
        place: Where in a stack the agent decides.
        output_filter: What its actions pass on their way out; None: nothing.
    """

    def __init__(
        self,
        params: ReplayMemoryParameters,
        observation_space: spaces.Dict,
        action_space: Space,
        num_envs: int,
        place: LevelPlace,
        output_filter: OutputFilter | None,
    ) -> None:
        self.num_rows, self.row_capacity = num_envs, params.capacity // num_envs
        self.observations = {key: _field(part) for key, part in observation_space.spaces.items()}
        self.actions = (
            {f"/actions/{key}": _field(part) for key, part in action_space.spaces.items()}
            if isinstance(action_space, spaces.Dict)
            else {"/actions": _field(action_space)}
        )
        self.stacks = tuple(
            FrameStackField(key, self.observations[key]) for key in params.frame_stack
        )
        self.fields = dict(self.actions)
        for key, field in self.observations.items():
            if key not in params.frame_stack:
                self.fields[f"/observations/{key}"] = field
                self.fields[f"/next_observations/{key}"] = field
        self.hindsight: Hindsight | None = None
        self.hindsight_actions: HindsightActions | None = None
        self.ledger: dict[str, Field] = {}
        if params.n_step > 1:
            self.ledger[FOLLOWS] = Field((), np.bool_)
        if params.hindsight is not None:
            self.hindsight = params.hindsight.at(place)
            self.hindsight.check(observation_space)
            self.ledger |= self.hindsight.ledger
            if params.hindsight_actions is not None:
                self.hindsight_actions = params.hindsight_actions.at(
                    place, self.hindsight.goal, output_filter
                )
                self.ledger |= self.hindsight_actions.ledger
        self.size = self._size(params)

    def _size(self, params: ReplayMemoryParameters) -> MemorySize:
        entries = self.num_rows * self.row_capacity
        big = entries * sum(field.bytes for field in self.fields.values())
        for stack in self.stacks:
            per_row = frames_per_row(self.row_capacity, stack.field.shape[-1])
            big += self.num_rows * per_row * stack.field.bytes // stack.field.shape[-1]
        episodes, frames = 16, 16 * len(self.stacks)  # bytes of the indices per transition
        small = sum(field.bytes for field in (LEDGER | self.ledger).values()) + episodes + frames
        host = entries * small + (tree_bytes(entries) if params.prioritised else 0)
        if params.storage == "none":
            return MemorySize(host=0, device=0)
        if params.storage == "device":
            return MemorySize(host=host, device=big)
        return MemorySize(host=host + big, device=0)


class ReplayMemory:
    """Keeps the newest transitions of each row; hands out batches drawn from all of them.

    Args:
        params: What is asked for.
        layout: The columns that makes.
        device: The learner's.
        seed: Of the sampling stream.
        discount: Gamma, per decision or per simulator step.
    """

    def __init__(
        self,
        params: ReplayMemoryParameters,
        layout: Layout,
        *,
        device: torch.device,
        seed: int,
        discount: float,
    ) -> None:
        self.params, self.layout = params, layout
        self.store = RingStore(
            num_rows=layout.num_rows,
            row_capacity=layout.row_capacity,
            make_table=lambda length: _table(params.storage, length, device),
            fields=layout.fields,
            ledger=layout.ledger,
            stacks=layout.stacks,
        )
        self._rng = generator(seed, "memory")
        hindsight = layout.hindsight
        self._relabel = (
            HindsightGoals(
                self.store, self._rng, strategy=hindsight.strategy, ratio=hindsight.ratio
            )
            if hindsight is not None
            else None
        )
        self._priorities = (
            PrioritisedPositions(self.store, self._rng, params.prioritised)
            if params.prioritised is not None
            else None
        )
        self.chain = SamplerChain(self._units(device, discount))
        self._awaits_first = True

    def __len__(self) -> int:
        return len(self.store)

    @property
    def capacity(self) -> int:
        """Transitions it has room for; less than asked for where the rows can't share them out."""
        return self.layout.num_rows * self.layout.row_capacity

    @property
    def is_prioritised(self) -> bool:
        """Whether `note_errors` changes anything."""
        return self._priorities is not None

    def add(self, transition: Transition) -> None:
        """Keep R transitions of different rows; the oldest of full rows give way."""
        if self.params.storage == "none":
            raise RunError(
                "a replay memory with storage='none' keeps nothing; use cpu, pinned or device to "
                "learn from it"
            )
        values = self._columns(transition)
        if self._awaits_first:
            self._take_in_first(values)
        positions = self.store.add(transition.rows, values)
        if self._priorities is not None:
            self._priorities.added(positions, int(transition.duration.sum()))

    def sample(self, size: int) -> Batch:
        """A batch of B = `size` transitions, drawn with replacement; see `Memory.sample`."""
        return self.chain(size)

    def as_shown(self, observation: Observation) -> Observation:
        """Observations [R, ...] each as batches will show them; see `Memory.as_shown`."""
        if self._relabel is None or not self._relabel.share:
            return observation
        return {**observation, GOAL_KEY: self._relabel.mixed_in(observation[GOAL_KEY])}

    def note_errors(self, positions: Tensor, errors: Tensor) -> None:
        """Tell how wrong the learner was, [B] each; on a CUDA device this waits for it."""
        if self._priorities is not None:
            self._priorities.note_errors(
                positions.detach().cpu().numpy(), errors.detach().cpu().numpy()
            )

    def scalars(self) -> dict[str, float]:
        """How much is kept, and what the sampler's units have to tell."""
        return {"memory/transitions": float(len(self)), **self.chain.scalars()}

    def clear(self) -> None:
        """Forget everything; the columns stay allocated."""
        self.store.clear()
        if self._priorities is not None:
            self._priorities.clear()

    def prefill(self, source: str, *, observation_space: spaces.Dict, action_space: Space) -> None:
        """Add the episodes of a Minari data set, each to the row that has fewest transitions.

        Args:
            source: The data set's id or path.
            observation_space: What the agent sees.
            action_space: Where it acts.

        Raises:
            ConfigurationError: The data set has other spaces, or doesn't fit in.
        """
        rows = np.minimum(self.store.counts, self.store.row_capacity)
        for episode in read_minari(
            source, observation_space=observation_space, action_space=action_space
        ):
            row, time = int(rows.argmin()), len(episode["/rewards"])
            rows[row] += time
            if rows[row] > self.store.row_capacity:
                raise ConfigurationError(
                    f"data set '{source}' does not fit into the memory: each of its "
                    f"{len(rows)} rows holds {self.store.row_capacity:,} transitions and whole "
                    f"episodes go to one row; raise `capacity` ({self.params.capacity:,})"
                )
            values = episode | self._ledger_of(episode)
            if FOLLOWS in self.layout.ledger:
                values[FOLLOWS] = np.ones(time, np.bool_)
            positions = self.store.extend(row, values)
            if self._priorities is not None:
                self._priorities.added(positions, 0)

    def trajectories(self, agent: str = "agent") -> dict[str, Array]:
        """Everything kept by flat path, [N, T, ...] each, oldest first, zeros behind a row's end.

        Args:
            agent: Under whose name actions and extras are shown.

        Returns:
            The paths of `memories.trajectories`, and `/mask` [N, T].
        """
        sizes = self.store.sizes
        mask = np.arange(int(sizes.max(initial=0))) < sizes[:, None]
        rows, time = np.nonzero(mask)
        positions = self.store.positions_of(rows, (self.store.counts - sizes)[rows] + time)
        paths = [*self.store.fields, *LEDGER]
        columns = {path: self.store.read(path, positions) for path in paths}
        shown: dict[str, Array] = {}
        for path, values in {**columns, "/rows": rows}.items():
            padded = np.zeros((*mask.shape, *values.shape[1:]), values.dtype)
            padded[mask] = values
            shown[shown_as(path, agent)] = padded
        return {**shown, "/mask": mask}

    def state_dict(self) -> State:
        """What is kept, the sampler and its random stream."""
        return {
            "store": self.store.state_dict(),
            "sampler": self.chain.state_dict(),
            "generator": generator_state(self._rng),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on bit for bit where the saved memory stood; with no storage, go without."""
        if self.params.storage == "none":
            return
        self.store.load_state_dict(state["store"])
        self.chain.load_state_dict(state["sampler"])
        load_generator_state(self._rng, state["generator"])
        self._awaits_first = not set(self._gathered) <= set(self.store.fields)

    @property
    def _gathered(self) -> tuple[str, ...]:
        """The columns a batch has from the positions themselves."""
        observations = (f"/observations/{key}" for key in self.layout.observations)
        extras = (f"/{name}" for name in self.params.extras)
        return (*observations, *self.layout.actions, *extras)

    def _units(self, device: torch.device, discount: float) -> list[SamplerUnit]:
        params, store = self.params, self.store
        units: list[SamplerUnit] = [self._priorities or UniformPositions(store, self._rng)]
        if params.n_step == 1 and params.hindsight is None:
            units.append(OneStep(store, discount=discount, by_duration=params.discount_by_duration))
        else:
            units.append(Window(store, params.n_step))
            units += self._hindsight_units()
            units.append(NStep(store, discount=discount, by_duration=params.discount_by_duration))
        following = [f"/next_observations/{key}" for key in self.layout.observations]
        units.append(Gather(store, self._gathered, following))
        if params.hindsight is not None:
            units.append(HindsightObservations())
        if self.layout.hindsight_actions is not None:
            units.append(HindsightActionsShown(store, self.layout.hindsight_actions))
        units.append(ToDevice((), device))
        for own in params.units:
            unit = own.build(store=store, rng=self._rng, device=device)
            units = inserted(units, unit, after=own.after, kind="sampler unit")
        place = next(i for i, unit in enumerate(units) if isinstance(unit, ToDevice))
        made = dict.fromkeys(path for unit in units[:place] for path in unit.outputs)
        units[place] = ToDevice(tuple(made), device)
        for number, inspection in enumerate(params.inspect):
            inspector = Inspector(inspection, f"inspect_{number}")
            units = inserted(units, inspector, after=inspection.point, kind="inspection point")
        return units

    def _hindsight_units(self) -> list[SamplerUnit]:
        params, actions = self.layout.hindsight, self.layout.hindsight_actions
        if params is None or self._relabel is None:
            return []
        units: list[SamplerUnit] = [self._relabel]
        if actions is not None:
            units.append(SubGoalTests(self.store, self._rng, actions, params.ratio))
        return [*units, HindsightRewards(self.store, params)]

    def _columns(self, transition: Transition) -> dict[str, Array]:
        columns = {
            "/rewards": transition.reward,
            "/terminated": transition.terminated,
            "/truncated": transition.truncated,
            "/durations": transition.duration,
        }
        for key in self.layout.observations:
            columns[f"/observations/{key}"] = transition.observation[key]
            columns[f"/next_observations/{key}"] = transition.next_observation[key]
        if isinstance(transition.action, dict):
            columns |= {f"/actions/{key}": part for key, part in transition.action.items()}
        else:
            columns["/actions"] = transition.action
        for name in self.params.extras:
            columns[f"/{name}"] = transition.extras[name]
        columns |= self._ledger_of(columns, transition.below, transition.tested)
        if FOLLOWS in self.layout.ledger:
            columns[FOLLOWS] = transition.follows_or_all
        return columns

    def _ledger_of(
        self,
        columns: Mapping[str, Array],
        below: Array | None = None,
        tested: BoolArray | None = None,
    ) -> dict[str, Array]:
        """What hindsight keeps of transitions, [R, ...] each.

        Args:
            columns: The transitions' other columns.
            below: Bits of `End` of the level below, [R]; None: not known.
            tested: Whether the decisions were tested, [R]; None: none was.
        """
        hindsight, actions = self.layout.hindsight, self.layout.hindsight_actions
        if hindsight is None:
            return {}
        seen, followed = (
            {key: columns[f"{prefix}{key}"] for key in self.layout.observations}
            for prefix in ("/observations/", "/next_observations/")
        )
        kept = hindsight.ledger_values(seen, followed)
        if actions is not None:
            kept |= actions.ledger_values(seen, followed, below, tested)
        return kept

    def _take_in_first(self, values: Mapping[str, Array]) -> None:
        """Make the extras' columns, and check the first transitions against the spaces."""
        for name in self.params.extras:
            extra = values[f"/{name}"]
            if f"/{name}" not in self.store.fields:
                self.store.table.allocate(
                    f"/{name}", Field(extra.shape[1:], kept_dtype(extra.dtype))
                )
        for path, field in self.store.fields.items():
            shape = values[path].shape[1:] if path in values else None
            if shape != field.shape:
                raise RunError(
                    f"the first transition has {shape} under '{path}', the memory was built "
                    f"for {field.shape}; build it for the agent's filtered spaces"
                )
        self._awaits_first = False


def _field(space: Space) -> Field:
    if space.shape is None or space.dtype is None:
        raise SpaceError(
            f"a replay memory cannot keep values of {space}; allowed: Box, Discrete, "
            "MultiDiscrete, MultiBinary"
        )
    return Field(tuple(space.shape), kept_dtype(space.dtype))


def _table(storage: Storage, length: int, device: torch.device) -> Table:
    match storage:
        case "device":
            return DeviceTable(length, device)
        case "pinned":
            return PinnedTable(length, device)
        case "none":
            return HostTable(0, device)
    return HostTable(length, device)
