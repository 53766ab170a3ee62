"""Hindsight experience replay (Andrychowicz et al. 2017, arXiv:1707.01495), at sampling time.

A share k / (k + 1) of a batch is relabelled: its goal becomes one that the same episode achieved,
its reward that of the goal space for this goal and the next observation. Nothing is stored twice.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, NonFiniteError, SpaceError
from coach_rl.core.goals import (
    GOAL_KEY,
    GoalRounding,
    GoalSpace,
    Verdict,
    check_judging,
    is_built,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import (
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Observation,
    missed,
)
from coach_rl.extensions.hindsight.hindsight_comparison import HindsightComparison
from coach_rl.extensions.hindsight.hindsight_filters import require_unfiltered
from coach_rl.memories.batches import (
    INTERNAL,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    TERMINATED,
    WINDOW_REWARDS,
    WINDOW_STEPS,
    WINDOW_TERMINATED,
    Columns,
    under,
)
from coach_rl.memories.parts import MemoryPart, PartContext, Stored
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field

ACHIEVED = "/achieved_goals"
REACHED = "/reached"
FAILED = "/failed"
"""Columns: the goal that each next observation achieves, whether it was the desired one,
and whether the level stopped there because the one below missed its goal."""
OBSERVED_GOALS = (f"{OBSERVATIONS}{GOAL_KEY}", f"{NEXT_OBSERVATIONS}{GOAL_KEY}")
GOALS = f"{INTERNAL}hindsight/goals"
RELABELLED = f"{INTERNAL}hindsight/relabelled"
"""Columns between units: the new goals, and which transitions they are for."""
Strategy = Literal["future", "final", "episode", "random"]


@parameter_class
class HindsightParameters:
    """Choice of the goals that replace the desired one, and how often."""

    goal: GoalSpace | None = None
    """Space of achieved goals in the observation, and their reward; None takes the goals of the
    agent's own level.
    """
    strategy: Strategy = "future"
    """future: achieved at or after this transition. final: at the episode's end. episode: anywhere
    in the episode. random: by any transition kept."""
    ratio: Annotated[float, Interval(ge=0, lt=math.inf)] = 4.0
    """k: relabelled transitions for each one left as it was, so k / (k + 1) of a batch."""
    goal_ends_episode: bool = False
    """Reaching the goal is terminal: nothing is bootstrapped behind it."""

    def at(self, place: LevelPlace) -> "Hindsight":
        """Resolve these parameters for a place in a stack.

        Raises:
            ConfigurationError: The goals are to be the level's own, and it has none; others than
                its own would be shown otherwise, or have to be built; or the agent acts in turn.
        """
        place.require_single_decisions("hindsight judges single decisions")
        if self.goal is not None and place.goal is not None and place.goal.learns:
            raise ConfigurationError(
                f"HindsightParameters.goal is a {type(self.goal).__name__}, and the level's goals "
                f"learn or follow a curriculum ({type(place.goal).__name__}); leave it at None: it "
                "takes those"
            )
        goal = self.goal or place.goal
        if goal is None:
            raise ConfigurationError(
                "HindsightParameters.goal is None, and the agent's level has no goals of its own; "
                "give it a GoalSpace"
            )
        if self.goal is not None and is_built(self.goal):
            raise ConfigurationError(
                f"HindsightParameters.goal is a {type(goal).__name__}, which a level builds; give "
                "it to a level as goal_space, or use a GoalSpace here"
            )
        shown = "absolute" if place.goal is None else place.goal.observed
        if place.level is not None and goal.observed != shown:
            raise ConfigurationError(
                f"HindsightParameters.goal has observed='{goal.observed}', and the agent's goals "
                f"are shown as {shown}, so batches would mix positions and displacements; set "
                f"observed='{shown}' (`relative` and `reach` are for actions of a level above)"
            )
        stops = place.level is not None and place.level.may_end_by(End.FAILURE)
        return Hindsight(**{**vars(self), "goal": goal, "stops_on_failure": stops})

    def check_filters(self, agent: Any, place: LevelPlace) -> None:
        """Raise `ConfigurationError` where the agent's filters change goals, or their rewards."""
        goal = self.at(place).goal
        # Goals that learn keep unfiltered what changes on its way to the agent.
        require_unfiltered(agent, set() if goal.learns else {goal.key})


