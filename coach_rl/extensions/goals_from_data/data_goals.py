"""Goals that are sampled from data: what trajectories achieved later, what others did, what is.

    ReplayMemoryParameters(parts=(DataGoalsParameters(),))

Every transition of a batch gets goals of its own, drawn again for each batch with the shares of
OGBench (Park et al. 2025, arXiv:2410.20092, appendix): one for values, in the place of the stored
goal and with its reward and end, and one for the policy, as the extra `actor_goal`. Transition t
achieves what its next observation shows; a trajectory is an episode that the memory keeps.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, GoalSpace, check_judging
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.extensions.data.block_filling import ShownAlone
from coach_rl.extensions.data.level_data import DataGoalsMaker
from coach_rl.extensions.hindsight.hindsight import OBSERVED_GOALS
from coach_rl.memories.batches import (
    DISCOUNTS,
    DURATIONS,
    INTERNAL,
    POSITIONS,
    REWARDS,
    TERMINATED,
    Columns,
    extra,
)
from coach_rl.memories.parts import MemoryPart, PartContext, ReplaySettings, Stored
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field

ACTOR_GOAL = "actor_goal"
"""Name of the extra of a batch that holds the goals of the policy, shaped like the stored goals."""
DATA_ACHIEVED = "/data_achieved"
"""Column: the goal that each transition achieves."""
ENDED_AT_GOAL = "/data_ended_at_goal"
"""Column: whether a transition is terminal because it reached the goal that it was stored with."""
VALUE_GOALS = f"{INTERNAL}data_goals/value"
ACTOR_GOALS = f"{INTERNAL}data_goals/actor"


@parameter_class
class GoalShares:
    """Shares of the kinds of goals, which add up to 1. Defaults: OGBench's for values."""

    current: UnitInterval = 0.2
    """Share of goals that the transition itself achieves."""
    trajectory: UnitInterval = 0.5
    """Share of goals that it, or a later one of its trajectory, achieves."""
    random: UnitInterval = 0.3
    """Share of goals that any transition achieves."""
    geometric: bool = True
    """Steps ahead in the trajectory are geometric, with the discount as the chance of each further
    one, up to the trajectory's end; False: uniform up to there."""

    def __post_init__(self) -> None:
        total = self.current + self.trajectory + self.random
        require(
            math.isclose(total, 1.0, abs_tol=1e-9),
            f"GoalShares.current, trajectory and random must add up to 1, got {total:g}",
        )


FUTURE = GoalShares(current=0.0, trajectory=1.0, random=0.0, geometric=False)
"""Uniform over the rest of the trajectory: OGBench's goals of policies."""


@parameter_class
class DataGoalsParameters(DataGoalsMaker):
    """Goals from data for a replay memory.

    The stored goals are never shown. Rewards and ends are those of the goals: where one is reached
    within its threshold, nothing is bootstrapped. The papers' code takes a goal as reached where it
    is the state itself.
    """

    goal: GoalSpace | None = None
    """Goals in the observation, and their reward; None: those of the agent's level."""
    value: GoalShares = GoalShares()
    """Goals of values: those that observations show."""
    actor: GoalShares | None = FUTURE
    """Goals of the policy, as the extra `actor_goal` of a batch; None: there are none."""
    actor_ahead: Positive[int] | None = None
    """If given, the policy's goals are what the trajectory achieves after so many simulator steps,
    or at its end, in place of `actor`: sub-goals of a hierarchy."""
    discount: Annotated[float, Interval(gt=0, le=1)] = 0.99
    """Gamma of the agent, for ends and for geometric steps; 1 for behaviour cloning, which has none
    and takes uniform steps."""

    def __post_init__(self) -> None:
        shares = [each for each in (self.value, self.actor) if each is not None]
        require(
            self.discount < 1 or not any(each.geometric for each in shares),
            "DataGoalsParameters.discount is 1, with which geometric steps ahead would never end; "
            "give GoalShares(geometric=False), or a discount below 1",
        )

    def check(self, memory: ReplaySettings) -> None:
        check_plain(memory, type(self).__name__)

    def at(self, context: PartContext) -> "DataGoals":
        goal = goal_at(self.goal, context, type(self).__name__)
        return DataGoals(self, goal)


def check_plain(memory: ReplaySettings, name: str) -> None:
    """Raise `ParameterError` unless a memory draws single transitions with one-step returns.

    Args:
        memory: Its settings.
        name: The part that needs them.
    """
    require(
        memory.n_step == 1 and memory.relabelling is None and memory.draws.is_single,
        f"{name} gives each transition goals of its own; leave out n_step ({memory.n_step}), "
        "relabelling and sequences of the replay memory, and recurrent networks",
    )


