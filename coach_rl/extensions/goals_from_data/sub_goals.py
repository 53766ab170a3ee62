"""Sub-goals cut from trajectories: what data achieve some steps ahead, as decisions of a level.

    ReplayMemoryParameters(parts=(SubGoalsFromDataParameters(ahead=25),))

A transition of a batch becomes the decision for the goal, of the level below, that its trajectory
achieves so many simulator steps later: the action is that sub-goal, the next observation what was
seen there. It is cut at the goal of the decision where that is nearer, and at the trajectory's end
(Park et al. 2023, arXiv:2307.11949, section 5; the cuts of the authors' code). Memories keep data
step by step; of decisions in the world, which take several steps, as many are joined as needed.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
import torch
from annotated_types import Interval
from gymnasium import spaces

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, FloatArray, IntArray, Observation
from coach_rl.extensions.data.block_filling import ShownAlone
from coach_rl.extensions.data.level_data import DataGoalsMaker
from coach_rl.extensions.goals_from_data.data_goals import (
    DATA_ACHIEVED,
    FUTURE,
    GoalShares,
    check_plain,
    drawn_goals,
    goal_at,
    shaped_like,
    steps_ahead,
    with_achieved,
)
from coach_rl.extensions.hindsight.hindsight import OBSERVED_GOALS
from coach_rl.memories.batches import (
    ACTIONS,
    ENDS,
    INTERNAL,
    POSITIONS,
    Columns,
)
from coach_rl.memories.parts import MemoryPart, PartContext, ReplaySettings, Stored
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field

SUB_ACHIEVED = "/data_sub_achieved"
"""Column: the goal of the level below that each transition achieves."""
CUT_GOALS = f"{INTERNAL}cuts/goals"
CUT_SUB_GOALS = f"{INTERNAL}cuts/sub_goals"


@parameter_class
class SubGoalsFromDataParameters(DataGoalsMaker):
    """Decisions of a level above the lowest, cut from trajectories.

    Rewards and ends of a batch are not those of its decisions: for agents that learn from goals,
    sub-goals and values of another level, such as `HIQLUpperAgentParameters`.
    """

    goal: GoalSpace | None = None
    """Goals in the observation; None: those of the agent's level."""
    shares: GoalShares = FUTURE
    """Goals of the decisions."""
    ahead: Positive[int] = 25
    """Simulator steps from a decision to its sub-goal: OGBench's. The horizon of the level below
    should be about as long."""
    discount: Annotated[float, Interval(gt=0, lt=1)] = 0.99
    """Gamma of geometric steps to goals, where `shares` has them."""

    def check(self, memory: ReplaySettings) -> None:
        check_plain(memory, type(self).__name__)

    def at(self, context: PartContext) -> "CutDecisions":
        name = type(self).__name__
        goal = goal_at(self.goal, context, name)
        return CutDecisions(self, goal, sub_goal_at(context.place, context.observation_space, name))


def sub_goal_at(place: LevelPlace, observation_space: spaces.Dict, name: str) -> GoalSpace:
    """The goals of the level below, which can be cut from trajectories.

    Args:
        place: The place of the agent that sends them.
        observation_space: What it observes.
        name: The part of its memory that cuts.

    Raises:
        ConfigurationError: There are none, or more is needed for them than what was achieved.
    """
    sub_goal = place.sub_goal
    if sub_goal is None or sub_goal.relative or sub_goal.learns or sub_goal.ages:
        raise ConfigurationError(
            f"{name} sends what was achieved as goals to the level below, which needs absolute "
            "goals that don't learn or age; give that level a GoalSpace, or use "
            "DataGoalsParameters at the lowest level"
        )
    place.require_sub_goals_as_actions(name)
    sub_goal.check(observation_space)
    return sub_goal


