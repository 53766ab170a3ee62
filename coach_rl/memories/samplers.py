"""Samplers: chains of small units with declared inputs and outputs.

Units for uniform positions, one-step and n-step returns, gathering columns and moving them to the
learner's device; those of prioritised replay are in `prioritised`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.memories.batches import (
    DISCOUNTS,
    DURATIONS,
    ENDS,
    FOLLOWS,
    INTERNAL,
    POSITIONS,
    REWARDS,
    TERMINATED,
    WEIGHTS,
    WINDOW_DURATIONS,
    WINDOW_KEPT,
    WINDOW_REWARDS,
    WINDOW_STEPS,
    WINDOW_TERMINATED,
    Columns,
)
from coach_rl.memories.ring_store import RingStore


@dataclass(frozen=True, kw_only=True)
class UnitContext:
    """Surroundings of a sampler unit, known when it is built."""

    store: RingStore
    """The memory's transitions."""
    rng: np.random.Generator
    """The memory's random stream, saved with it."""
    seed: int
    """Seed for streams of the unit's own, which it saves."""
    device: torch.device
    """The learner's."""
    place: LevelPlace
    """The agent's place in a stack: its level, the level below and the agent there."""
    output_filter: OutputFilter | None
    """Filter that the agent's actions pass on their way out; None: no filter."""


class SamplerUnit(Saved, ABC):
    """One step of building a batch: reads some columns and computes others.

    A column is a tensor [B, ...] under a flat path. Positions, and what is computed from the small
    columns, lie on the CPU; what `gather` takes out of the store lies on the learner's device, and
    so does everything behind `to_device`.
    """

    name: str
    """Names it in errors and as a point to inspect; different for each unit of a chain."""
    inputs: tuple[str, ...] = ()
    """Paths it reads; one that ends with a slash means any path with this prefix."""
    outputs: tuple[str, ...] = ()
    """Paths it makes or replaces."""
    unfiltered: tuple[str, ...] = ()
    """Observation keys that it needs as the environment shows them; filters of them are refused."""

    @abstractmethod
    def __call__(self, batch: Columns, size: int) -> Columns:
        """The columns of `outputs`, each [B, ...].

        Args:
            batch: What the units before it have made; not to be written to.
            size: B.
        """

    def added(self, positions: IntArray, environment_steps: int) -> None:
        """Note transitions that were added.

        Args:
            positions: Theirs, [R].
            environment_steps: The simulator steps of all together; 0 for those of a data set.
        """

    def note_errors(self, positions: IntArray, errors: FloatArray) -> None:
        """Note the learner's errors of transitions, [B] each, of whatever sign."""

    def as_shown(self, observation: Observation) -> Observation:
        """Observations [R, ...] each that were added, as batches contain them; not written to."""
        return observation

    def clear(self) -> None:
        """Forget all transitions."""

    def metrics(self) -> dict[str, float]:
        """Metrics since the last call, by metric name."""
        return {}


class SamplerChain(Saved):
    """Units in a row; each finds its inputs among the outputs of those before it.

    Args:
        units: First to last.
        hidden: Columns that pass between units, beside those under `INTERNAL`.

    Raises:
        ConfigurationError: Two units have one name, or an input that no unit before makes.
    """

    SAVED = (SavedAttribute("by_name", inline=True),)

    def __init__(self, units: Sequence[SamplerUnit], *, hidden: Collection[str] = ()) -> None:
        self.units = tuple(units)
        self._hidden = frozenset(hidden)
        self.by_name: dict[str, SamplerUnit] = {}
        self._listeners: dict[str, list[Callable[[Columns], None]]] = {}
        self._is_checked = False
        made: set[str] = set()
        for unit in self.units:
            if unit.name in self.by_name:
                raise ConfigurationError(
                    f"two sampler units are named '{unit.name}'; give each its own name"
                )
            self.by_name[unit.name] = unit
            for wanted in unit.inputs:
                is_group = wanted.endswith("/")  # any column below it will do
                if wanted not in made and not (is_group and _has_below(made, wanted)):
                    raise ConfigurationError(
                        f"sampler unit '{unit.name}' needs '{wanted}', which no unit before it "
                        f"makes; made so far: {', '.join(sorted(made)) or 'nothing'}"
                    )
            made.update(unit.outputs)

    def __call__(self, size: int) -> Columns:
        """A batch of B = `size`."""
        batch: Columns = {}
        for unit in self.units:
            made = unit(batch, size)
            if not self._is_checked and set(made) != set(unit.outputs):
                raise RunError(
                    f"sampler unit '{unit.name}' declares the outputs {sorted(unit.outputs)} and "
                    f"made {sorted(made)}"
                )
            if self._listeners:
                for listener in self._listeners.get(unit.name, ()):
                    listener(made)
            batch |= made
        self._is_checked = True
        return {
            path: column
            for path, column in batch.items()
            if not path.startswith(INTERNAL) and path not in self._hidden
        }

    def overriding(self, method: str) -> tuple[Any, ...]:
        """The units whose class overrides a method of `SamplerUnit`."""
        usual = getattr(SamplerUnit, method)
        return tuple(unit for unit in self.units if getattr(type(unit), method) is not usual)

    def watch(self, name: str, listener: Callable[[Columns], None]) -> None:
        """Call a function with a unit's outputs, from now on.

        Args:
            name: The unit's.
            listener: Called with the columns of its outputs, before the next unit runs.
        """
        self._listeners.setdefault(name, []).append(listener)

    def metrics(self) -> dict[str, float]:
        """The units' metrics since the last call."""
        return {name: value for unit in self.units for name, value in unit.metrics().items()}


