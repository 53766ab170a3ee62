"""Stored transitions of goals that change: rewards, ends and goals as the goals judge now.

What a memory keeps under goals that learn, or follow a curriculum, becomes stale as they do:
rewards and ends, goals that are shown relative to the state, and, one level up, actions within
bounds that move. Each transition is kept with the absolute goal and the version at its decision.
When it is drawn and the version is newer, it is judged once more.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY, GoalSpace, Verdict
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.records import Array, FloatArray, IntArray, Observation
from coach_rl.extensions.hindsight.hindsight import (
    ACHIEVED,
    FAILED,
    GOALS,
    REACHED,
    RELABELLED,
    Hindsight,
    HindsightGoals,
    HindsightObservations,
    HindsightParameters,
    HindsightRewards,
    HindsightUnits,
)
from coach_rl.memories.batches import (
    ACTIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    TERMINATED,
    Columns,
    extra,
    under,
)
from coach_rl.memories.parts import MemoryPart, MemoryPartParameters, PartContext, Stored
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field

RAW = ("/goal_space/before/", "/goal_space/after/")
"""Columns; an observation key follows: unfiltered observations before and after."""
OF_GOALS = "goal_space/"
"""Extras under this prefix belong to goals that learn, and no agent sees them."""
BEFORE, AFTER = (path.removeprefix("/") for path in RAW)
LATER = f"{OF_GOALS}later/"
"""Extras of unfiltered observations, a key follows: before and after decisions, and later."""
HAS_LATER = f"{OF_GOALS}has_later"
GOAL = f"{OF_GOALS}goal"
"""Extras: whether the later observation is as much later as it should be, and the goal."""
SENT = f"{OF_GOALS}sent"
"""Extra, one level up: the goal or displacement that an action stood for."""
GIVEN = f"{BEFORE}given"
GIVEN_VERSION = f"{BEFORE}given_version"
"""Extras: the absolute goal of a decision, and the version of the goals when it was made."""


class ChangingGoals(GoalSpace):
    """Goals that learn, or follow a curriculum, as memories need them."""

    learns = True
    version: int = 0
    """Number of changes so far."""
    ahead: int = 0
    """Decisions from an observation to the later one that batches hold; 0: they hold none."""
    recomputes: bool = True
    """If True, what is stale is recomputed when it is drawn."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The observation keys that the achieved goal is computed from."""
        return (self.key,)

    def relabelling(self, request: Any) -> Any:
        """The relabelling of what the level of these goals stores: at least what is stale."""
        if not self.learns:
            return super().relabelling(request)
        hindsight = request.params
        memory = request.memory
        place = request.place
        name = type(self).__name__
        place.require_single_decisions(f"{name} judges single decisions")
        is_single = memory.n_step == 1 and memory.draws.is_single
        if not is_single or any(part.fills for part in memory.parts):
            raise ConfigurationError(
                f"{name} learns or follows a curriculum, and judges single transitions when they "
                f"are drawn; leave out n_step={memory.n_step}, sequences and data sets"
            )
        if hindsight is None:
            ends = place.level is not None and place.level.goal_is_terminal
            hindsight = HindsightParameters(ratio=0.0, goal_ends_episode=ends)
        raw = frozenset(key for key in self.keys if f"{BEFORE}{key}" in memory.extras)
        return ChangingHindsight(**{**vars(hindsight.at(place)), "goal": self, "raw": raw})

    def scaled(self, sent: FloatArray) -> FloatArray:
        """Actions of the level above [R, G] that stand for these goals or displacements now."""
        return sent


