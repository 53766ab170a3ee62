"""Hindsight actions and sub-goal tests (Levy et al. 2019, arXiv:1712.00948, section 4).

The actions of an upper level are sub-goals. The memory stores them as they were sent; batches show
them in two ways. *Hindsight actions*: a missed sub-goal is replaced by what the level below did
achieve, so that a level learns as though the one below were optimal already. *Tests*: where the
decision was tested and the level below used up its horizon, the sub-goal that was sent gets the
penalty as its reward and is terminal, so that a level learns to avoid unreachable sub-goals.
"""

from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Lt

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.goals import GoalSpace, TimedGoalSpace
from coach_rl.core.interfaces import OutputFilter
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
from coach_rl.memories.batches import (
    ACHIEVED_ACTIONS,
    ACTIONS,
    DISCOUNTS,
    KEEPS,
    MISSED,
    PENALISED,
    POSITIONS,
    RELABELLED,
    REWARDS,
    TESTS,
    Columns,
)
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field


@parameter_class
class HindsightActionParameters:
    """Settings of hindsight actions: how an upper level's sub-goals are shown in batches."""

    penalty: Annotated[float, Lt(0)] | None = None
    """Reward of a tested sub-goal for which the level below used up its horizon; None: minus the
    level's own horizon, the lowest return of a sub-episode with -1 a decision.
    """

    def at(
        self, place: LevelPlace, goal: GoalSpace, output_filter: OutputFilter | None
    ) -> "HindsightActions":
        """Resolve these parameters for a place in a stack.

        Args:
            place: Where in a stack the agent decides.
            goal: The goals that reward it.
            output_filter: What its actions pass on their way out; None: nothing.

        Raises:
            ConfigurationError: The level below has no goals, or the penalty is not known.
        """
        name = "" if place.level is None else f"level '{place.level.name}': "
        if place.sub_goal is None:
            raise ConfigurationError(
                f"{name}hindsight actions need a level below that has goals; "
                "leave them out at the lowest level"
            )
        if place.level is not None and place.level.stops_on_failure != "never":
            raise ConfigurationError(
                f"{name}hindsight actions turn sub-goals that were missed into others that were "
                "reached, stops_on_failure lets them end the episode; choose one: set "
                "HACAgentParameters.actions=None, or stops_on_failure='never'"
            )
        owner = f"{name}hindsight, which replaces actions,"
        place.require_sub_goals_as_actions(owner, restated=True)
        horizon = None if place.level is None else place.level.horizon
        if isinstance(place.goal, TimedGoalSpace) and goal.reward == "sparse":
            horizon = 1  # rewards of 0 and 1, once: -1 is worse than any
        if self.penalty is None and horizon is None:
            raise ConfigurationError(
                f"{name}the penalty of a missed test is minus the level's horizon, and it has "
                "none; give it a horizon or HindsightActionParameters.penalty"
            )
        if self.penalty is None and goal.reward != "sparse":
            raise ConfigurationError(
                f"{name}the penalty of a missed test is minus the level's horizon, what decisions "
                f"of -1 add up to, and its goals have other rewards ({goal.reward_named}); give "
                "HindsightActionParameters.penalty, or make the goals 'sparse'"
            )
        penalty = self.penalty if self.penalty is not None else -float(horizon or 0)
        resolved = {**vars(self), "penalty": penalty, "sub_goal": place.sub_goal}
        return HindsightActions(**resolved, output_filter=output_filter)