class CutDecisions(MemoryPart):
    """Columns and sampler units of decisions that are cut from trajectories.

    Args:
        params: Which decisions.
        goal: Goals of the level.
        sub_goal: Goals of the level below.
    """

    def __init__(
        self, params: SubGoalsFromDataParameters, goal: GoalSpace, sub_goal: GoalSpace
    ) -> None:
        self._params = params
        self._goal = goal
        self._sub_goal = sub_goal

    @property
    def ledger(self) -> Mapping[str, Field]:
        return {
            DATA_ACHIEVED: Field((self._goal.size,), np.float32),
            SUB_ACHIEVED: Field((self._sub_goal.size,), np.float32),
        }

    def kept(self, stored: Stored) -> Mapping[str, Array]:
        return {
            DATA_ACHIEVED: self._goal.turned(self._goal.achieved(stored.after)),
            SUB_ACHIEVED: self._sub_goal.turned(self._sub_goal.achieved(stored.after)),
        }

    def units(
        self,
        context: UnitContext,
        own: Sequence[SamplerUnit],  # noqa: ARG002 - of every part
    ) -> list[tuple[str, SamplerUnit]]:
        shown = ShownCuts(self._goal, self._sub_goal, context)
        return [("gather", shown), ("n_step", DrawnCuts(self._params, context))]


class DrawnCuts(SamplerUnit):
    """Draws the goals of a batch of decisions, and cuts its sub-goals.

    Args:
        params: Which decisions.
        context: The unit's surroundings.
    """

    name = "data_cuts"
    inputs = (POSITIONS,)
    outputs = (ENDS, CUT_GOALS, CUT_SUB_GOALS)

    def __init__(self, params: SubGoalsFromDataParameters, context: UnitContext) -> None:
        self._store = context.store
        self._rng = context.rng
        self._params = params

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 - as SamplerUnit
        params = self._params
        store = self._store
        positions = batch[POSITIONS].numpy()
        goals = drawn_goals(params.shares, positions, store, self._rng, params.discount)
        last = self._last(positions, goals)
        steps = steps_ahead(store, positions, last, params.ahead)
        ends = store.positions_of(store.rows_of(positions), steps)
        return {
            ENDS: torch.from_numpy(ends),
            CUT_GOALS: self._taken(DATA_ACHIEVED, goals),
            CUT_SUB_GOALS: self._taken(SUB_ACHIEVED, ends),
        }

    def _last(self, positions: IntArray, goals: IntArray) -> IntArray:
        """The latest steps that sub-goals may come from, [B]: the goal's, or the trajectory's."""
        store = self._store
        steps = store.steps_of(positions)
        goal_steps = store.steps_of(goals)
        _, ends = store.episodes_of(positions)
        is_ahead = (store.rows_of(goals) == store.rows_of(positions)) & (goal_steps >= steps)
        return np.where(is_ahead, np.minimum(goal_steps, ends - 1), ends - 1)

    def _taken(self, path: str, positions: IntArray) -> torch.Tensor:
        return torch.from_numpy(self._store.ledger[path].take(positions, axis=0))


class ShownCuts(ShownAlone):
    """Shows the goals in the observations, and the sub-goals as actions.

    Args:
        goal: Goals of the level.
        sub_goal: Goals of the level below.
        context: The unit's surroundings; SpaceError where sub-goals have no way back through the
            agent's OutputFilter.
    """

    name = "shown_data_cuts"
    inputs = (CUT_GOALS, CUT_SUB_GOALS, ACTIONS, *OBSERVED_GOALS)
    outputs = (ACTIONS, *OBSERVED_GOALS)

    def __init__(self, goal: GoalSpace, sub_goal: GoalSpace, context: UnitContext) -> None:
        self.unfiltered = tuple({GOAL_KEY, goal.key, sub_goal.key})
        self._goal = goal
        self._bounds = sub_goal.bounds
        self._filter = context.output_filter
        self._chosen(np.zeros((1, sub_goal.size), np.float32))  # SpaceError: no way back

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 - as SamplerUnit
        goals = {path: shaped_like(batch[path], batch[CUT_GOALS]) for path in OBSERVED_GOALS}
        chosen = torch.from_numpy(self._chosen(batch[CUT_SUB_GOALS].numpy()))
        return {**goals, ACTIONS: shaped_like(batch[ACTIONS], chosen)}

    def as_shown(self, observation: Observation) -> Observation:
        return with_achieved(self._goal, observation)

    def _chosen(self, sub_goals: FloatArray) -> FloatArray:
        """The agent's actions [B, G] that send sub-goals [B, G], within their bounds."""
        low, high = self._bounds
        sent = np.minimum(np.maximum(sub_goals, low), high).astype(np.float32, copy=False)
        return sent if self._filter is None else np.asarray(self._filter.inverse(sent))