def goal_at(given: GoalSpace | None, context: PartContext, name: str) -> GoalSpace:
    """The goals of a part of a memory.

    Args:
        given: Those of its parameters.
        context: Its surroundings.
        name: The part.

    Raises:
        ConfigurationError: There are none, or more is needed for them than what was achieved.
        SpaceError: The observations have none.
    """
    place: LevelPlace = context.place
    place.require_single_decisions(f"{name} judges single decisions")
    goal = given or place.goal
    if goal is None:
        raise ConfigurationError(
            f"{name}.goal is None, and the agent's level has no goals of its own; give it a "
            "GoalSpace, e.g. the world's goal_space"
        )
    own = goal.overridden("show", "shown", "seen", "verdict", "difference", "reached", "is_over")
    needs_more = callable(goal.reward) or goal.learns or goal.uses_before or goal.ages
    if needs_more or own or goal.relative or goal.observed != "absolute":
        raise ConfigurationError(
            f"{name} shows what was achieved as goals and judges it alone; {type(goal).__name__} "
            "must have absolute goals, with a sparse or dense reward, that don't learn or age"
            + (f", and leave {own[0]} as it is" if own else "")
        )
    check_goal(goal, context.observation_space)
    return goal


def check_goal(goal: GoalSpace, observation_space: spaces.Dict) -> None:
    """Raise `SpaceError` unless observations show a desired goal and what is achieved."""
    goal.check(observation_space)
    GoalSpace.check_given(goal, observation_space)
    check_judging(goal, observation_space)


class DataGoals(MemoryPart):
    """Columns and sampler units of goals from data.

    Args:
        params: Which goals.
        goal: Their space.
    """

    def __init__(self, params: DataGoalsParameters, goal: GoalSpace) -> None:
        self._params = params
        self._goal = goal

    @property
    def ledger(self) -> Mapping[str, Field]:
        return {
            DATA_ACHIEVED: Field((self._goal.size,), np.float32),
            ENDED_AT_GOAL: Field((), np.bool_),
        }

    def kept(self, stored: Stored) -> Mapping[str, Array]:
        goal = self._goal
        achieved = goal.turned(goal.achieved(stored.after))
        own = goal.given_by(stored.after)
        reached = goal.judge(own, achieved).is_final
        return {DATA_ACHIEVED: achieved, ENDED_AT_GOAL: stored.columns[TERMINATED] & reached}

    def units(
        self,
        context: UnitContext,
        own: Sequence[SamplerUnit],  # noqa: ARG002 - of every part
    ) -> list[tuple[str, SamplerUnit]]:
        drawn = DrawnGoals(self._params, self._goal, context)
        return [("gather", ShownGoals(self._goal, drawn.outputs)), ("n_step", drawn)]


class DrawnGoals(SamplerUnit):
    """Draws the goals of a batch; rewards and ends are those of the goals for values.

    Args:
        params: Which goals.
        goal: Their space.
        context: The unit's surroundings.

    Raises:
        ConfigurationError: The memory has another discount.
    """

    name = "data_goals"
    inputs = (POSITIONS, DISCOUNTS)

    def __init__(self, params: DataGoalsParameters, goal: GoalSpace, context: UnitContext) -> None:
        self._store = context.store
        self._rng = context.rng
        self._params = params
        self._goal = goal
        self._discount = np.float32(params.discount)
        has_actor = params.actor is not None or params.actor_ahead is not None
        self.outputs = (REWARDS, DISCOUNTS, VALUE_GOALS, *([ACTOR_GOALS] * has_actor))

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 - as SamplerUnit
        params = self._params
        self._check_discount(batch[DISCOUNTS].numpy())
        positions = batch[POSITIONS].numpy()
        source = drawn_goals(params.value, positions, self._store, self._rng, params.discount)
        goals = self._achieved(source)
        ledger = self._store.ledger
        verdict = self._goal.judge(goals, self._achieved(positions))
        # An end at the stored goal is none for another goal; every other end stays one.
        is_end = ledger[TERMINATED].take(positions) & ~ledger[ENDED_AT_GOAL].take(positions)
        discounts = np.where(verdict.is_final | is_end, np.float32(0), self._discount)
        made = {
            REWARDS: torch.from_numpy(verdict.reward.astype(np.float32)),
            DISCOUNTS: torch.from_numpy(discounts),
            VALUE_GOALS: torch.from_numpy(goals),
        }
        if params.actor_ahead is not None:
            _, ends = self._store.episodes_of(positions)
            steps = steps_ahead(self._store, positions, ends - 1, params.actor_ahead)
            source = self._store.positions_of(self._store.rows_of(positions), steps)
        elif params.actor is not None:
            source = drawn_goals(params.actor, positions, self._store, self._rng, params.discount)
        else:
            return made
        return {**made, ACTOR_GOALS: torch.from_numpy(self._achieved(source))}

    def _achieved(self, positions: IntArray) -> FloatArray:
        return self._store.ledger[DATA_ACHIEVED].take(positions, axis=0)

    def _check_discount(self, discounts: FloatArray) -> None:
        others = discounts[(discounts != 0) & (discounts != self._discount)]
        if len(others):
            raise ConfigurationError(
                f"DataGoalsParameters.discount is {self._params.discount}, and the agent discounts "
                f"by {others[0]:g}; give both the same discount, and leave out "
                "discount_by_duration"
            )