class ToDevice(SamplerUnit):
    """Moves columns to the learner's device."""

    name = "to_device"

    def __init__(self, paths: Sequence[str], device: torch.device) -> None:
        self.outputs = self.inputs = tuple(path for path in paths if not path.startswith(INTERNAL))
        self._device = device

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        return {path: batch[path].to(self._device, non_blocking=True) for path in self.outputs}


def _has_below(paths: Collection[str], group: str) -> bool:
    return any(path.startswith(group) for path in paths)


class PositionParameters(Protocol):
    """A frozen description of how transitions are drawn, other than uniformly."""

    def build(self, store: RingStore, rng: np.random.Generator) -> SamplerUnit:
        """The unit that draws, in the place of `UniformPositions`."""
        ...

    def host_bytes(self, entries: int) -> int:
        """Bytes of the machine's memory that so many transitions take besides their columns."""
        ...


class UniformPositions(SamplerUnit):
    """Each transition kept is equally likely; drawn with replacement."""

    name = "positions"
    outputs = (POSITIONS, WEIGHTS)

    def __init__(self, store: RingStore, rng: np.random.Generator) -> None:
        self._store = store
        self._rng = rng

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        positions = self._store.draw(self._rng, size)
        return {POSITIONS: torch.from_numpy(positions), WEIGHTS: torch.ones(size)}


class OneStep(SamplerUnit):
    """Reward and discount of single transitions.

    Args:
        store: Where they are kept.
        discount: Gamma, per decision or per simulator step.
        by_duration: Whether gamma counts per simulator step.
    """

    name = "n_step"
    inputs = (POSITIONS,)
    outputs = (REWARDS, DISCOUNTS, ENDS)

    def __init__(self, store: RingStore, *, discount: float, by_duration: bool) -> None:
        self._ledger = store.ledger
        self._by_duration = by_duration
        self._discount = np.float32(discount)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        positions = batch[POSITIONS].numpy()
        discounts = ~self._ledger[TERMINATED].take(positions) * self._discount
        if self._by_duration:
            discounts = np.where(
                discounts > 0, discounts ** self._ledger[DURATIONS].take(positions), 0
            ).astype(np.float32)
        return {
            REWARDS: torch.from_numpy(self._ledger[REWARDS].take(positions)),
            DISCOUNTS: torch.from_numpy(discounts),
            ENDS: batch[POSITIONS],
        }


class Gather(SamplerUnit):
    """Reads observations, actions and further columns from the store.

    Args:
        store: Where they are kept.
        paths: The columns taken at the positions themselves.
        next_paths: The columns taken at the ends of the n-step returns.
    """

    name = "gather"
    inputs = (POSITIONS, ENDS)

    def __init__(self, store: RingStore, paths: Sequence[str], next_paths: Sequence[str]) -> None:
        self.store = store
        self._paths = tuple(paths)
        self._next_paths = tuple(next_paths)
        self.outputs = (*self._paths, *self._next_paths)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """The columns, [B, ...] each, on the learner's device."""
        here, ends = batch[POSITIONS].numpy(), batch[ENDS].numpy()
        return self.store.take(self._paths, here) | self.store.take(self._next_paths, ends)