@dataclass(frozen=True, kw_only=True)
class ChangingHindsight(Hindsight):
    """`Hindsight` under goals that learn; with a ratio of 0 only what is stale is relabelled."""

    goal: ChangingGoals
    """The level's goals."""
    raw: frozenset[str]
    """Observation keys that are kept unfiltered, beside those that the agent sees."""

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless such observations have what the goals read."""
        missing = {GOAL_KEY, *self.goal.keys} - self.raw - observation_space.spaces.keys()
        if missing:
            raise SpaceError(
                f"{type(self.goal).__name__} needs the observation key '{min(missing)}', which is "
                f"not there; observed: {', '.join(sorted(observation_space.spaces))}"
            )
        own = self.goal.overridden("verdict", "difference", "reached", "is_over", "show", "seen")
        if own:
            raise ConfigurationError(
                f"{type(self.goal).__name__} overrides {own[0]}(), and what is stored is judged by "
                "judge(goal, achieved, before) and shown by shown_from(goal, achieved); override "
                "those"
            )

    @property
    def ledger(self) -> dict[str, Field]:
        fields = super().ledger
        del fields[ACHIEVED]  # stale as soon as the goals learn
        return fields

    def kept(self, stored: Stored) -> dict[str, Array]:
        # unfiltered where they are kept so
        before = stored.before | under(RAW[0], stored.columns)
        after = stored.after | under(RAW[1], stored.columns)
        reached = self.judged(before, after).is_final
        values: dict[str, Array] = {REACHED: reached}
        if self.stops_on_failure:
            terminated = stored.columns[TERMINATED]
            values[FAILED] = self.failed(reached, terminated=terminated, below=stored.below)
        return values

    def judged(
        self,
        observation: Observation,
        next_observation: Observation,
        *,
        moved: FloatArray | float = 0.0,
    ) -> Verdict:
        """The verdict on R transitions under the goals that they had."""
        goal = observation[GIVEN.removeprefix(BEFORE)] + moved
        return self.goal.verdict(goal, next_observation, observation)

    def units(self, store: RingStore, rng: np.random.Generator) -> HindsightUnits:
        return HindsightUnits(
            ChangingHindsightGoals(store, rng, self),
            ChangingHindsightRewards(store, self),
            HindsightObservations(store, self),
        )

    def achieved_paths(self, store: RingStore) -> dict[str, tuple[str, str]]:
        return {
            key: (extra(f"{BEFORE}{key}"), extra(f"{AFTER}{key}"))
            if key in self.raw
            else (f"{OBSERVATIONS}{key}", f"{NEXT_OBSERVATIONS}{key}")
            for key in self.goal.keys
        }


class OneUnit(MemoryPart):
    """A part of a memory that is one sampler unit.

    Args:
        after: The unit that it follows.
        make: Makes it.
    """

    def __init__(self, after: str, make: Callable[[UnitContext], SamplerUnit]) -> None:
        self._after = after
        self._make = make

    def units(
        self,
        context: UnitContext,
        own: Sequence[SamplerUnit],
    ) -> list[tuple[str, SamplerUnit]]:
        return [(self._after, self._make(context))]


class GoalColumnsPart(MemoryPartParameters):
    """The part of a memory that adds what goals learn from to its batches."""

    def at(self, context: PartContext) -> MemoryPart:
        hindsight: ChangingHindsight = context.relabelling
        return OneUnit("hindsight_observations", lambda unit: GoalColumns(unit.store, hindsight))


@dataclass(frozen=True)
class ScaledActionsPart(MemoryPartParameters):
    """The part of a memory one level above goals whose bounds move: it restates actions."""

    goal: ChangingGoals
    """The goals that the actions set."""

    def at(self, context: PartContext) -> MemoryPart:
        made = ScaledActions(self.goal, context.output_filter)
        return OneUnit("gather", lambda _: made)


class Achieved:
    """Goals that stored transitions achieve, by the networks as they are now.

    Args:
        store: Where the transitions are kept.
        params: With the goals, and the keys that are kept unfiltered.
    """

    def __init__(self, store: RingStore, params: ChangingHindsight) -> None:
        self._store = store
        self._goal = params.goal
        self.paths = params.achieved_paths(store)

    def seen(self, positions: IntArray, *, after: bool) -> Observation:
        """Unfiltered observations at positions [R], before or after the decisions."""
        return {key: self._store.read(paths[after], positions) for key, paths in self.paths.items()}

    def __call__(self, positions: IntArray, *, after: bool) -> FloatArray:
        """Achieved goals [R, G] at positions [R]."""
        if not len(positions):
            return np.zeros((0, self._goal.size), np.float32)
        return self._goal.achieved(self.seen(positions, after=after))


class ChangingHindsightGoals(HindsightGoals):
    """Draws which transitions are relabelled, with which goals; stale ones with their own."""

    def __init__(
        self, store: RingStore, rng: np.random.Generator, params: ChangingHindsight
    ) -> None:
        super().__init__(store, rng, params)
        self._changing = params.goal
        self._achieved = Achieved(store, params)

    def __call__(self, batch: Columns, size: int) -> Columns:
        positions = batch[POSITIONS].numpy()
        chosen, source = self._draw(positions)
        goals = self._store.read(extra(GIVEN), positions)
        goals[chosen] = self._goals(source[chosen])
        if self._changing.recomputes:
            versions = self._store.read(extra(GIVEN_VERSION), positions)
            chosen = chosen | (versions < self._changing.version)
        return {GOALS: torch.from_numpy(goals), RELABELLED: torch.from_numpy(chosen)}

    def _goals(self, source: IntArray) -> FloatArray:
        return self._changing.turned(self._achieved(source, after=True))


class ChangingHindsightRewards(HindsightRewards):
    """Rewards and ends of the window as the goals judge now."""

    def __init__(self, store: RingStore, params: ChangingHindsight) -> None:
        super().__init__(store, params)
        self._achieved = Achieved(store, params)

    def _verdict(self, goals: FloatArray, where: IntArray) -> Verdict:
        achieved = self._achieved(where, after=True)
        if not self._goal.uses_before:
            return self._goal.judge(goals, achieved)
        return self._goal.judge(goals, achieved, self._achieved(where, after=False))


class GoalColumns(SamplerUnit):
    """Adds what the goals learn from: absolute goals, and observations some decisions later.

    Decisions follow one another in an episode where the observation before one is that after the
    last.
    """

    name = "goal_space"
    inputs = (POSITIONS, GOALS)

    def __init__(self, store: RingStore, params: ChangingHindsight) -> None:
        self._store = store
        self._ahead = params.goal.ahead
        self._observed = Achieved(store, params)
        self.outputs: tuple[str, ...] = (extra(GOAL),)
        if self._ahead:
            later = (extra(f"{LATER}{key}") for key in params.goal.keys)
            self.outputs += (extra(HAS_LATER), *later)

    def __call__(self, batch: Columns, size: int) -> Columns:
        columns = {extra(GOAL): batch[GOALS]}
        if not self._ahead:
            return columns
        store = self._store
        positions = batch[POSITIONS].numpy()
        # Positions [B, ahead] of the steps from each one on. They are one stretch of an episode if
        # each observation before a step is the one behind its predecessor.
        rows, steps = store.rows_of(positions), store.steps_of(positions)
        last = steps + self._ahead - 1
        has_later = last < store.counts[rows]
        last = np.where(has_later, last, steps)
        ahead = np.arange(self._ahead)
        where = store.positions_of(rows[:, None], np.minimum(steps[:, None] + ahead, last[:, None]))
        for key, before in self._observed.seen(where[:, 1:], after=False).items():
            ended = store.read(self._observed.paths[key][1], where[:, :-1])
            same = (before == ended).reshape(*ended.shape[:2], -1).all(axis=2)
            has_later &= (same | (where[:, 1:] == where[:, :-1])).all(axis=1)
        columns[extra(HAS_LATER)] = torch.from_numpy(has_later)
        later = self._observed.seen(where[:, -1], after=True)
        for key, values in later.items():
            columns[extra(f"{LATER}{key}")] = torch.from_numpy(values)
        return columns


class ScaledActions(SamplerUnit):
    """Actions of the level above, as they stand for the same goals or displacements now.

    Args:
        goal: The goals that the actions set, within bounds that are learned.
        output_filter: What actions pass on their way out; None: nothing.
    """

    name = "sub_goals"
    inputs = (ACTIONS, extra(SENT))
    outputs = (ACTIONS,)

    def __init__(self, goal: ChangingGoals, output_filter: OutputFilter | None) -> None:
        self._goal = goal
        self._filter = output_filter
        if output_filter is not None:
            output_filter.inverse(np.zeros((1, goal.size), np.float32))  # SpaceError: no way back

    def __call__(self, batch: Columns, size: int) -> Columns:
        actions: Any = self._goal.scaled(batch[extra(SENT)].cpu().numpy())
        if self._filter is not None:
            actions = self._filter.inverse(actions)
        return {ACTIONS: torch.from_numpy(np.asarray(actions, np.float32)).to(batch[ACTIONS])}