class ShownGoals(ShownAlone):
    """Shows the drawn goals in the observations, and as the extra `actor_goal`.

    Args:
        goal: Their space.
        drawn: The columns of goals that are there.
    """

    name = "shown_data_goals"

    def __init__(self, goal: GoalSpace, drawn: Sequence[str]) -> None:
        self.unfiltered = (GOAL_KEY, goal.key)
        self._goal = goal
        has_actor = ACTOR_GOALS in drawn
        self.inputs = (VALUE_GOALS, *([ACTOR_GOALS] * has_actor), *OBSERVED_GOALS)
        self.outputs = (*OBSERVED_GOALS, *([extra(ACTOR_GOAL)] * has_actor))
        self._sources = {path: VALUE_GOALS for path in OBSERVED_GOALS}
        if has_actor:
            self._sources[extra(ACTOR_GOAL)] = ACTOR_GOALS

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 - as SamplerUnit
        like = batch[OBSERVED_GOALS[0]]
        return {path: shaped_like(like, batch[source]) for path, source in self._sources.items()}

    def as_shown(self, observation: Observation) -> Observation:
        return with_achieved(self._goal, observation)


def with_achieved(goal: GoalSpace, observation: Observation) -> Observation:
    """Observations [R, ...] each whose goals are what they achieve: batches hold no stored goals.

    Args:
        goal: The goals' space.
        observation: With stored goals, as the environment shows it; not written to.
    """
    stored = observation[GOAL_KEY]
    achieved = goal.turned(goal.achieved(observation))
    return {**observation, GOAL_KEY: achieved.reshape(stored.shape).astype(stored.dtype)}


def shaped_like(stored: Tensor, goals: Tensor) -> Tensor:
    """Goals [B, G] on the device, and with the type and shape, of stored ones [B, ...]."""
    return goals.to(stored.device, stored.dtype, non_blocking=True).view(stored.shape)


def drawn_goals(
    shares: GoalShares,
    positions: IntArray,
    store: RingStore,
    rng: np.random.Generator,
    discount: float,
) -> IntArray:
    """The positions of transitions whose achievements are the goals of those at positions, [B].

    Args:
        shares: Which goals.
        positions: Of the transitions of a batch, [B].
        store: Where they are kept.
        rng: Draws the goals.
        discount: Gamma, of geometric steps.
    """
    kind = rng.random(len(positions))
    uniform = rng.random(len(positions))
    anywhere = store.draw(rng, len(positions))
    steps = store.steps_of(positions)
    _, ends = store.episodes_of(positions)
    later = trajectory_steps(steps, ends, uniform, discount if shares.geometric else None)
    in_trajectory = store.positions_of(store.rows_of(positions), later)
    chosen = np.where(kind < shares.current + shares.trajectory, in_trajectory, anywhere)
    return np.where(kind < shares.current, positions, chosen)


def trajectory_steps(
    steps: IntArray, ends: IntArray, uniform: FloatArray, discount: float | None
) -> IntArray:
    """The steps of trajectories whose achievements are goals, [B].

    With u uniform in [0, 1): t + floor(u (end - t)), or min(t + floor(log(1 - u) / log(gamma)),
    end - 1), where each further step has the chance gamma.

    Args:
        steps: t, of the transitions, [B].
        ends: The step behind the last of each one's trajectory, [B].
        uniform: Numbers in [0, 1), [B].
        discount: Gamma, of geometric steps; None: uniform ones.
    """
    if discount is None:
        return steps + (uniform * (ends - steps)).astype(np.int64)
    further = np.floor(np.log1p(-uniform) / np.log(discount))
    chosen: IntArray = np.minimum(steps + further.astype(np.int64), ends - 1)
    return chosen


def steps_ahead(
    store: RingStore, positions: IntArray, last: IntArray, simulator_steps: int
) -> IntArray:
    """The steps of decisions by which so many simulator steps have passed, [B].

    Args:
        store: Where they are kept.
        positions: Of the decisions to count from, theirs included, [B].
        last: The latest step that may be returned, [B].
        simulator_steps: K; a decision takes one or more.
    """
    steps = store.steps_of(positions)
    window = steps[:, None] + np.arange(simulator_steps)  # [B, K]
    within = store.positions_of(
        store.rows_of(positions)[:, None], np.minimum(window, last[:, None])
    )
    passed = store.ledger[DURATIONS].take(within).cumsum(axis=1)
    before: BoolArray = passed < simulator_steps
    chosen: IntArray = np.minimum(steps + np.count_nonzero(before, axis=1), last)
    return chosen