@dataclass(frozen=True, kw_only=True)
class Hindsight:
    """Hindsight at a place in a stack: `HindsightParameters` with goals."""

    goal: GoalSpace
    """Space of achieved goals in the observation, and their reward."""
    strategy: Strategy
    """See `HindsightParameters`, as for the next two."""
    ratio: float
    goal_ends_episode: bool
    stops_on_failure: bool = False
    """If True, the level stops where the one below misses its goal: a failure under any goal that
    isn't reached there."""

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless such observations have a desired and an achieved goal."""
        self._check_methods()
        self.goal.check(observation_space)
        GoalSpace.check_given(self.goal, observation_space)  # goals with a time have one, too
        check_judging(self.goal, observation_space)
        achieved = np.dtype(observation_space[self.goal.key].dtype)
        shown = np.dtype(observation_space[GOAL_KEY].dtype)
        if achieved.kind == "f" != shown.kind:
            raise SpaceError(
                f"hindsight shows achieved goals, {achieved} under '{self.goal.key}', under "
                f"'{GOAL_KEY}', where {shown} would cut off their fractions; let the "
                "environment show both as floats"
            )

    @property
    def ledger(self) -> dict[str, Field]:
        """Columns that a store must keep of every transition for hindsight."""
        fields = {
            ACHIEVED: Field((len(self.goal.low),), np.float32),
            REACHED: Field((), np.bool_),
        }
        return fields | {FAILED: Field((), np.bool_)} if self.stops_on_failure else fields

    def kept(self, stored: Stored) -> dict[str, Array]:
        """The ledger's columns for transitions, [R, ...] each."""
        reached = self.judged(stored.before, stored.after).is_final
        values: dict[str, Array] = {
            ACHIEVED: self.goal.turned(self.goal.achieved(stored.after)),
            REACHED: reached,
        }
        if self.stops_on_failure:
            terminated = stored.columns[TERMINATED]
            values[FAILED] = self.failed(reached, terminated=terminated, below=stored.below)
        return values

    def failed(
        self, reached: BoolArray, *, terminated: BoolArray, below: Array | None
    ) -> BoolArray:
        """Failures that a level stopped on, bool [R].

        Args:
            reached: Whether the goal is reached, [R].
            terminated: Whether the transitions' values are final, [R].
            below: Bits of `End` of the level below, [R]; None: not known.
        """
        if below is None:
            return np.zeros(len(reached), np.bool_)
        return terminated & missed(below) & ~reached

    def judged(
        self,
        observation: Observation,
        next_observation: Observation,
        *,
        moved: FloatArray | float = 0.0,
    ) -> Verdict:
        """The verdict of the goal space on R transitions under the goals that they had.

        Args:
            observation: Before, [R, ...] each.
            next_observation: After, [R, ...] each.
            moved: Added to the goals, [R, G].
        """
        shown = observation[GOAL_KEY].reshape(-1, len(self.goal.low))
        goal = self.goal.seen(shown, observation) + moved
        return self.goal.judge(goal, self.goal.achieved(next_observation))

    def part(self, context: PartContext) -> "HindsightPart":
        """The part of the memory that relabels; SpaceError where the observations don't fit."""
        self.check(context.observation_space)
        return HindsightPart(self, context.owner)

    def units(self, store: RingStore, rng: np.random.Generator) -> "HindsightUnits":
        """Build the sampler units that relabel what a store keeps."""
        return HindsightUnits(
            HindsightGoals(store, rng, self),
            HindsightRewards(store, self),
            HindsightObservations(store, self),
        )

    def achieved_paths(self, store: RingStore) -> dict[str, tuple[str, str]]:
        """Columns that achieved goals are computed from, before and after decisions, by key."""
        keys = [self.goal.key]
        if self.goal.overridden("achieved"):  # it may read other keys, too
            keys = [*under(OBSERVATIONS, store.fields)]
        return {key: (f"{OBSERVATIONS}{key}", f"{NEXT_OBSERVATIONS}{key}") for key in keys}

    def _check_methods(self) -> None:
        """Raise `ConfigurationError` where the goals' class judges or shows more than goals."""
        kind = type(self.goal).__name__
        if self.goal.uses_before and not self.goal.learns:
            raise ConfigurationError(
                f"hindsight keeps what decisions achieved, and {kind}.judge needs what was "
                "achieved before them, too (uses_before); reward achieved goals alone, or set "
                "hindsight=None"
            )
        if callable(self.goal.reward):
            raise ConfigurationError(
                f"hindsight needs the rewards of other goals than a decision's own, which "
                f"{self.goal.reward_named} does not give; override GoalSpace.judge(goal, achieved) "
                "with rewards that need no more than achieved goals, or set hindsight=None"
            )
        judging = self.goal.overridden("verdict", "difference", "reached", "is_over")
        if judging and not self.goal.overridden("judge"):
            raise ConfigurationError(
                f"hindsight judges achieved goals alone, and {kind} overrides {judging[0]}(), "
                "which judges whole observations; override GoalSpace.judge(goal, achieved) "
                "instead, or set hindsight=None"
            )
        if showing := self.goal.overridden("show", "shown", "seen"):
            raise ConfigurationError(
                f"hindsight shows its goals as GoalSpace.show does, and {kind} overrides "
                f"{showing[0]}; leave that out, or set hindsight=None"
            )