class Window(SamplerUnit):
    """The n transitions from each position on, as far as each follows on the one before it.

    Args:
        store: Where they are kept; with `FOLLOWS` in its ledger where n is more than 1.
        n_step: n.
    """

    name = "window"
    inputs = (POSITIONS,)
    outputs = (WINDOW_STEPS, WINDOW_KEPT, WINDOW_REWARDS, WINDOW_TERMINATED, WINDOW_DURATIONS)

    def __init__(self, store: RingStore, n_step: int) -> None:
        self._store = store
        self._ahead = np.arange(n_step)

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Steps, whether they follow in the episode, and their ledger, [B, n] each."""
        positions = batch[POSITIONS].numpy()
        store = self._store
        _, ends = store.episodes_of(positions)
        steps = store.steps_of(positions)[:, None] + self._ahead
        kept = steps < ends[:, None]
        # Behind its end a window repeats the newest step, which `kept` leaves out.
        steps = np.where(kept, steps, ends[:, None] - 1)
        where = store.positions_of(store.rows_of(positions)[:, None], steps)
        ledger = store.ledger
        if len(self._ahead) > 1:
            follows = ledger[FOLLOWS].take(where[:, 1:])
            kept[:, 1:] &= np.logical_and.accumulate(follows, axis=1)
        return {
            WINDOW_STEPS: torch.from_numpy(steps),
            WINDOW_KEPT: torch.from_numpy(kept),
            WINDOW_REWARDS: torch.from_numpy(ledger[REWARDS].take(where)),
            WINDOW_TERMINATED: torch.from_numpy(ledger[TERMINATED].take(where)),
            WINDOW_DURATIONS: torch.from_numpy(ledger[DURATIONS].take(where)),
        }


class NStep(SamplerUnit):
    """Folds a window into a reward, a discount and an end.

    The return stops behind a transition that terminates, at the episode's end, where a goal moved
    within it, and at the newest transition of the row; after k transitions the next observation's
    value counts gamma^k.

    Args:
        store: Where the transitions are kept.
        discount: Gamma, per decision or per simulator step.
        by_duration: Whether gamma counts per simulator step.
    """

    name = "n_step"
    inputs = (POSITIONS, *Window.outputs)
    outputs = (REWARDS, DISCOUNTS, ENDS)

    def __init__(self, store: RingStore, *, discount: float, by_duration: bool) -> None:
        self._store = store
        self._discount = discount
        self._by_duration = by_duration

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        durations = batch[WINDOW_DURATIONS].numpy() if self._by_duration else None
        rewards, discounts, counts = n_step_returns(
            rewards=batch[WINDOW_REWARDS].numpy(),
            terminated=batch[WINDOW_TERMINATED].numpy(),
            kept=batch[WINDOW_KEPT].numpy(),
            durations=durations,
            discount=self._discount,
        )
        rows = self._store.rows_of(batch[POSITIONS].numpy())
        last = batch[WINDOW_STEPS].numpy()[np.arange(len(rows)), counts - 1]
        return {
            REWARDS: torch.from_numpy(rewards),
            DISCOUNTS: torch.from_numpy(discounts),
            ENDS: torch.from_numpy(self._store.positions_of(rows, last)),
        }


def n_step_returns(
    *,
    rewards: FloatArray,
    terminated: BoolArray,
    kept: BoolArray,
    durations: IntArray | None,
    discount: float,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Discounted sums over windows that end early where they must.

    Args:
        rewards: [B, n].
        terminated: [B, n]; nothing behind the first such transition counts.
        kept: [B, n]; false from where the window leaves its episode; its first column is true.
        durations: [B, n] powers of the discount that a transition takes; None: 1 each.
        discount: Gamma.

    Returns:
        Float32 sums [B], float32 discounts of what follows [B], and how many transitions were
        summed [B].
    """
    # The transition that terminates still counts, those behind it don't.
    used = kept.copy()
    used[:, 1:] &= ~np.logical_or.accumulate(terminated[:, :-1], axis=1)
    counts: IntArray = np.count_nonzero(used, axis=1)
    counted = np.where(used, rewards, 0.0)
    if durations is None:
        powers = discount ** np.arange(rewards.shape[1] + 1)
        sums = counted @ powers[:-1]
        following = powers[counts]
    else:
        # A reward is discounted by the simulator steps of all transitions before its own.
        elapsed = np.cumsum(np.where(used, durations, 0), axis=1)  # [B, n], after each
        powers = discount**elapsed
        sums = counted[:, 0] + (counted[:, 1:] * powers[:, :-1]).sum(axis=1)
        following = powers[:, -1]
    is_final = terminated[np.arange(len(counts)), counts - 1]
    discounts = np.where(is_final, 0.0, following)
    return sums.astype(np.float32), discounts.astype(np.float32), counts
