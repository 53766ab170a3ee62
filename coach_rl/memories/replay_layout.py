"""Layout of a replay memory: the columns kept of each transition, and their size."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import Array, BoolArray, Transition
from coach_rl.core.spaces import Space
from coach_rl.memories.columns import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    FOLLOWS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    TERMINATED,
    columns_of,
    extra,
)
from coach_rl.memories.frame_ring import frames_per_row
from coach_rl.memories.hindsight import Hindsight
from coach_rl.memories.hindsight_actions import HindsightActions
from coach_rl.memories.memory_size import MemorySize
from coach_rl.memories.ring_store import LEDGER, FrameStackField
from coach_rl.memories.sum_tree import tree_bytes
from coach_rl.memories.tables import Field, kept_dtype

SAVED_PRIORITY = 24
"""Bytes that saving a priority takes for a moment: value, position and place in the tree."""


@dataclass(frozen=True, kw_only=True)
class ReplayLayout:
    """The columns of a replay memory."""

    num_rows: int
    """N."""
    row_capacity: int
    """Transitions kept per row."""
    keeps: bool
    """False for an agent that only acts: nothing is kept, no room is taken."""
    is_on_device: bool
    """True if the big columns lie on the learner's device."""
    is_prioritised: bool
    """True if a priority is kept of each transition."""
    observation_space: spaces.Dict
    """The agent's observation space."""
    action_space: Space
    """The agent's action space."""
    extras: tuple[str, ...]
    """Columns of the extras kept with the agent's actions."""
    frame_stack: tuple[str, ...]
    """Observation keys whose frames are kept once each."""
    keeps_follows: bool
    """True if each transition's `follows` is kept, for n-step returns."""
    hindsight: Hindsight | None
    """Relabelling of goals; None: no relabelling."""
    hindsight_actions: HindsightActions | None
    """Hindsight actions, i.e. how sub-goals are shown; None: as they were sent."""

    @cached_property
    def observations(self) -> dict[str, Field]:
        """The columns of every observation key."""
        return {key: _field(part) for key, part in self.observation_space.spaces.items()}

    @cached_property
    def actions(self) -> dict[str, Field]:
        """The columns of the action, by path."""
        if isinstance(self.action_space, spaces.Dict):
            parts = self.action_space.spaces.items()
            return {f"{ACTION_PARTS}{key}": _field(part) for key, part in parts}
        return {ACTIONS: _field(self.action_space)}

    @property
    def stacks(self) -> tuple[FrameStackField, ...]:
        """Observations whose frames are kept once each."""
        return tuple(FrameStackField(key, self.observations[key]) for key in self.frame_stack)

    @cached_property
    def fields(self) -> dict[str, Field]:
        """The big columns except extras and frames, by path."""
        fields = dict(self.actions)
        for key, field in self.observations.items():
            if key not in self.frame_stack:
                fields[f"{OBSERVATIONS}{key}"] = fields[f"{NEXT_OBSERVATIONS}{key}"] = field
        return fields

    @cached_property
    def ledger(self) -> dict[str, Field]:
        """The small columns beyond those that every store has, by path."""
        fields: dict[str, Field] = {}
        if self.keeps_follows:
            fields[FOLLOWS] = Field((), np.bool_)
        for part in (self.hindsight, self.hindsight_actions):
            if part is not None:
                fields |= part.ledger
        return fields

    @property
    def gathered(self) -> tuple[str, ...]:
        """The columns that a batch has from the positions drawn themselves."""
        observations = (f"{OBSERVATIONS}{key}" for key in self.observations)
        return (*observations, *self.actions, *(extra(name) for name in self.extras))

    @property
    def gathered_next(self) -> tuple[str, ...]:
        """The columns that a batch has from where the n-step returns end."""
        return tuple(f"{NEXT_OBSERVATIONS}{key}" for key in self.observations)

    @property
    def size(self) -> MemorySize:
        """The memory's size when it is full."""
        if not self.keeps:
            return MemorySize(host=0, device=0)
        entries = self.num_rows * self.row_capacity
        big = entries * sum(field.bytes for field in self.fields.values())
        for stack in self.stacks:
            per_row = frames_per_row(self.row_capacity, stack.field.shape[-1])
            big += self.num_rows * per_row * stack.field.bytes // stack.field.shape[-1]
        episodes, frames = 16, 16 * len(self.stacks)  # bytes of the indices per transition
        small = sum(field.bytes for field in (LEDGER | self.ledger).values()) + episodes + frames
        small += 8 * len(self.extras)  # whose shapes the first transition tells
        host = entries * small
        if self.is_prioritised:
            host += tree_bytes(entries) + entries * SAVED_PRIORITY
        if self.is_on_device:
            return MemorySize(host=host, device=big)
        return MemorySize(host=host + big, device=0)

    def columns(self, transition: Transition) -> dict[str, Array]:
        """Everything that is kept of a transition, [R, ...] each."""
        columns = columns_of(transition)
        columns |= {extra(name): transition.extras[name] for name in self.extras}
        columns |= self.hindsight_ledger(columns, transition.below, transition.tested)
        if self.keeps_follows:
            columns[FOLLOWS] = transition.follows_or_all
        return columns

    def hindsight_ledger(
        self,
        columns: Mapping[str, Array],
        below: Array | None = None,
        tested: BoolArray | None = None,
    ) -> dict[str, Array]:
        """Return the columns that hindsight keeps of transitions, [R, ...] each.

        Args:
            columns: The transitions' other columns.
            below: Bits of `End` of the level below, [R]; None: not known.
            tested: Whether the decisions were tested, [R]; None: none was.
        """
        if self.hindsight is None:
            return {}
        seen, followed = (
            {key: columns[f"{prefix}{key}"] for key in self.observations}
            for prefix in (OBSERVATIONS, NEXT_OBSERVATIONS)
        )
        kept = self.hindsight.ledger_values(
            seen, followed, terminated=columns[TERMINATED], below=below
        )
        if self.hindsight_actions is not None:
            kept |= self.hindsight_actions.ledger_values(
                seen, followed, duration=columns[DURATIONS], below=below, tested=tested
            )
        return kept


def _field(space: Space) -> Field:
    if space.shape is None or space.dtype is None:
        raise SpaceError(
            f"a replay memory cannot keep values of {space}; allowed: Box, Discrete, "
            "MultiDiscrete, MultiBinary"
        )
    return Field(tuple(space.shape), kept_dtype(space.dtype))