@dataclass(frozen=True, kw_only=True)
class HindsightActions(HindsightActionParameters):
    """`HindsightActionParameters` at a place in a stack."""

    sub_goal: GoalSpace
    """The goals of the level below."""
    penalty: float
    """Reward of a missed test."""
    output_filter: OutputFilter | None
    """The agent's output filter, which its sub-goals pass; None: no filter."""

    @property
    def ledger(self) -> dict[str, Field]:
        """Columns that a store must keep of every transition."""
        return {
            ACHIEVED_ACTIONS: Field(self.sub_goal.space.shape, np.float32),
            MISSED: Field((), np.bool_),
            PENALISED: Field((), np.bool_),
        }

    def ledger_values(
        self,
        observation: Observation,
        next_observation: Observation,
        *,
        duration: IntArray,
        below: Array | None,
        tested: BoolArray | None,
    ) -> dict[str, Array]:
        """The ledger's columns for transitions, [R, ...] each.

        Args:
            observation: Before, [R, ...] each.
            next_observation: After, [R, ...] each.
            duration: Simulator steps that they took, [R].
            below: Bits of `End` of the level below, [R]; None: not known, taken as reached.
            tested: Whether the decisions were tested, [R]; None: none was.
        """
        actions = self.sub_goal.asked_in_hindsight(observation, next_observation, duration)
        if actions.shape[1:] != self.sub_goal.space.shape:
            raise RunError(
                f"{type(self.sub_goal).__name__}.asked_in_hindsight() returned an array of shape "
                f"{actions.shape} for {len(duration)} rows; needed are actions of shape "
                f"{self.sub_goal.space.shape}, as its space has them"
            )
        none = np.zeros(len(actions), np.bool_)
        used_up = none if below is None else missed(below)
        changing = self.changing
        return {
            ACHIEVED_ACTIONS: changing.meant(actions) if changing else self.as_action(actions),
            MISSED: none if below is None else (below & np.uint8(End.GOAL)) == 0,
            PENALISED: none if tested is None else tested & used_up,
        }

    def units(self, context: UnitContext, ratio: float) -> list[tuple[str, SamplerUnit]]:
        """The sampler units, each with the name of the one that it follows.

        Args:
            context: Their surroundings.
            ratio: Transitions with hindsight goals for each one with the goal it had.
        """
        behind = "sub_goals" if self.changing else "hindsight_observations"
        return [
            ("hindsight_goals", SubGoalTests(context, self, ratio)),
            (behind, HindsightActionsShown(context, self)),
        ]

    @property
    def changing(self) -> Any:
        """The goals of the level below if their bounds move: the ledger keeps what actions mean."""
        return self.sub_goal if self.sub_goal.action_changes else None

    def as_action(self, actions: FloatArray) -> Array:
        """The agent's actions [R, G] for sub-goals, before its OutputFilter."""
        if self.output_filter is None:
            return actions
        return np.asarray(self.output_filter.inverse(actions))


class SubGoalTests(SamplerUnit):
    """Draws which transitions are shown as tests, and which keep the sub-goal that was sent.

    Of the 2 + k ways to show a test that was missed (the test itself, the hindsight action, and
    that with each of k hindsight goals) one is the test.
    """

    name = "sub_goal_tests"
    inputs = (POSITIONS, RELABELLED)
    outputs = (RELABELLED, TESTS, KEEPS)

    def __init__(self, context: UnitContext, params: HindsightActions, ratio: float) -> None:
        self._ledger, self._rng, self._params = context.store.ledger, context.rng, params
        self._fraction = 1 / (2 + ratio)

    def __call__(self, batch: Columns, size: int) -> Columns:
        """Draw which goals to relabel, which to show as tests, which actions to keep, bool [B]."""
        positions = batch[POSITIONS].numpy()
        drawn = self._rng.random(size) < self._fraction
        tests = drawn & self._ledger[PENALISED].take(positions)
        missed = self._ledger[MISSED].take(positions)
        keeps = ~missed | tests
        relabelled = batch[RELABELLED].numpy() & ~tests
        return {
            RELABELLED: torch.from_numpy(relabelled),
            TESTS: torch.from_numpy(tests),
            KEEPS: torch.from_numpy(keeps),
        }


class HindsightActionsShown(SamplerUnit):
    """Shows what was achieved as the action, and tests that were missed with their penalty."""

    name = "hindsight_actions"
    inputs = (POSITIONS, TESTS, KEEPS, ACTIONS, REWARDS, DISCOUNTS)
    outputs = (ACTIONS, REWARDS, DISCOUNTS)

    def __init__(self, context: UnitContext, params: HindsightActions) -> None:
        self._ledger = context.store.ledger
        self._penalty = params.penalty
        self._params = params

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        """Actions [B, G], rewards [B] and discounts [B]."""
        shown = batch[ACTIONS]
        tests = batch[TESTS]
        kept = self._ledger[ACHIEVED_ACTIONS].take(batch[POSITIONS].numpy(), axis=0)
        changing = self._params.changing
        if changing:
            kept = self._params.as_action(changing.scaled(kept))
        achieved = torch.from_numpy(np.asarray(kept, np.float32))
        keeps = batch[KEEPS].to(shown.device, non_blocking=True)[:, None]
        return {
            ACTIONS: torch.where(keeps, shown, achieved.to(shown.device, non_blocking=True)),
            REWARDS: torch.where(tests, self._penalty, batch[REWARDS]),
            DISCOUNTS: torch.where(tests, 0.0, batch[DISCOUNTS]),
        }