class HindsightPart(MemoryPart):
    """The part of a memory that keeps what hindsight needs, and relabels what is drawn.

    Args:
        hindsight: How transitions are relabelled.
        owner: The agent, for warnings where its transitions are not those of hindsight; empty:
            there are none.
    """

    def __init__(self, hindsight: Hindsight, owner: str) -> None:
        self.hindsight = hindsight
        self._rounding = GoalRounding(hindsight.goal)
        self._comparisons: list[HindsightComparison] = []
        if owner and hindsight.ratio and not hindsight.goal.learns:
            self._comparisons = [HindsightComparison(hindsight, owner)]

    @property
    def ledger(self) -> dict[str, Field]:
        return self.hindsight.ledger

    def kept(self, stored: Stored) -> dict[str, Array]:
        """The ledger's columns for transitions, [R, ...] each.

        Warns:
            CoachWarning: Their goals, rewards or ends are not those of hindsight; once each.
        """
        kept = self.hindsight.kept(stored)
        if ACHIEVED in kept:
            self._rounding.check(kept[ACHIEVED])
        for comparison in self._comparisons:
            comparison.compare(stored)
        return kept

    def units(
        self,
        context: UnitContext,
        own: Sequence[SamplerUnit],  # noqa: ARG002 - as `MemoryPart`
    ) -> list[tuple[str, SamplerUnit]]:
        goals, rewards, observations = self.hindsight.units(context.store, context.rng)
        return [("window", goals), (goals.name, rewards), ("gather", observations)]


class HindsightUnits(NamedTuple):
    """The sampler units of hindsight."""

    goals: "HindsightGoals"
    rewards: SamplerUnit
    observations: SamplerUnit


class HindsightGoals(SamplerUnit):
    """Draws which transitions are relabelled, and with which goals."""

    name = "hindsight_goals"
    inputs = (POSITIONS,)
    outputs: tuple[str, ...] = (GOALS, RELABELLED)

    def __init__(self, store: RingStore, rng: np.random.Generator, params: Hindsight) -> None:
        self._store = store
        self._rng = rng
        self._strategy = params.strategy
        self._goal = params.goal
        self.fraction = params.ratio / (params.ratio + 1)
        """Fraction of a batch that is relabelled."""

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Goals [B, G] and whether to use them [B]."""
        relabelled, source = self._draw(batch[POSITIONS].numpy())
        return {
            GOALS: torch.from_numpy(self._goals(source)),
            RELABELLED: torch.from_numpy(relabelled),
        }

    def as_shown(self, observation: Observation) -> Observation:
        """The observations with hindsight goals of any transitions kept in their share."""
        if not self.fraction:
            return observation
        wanted = observation[GOAL_KEY]
        positions = self._store.draw(self._rng, len(wanted))
        chosen, source = self._draw(positions)
        goals, achieved = self._goals(source[chosen]), self._goals(positions[chosen])
        mixed = wanted.copy()
        mixed[chosen] = self._goal.shown_from(goals, achieved).reshape(-1, *wanted.shape[1:])
        return {**observation, GOAL_KEY: mixed}

    def _draw(self, positions: IntArray) -> tuple[BoolArray, IntArray]:
        """Draw which transitions to relabel, and the positions of the goals for them, [B] each."""
        relabelled = self._rng.random(len(positions)) < self.fraction
        return relabelled, self._sources(positions)

    def _goals(self, source: IntArray) -> FloatArray:
        """The goals that the transitions at these positions achieved, [B, G]."""
        return self._store.ledger[ACHIEVED].take(source, axis=0)

    def _sources(self, positions: IntArray) -> IntArray:
        """Positions of the transitions whose achieved goals are taken, [B]."""
        store = self._store
        if self._strategy == "random":
            return store.draw(self._rng, len(positions))
        first, end = store.episodes_of(positions)
        uniform = self._rng.random(len(positions))
        steps = goal_steps(self._strategy, store.steps_of(positions), first, end, uniform)
        return store.positions_of(store.rows_of(positions), steps)


class HindsightRewards(SamplerUnit):
    """Rewards and ends of the window as the new goals have them."""

    name = "hindsight_rewards"
    inputs: tuple[str, ...] = (
        POSITIONS,
        WINDOW_STEPS,
        WINDOW_REWARDS,
        WINDOW_TERMINATED,
        GOALS,
        RELABELLED,
    )
    outputs = (WINDOW_REWARDS, WINDOW_TERMINATED)

    def __init__(self, store: RingStore, params: Hindsight) -> None:
        self._store = store
        self._goal = params.goal
        self._is_terminal = params.goal_ends_episode
        self._stops_on_failure = params.stops_on_failure

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        # bool [B], C of them true
        ledger = self._store.ledger
        chosen = batch[RELABELLED].numpy()
        rewards = batch[WINDOW_REWARDS].numpy().copy()
        terminated = batch[WINDOW_TERMINATED].numpy().copy()
        rows = self._store.rows_of(batch[POSITIONS].numpy()[chosen])
        steps = batch[WINDOW_STEPS].numpy()[chosen]  # [C, n]
        where = self._store.positions_of(rows[:, None], steps)
        goals = self._wanted(batch, chosen, where)
        verdict = self._verdict(goals, where.ravel())
        for method, found in (("achieved", goals), ("judge", verdict.reward)):
            if not np.isfinite(found).all():
                raise NonFiniteError(
                    f"{type(self._goal).__name__}.{method} returned NaN or infinity, which an "
                    "agent cannot learn from in hindsight; return finite numbers"
                )
        reward, reached = verdict.reward.reshape(where.shape), verdict.is_final.reshape(where.shape)
        ends = terminated[chosen]
        if self._is_terminal:  # an end by reaching the old goal is dropped, any other end is kept
            ends = reached | (ends & ~ledger[REACHED].take(where))
        if self._stops_on_failure:
            failed = ledger[FAILED].take(where)  # [C, n]
            reward = np.where(failed & ~reached, rewards[chosen], reward)
            if not self._is_terminal:  # what reaches its goal is no failure, nor an end
                ends &= ~(failed & reached)
        rewards[chosen] = reward
        terminated[chosen] = ends
        return {
            WINDOW_REWARDS: torch.from_numpy(rewards),
            WINDOW_TERMINATED: torch.from_numpy(terminated),
        }

    def _wanted(self, batch: Columns, chosen: BoolArray, where: IntArray) -> FloatArray:
        """The new goals of the samples that are `chosen`, [B], at positions [C, n]: [C * n, G]."""
        return np.repeat(batch[GOALS].numpy()[chosen], where.shape[1], axis=0)

    def _verdict(self, goals: FloatArray, where: IntArray) -> Verdict:
        """The verdict of new goals [R, G] on the transitions at positions [R]."""
        return self._goal.judge(goals, self._store.ledger[ACHIEVED].take(where, axis=0))


class HindsightObservations(SamplerUnit):
    """Shows the new goals in the observations before and after."""

    name = "hindsight_observations"
    outputs: tuple[str, ...] = OBSERVED_GOALS

    def __init__(self, store: RingStore, params: Hindsight) -> None:
        self._goal = params.goal
        self._paths = params.achieved_paths(store)
        self.inputs = (GOALS, RELABELLED, *OBSERVED_GOALS)
        if params.goal.observed == "relative":  # to what is achieved
            read = dict.fromkeys(path for paths in self._paths.values() for path in paths)
            self.inputs += tuple(path for path in read if path not in OBSERVED_GOALS)

    def __call__(self, batch: Columns, size: int) -> Columns:
        """The desired goals, [B, ...] each."""
        before = batch[OBSERVED_GOALS[0]]
        goals = batch[GOALS].to(before.device, non_blocking=True).to(before.dtype)
        chosen = batch[RELABELLED].to(before.device, non_blocking=True)
        chosen = chosen.view(size, *(1 for _ in before.shape[1:]))
        return {
            path: torch.where(
                chosen, self._shown(goals, batch, path).view(before.shape), batch[path]
            )
            for path in OBSERVED_GOALS
        }

    def _shown(self, goals: Tensor, batch: Columns, path: str) -> Tensor:
        """The goals [B, G] as an observation shows them."""
        if self._goal.observed == "absolute":
            return goals
        after = path.startswith(NEXT_OBSERVATIONS)
        seen = {key: batch[paths[after]].cpu().numpy() for key, paths in self._paths.items()}
        shown = self._goal.shown_from(goals.cpu().numpy(), self._goal.achieved(seen))
        return torch.from_numpy(shown).to(goals)


def goal_steps(
    strategy: Strategy, steps: IntArray, first: IntArray, end: IntArray, uniform: FloatArray
) -> IntArray:
    """The steps whose achieved goals replace the desired ones, [B].

    With u uniform in [0, 1): future t + floor(u (end - t)), episode first + floor(u (end - first)),
    final end - 1.

    Args:
        strategy: future, final or episode.
        steps: Of the transitions, [B].
        first: First step of each one's episode, [B].
        end: The step behind its last, [B].
        uniform: Numbers in [0, 1), [B].
    """
    if strategy == "final":
        return end - 1
    begin = steps if strategy == "future" else first
    return begin + (uniform * (end - begin)).astype(np.int64)
