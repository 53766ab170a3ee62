"""Hindsight actions and sub-goal tests (Levy et al. 2019, arXiv:1712.00948, section 4).

The actions of an upper level are sub-goals. The memory stores them as they were sent; batches show
them in two ways. *Hindsight actions*: a missed sub-goal is replaced by what the level below did
achieve, so that a level learns as though the one below were optimal already. *Tests*: where the
decision was tested and the level below used up its horizon, the sub-goal that was sent gets the
penalty as its reward and is terminal, so that a level learns to avoid unreachable sub-goals.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import torch
from annotated_types import Lt
from gymnasium import spaces

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import (
    ActionError,
    ConfigurationError,
    RunError,
    SpaceError,
    require,
)
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, End, FloatArray, missed
from coach_rl.extensions.hindsight.hindsight import RELABELLED
from coach_rl.extensions.hindsight.hindsight_filters import require_unfiltered
from coach_rl.memories.batches import (
    ACTIONS,
    DISCOUNTS,
    DURATIONS,
    INTERNAL,
    POSITIONS,
    REWARDS,
    Columns,
)
from coach_rl.memories.parts import (
    MemoryPart,
    MemoryPartParameters,
    PartContext,
    ReplaySettings,
    Stored,
)
from coach_rl.memories.samplers import SamplerUnit, UnitContext
from coach_rl.memories.tables import Field

ACHIEVED_ACTIONS = "/achieved_actions"
MISSED = "/missed"
PENALISED = "/penalised"
"""Columns: the achieved sub-goal as an action, whether the sub-goal that was sent was missed, and
whether it was tested and is penalised."""
TESTS = f"{INTERNAL}hindsight/tests"
KEEPS = f"{INTERNAL}hindsight/keeps_action"
"""Columns between units: which transitions are shown as tests, and which with their own action."""
_PROBES = np.array([[0.0], [0.3], [1.0]])
"""Points in the range of a sub-goal's elements at which the inverse is tested, [3, 1]."""
_PRECISION = 1e-4
"""Largest error of the way there and back, in parts of an element's range."""


@parameter_class
class HindsightActionParameters(MemoryPartParameters):
    """Settings of hindsight actions: how an upper level's sub-goals are shown in batches.

    A part of `ReplayMemoryParameters` with hindsight, whose ratio may be 0.
    """

    penalty: Annotated[float, Lt(0)] | None = None
    """Reward of a tested sub-goal for which the level below used up its horizon; None: the lowest
    return under the level's goals, minus its horizon with -1 a decision, or -1 if that is 0.
    """

    def check(self, memory: ReplaySettings) -> None:
        require(
            memory.relabelling is not None,
            "HindsightActionParameters, a part of ReplayMemoryParameters, go with hindsight; "
            "set relabelling=HindsightParameters() too (its ratio may be 0)",
        )

    def check_filters(self, agent: Any, place: LevelPlace) -> None:
        if place.sub_goal is None:
            return
        require_unfiltered(agent, {place.sub_goal.key})
        reason = _no_way_back(agent.output_filter, place.sub_goal.space)
        if reason is not None:
            raise ConfigurationError(
                f"agent '{agent.name}': HindsightActionParameters shows what was achieved as "
                "actions, and the OutputFilter has no exact way back to the agent's space: "
                f"{reason}; use LinearBoxToBoxMap or none, or leave out HindsightActionParameters"
            )

    def at(self, context: PartContext) -> "HindsightActions":
        place = context.place
        goal = context.relabelling.goal
        name = "" if place.level is None else f"level '{place.level.name}': "
        if place.sub_goal is None:
            raise ConfigurationError(
                f"{name}hindsight actions need a level below that has goals; "
                "leave them out at the lowest level"
            )
        if place.level is not None and place.level.may_end_by(End.FAILURE):
            raise ConfigurationError(
                f"{name}hindsight actions turn sub-goals that were missed into others that were "
                "reached, StopOnFailure lets them end the episode; choose one: set "
                "HACAgentParameters.actions=None, or leave StopOnFailure out"
            )
        owner = f"{name}hindsight, which replaces actions,"
        place.require_sub_goals_as_actions(owner, restated=True)
        return HindsightActions(
            penalty=self._penalty(name, place, goal) if self.penalty is None else self.penalty,
            sub_goal=place.sub_goal,
            output_filter=context.output_filter,
            ratio=context.relabelling.ratio,
        )

    def _penalty(self, name: str, place: LevelPlace, goal: GoalSpace) -> float:
        """The lowest return under the level's goals, below 0; ConfigurationError if not known."""
        horizon = None if place.level is None else place.level.horizon
        returns = goal.returns(horizon)
        if returns is not None:
            return returns[0] if returns[0] < 0 else -1.0
        if goal.reward != "sparse":
            raise ConfigurationError(
                f"{name}the penalty of a missed test is minus the level's horizon, what decisions "
                f"of -1 add up to, and its goals have other rewards ({goal.reward_named}); give "
                "HindsightActionParameters.penalty, or make the goals 'sparse'"
            )
        raise ConfigurationError(
            f"{name}the penalty of a missed test is minus the level's horizon, and it has "
            "none; give it a horizon or HindsightActionParameters.penalty"
        )


@dataclass(frozen=True, kw_only=True)
class HindsightActions(MemoryPart):
    """`HindsightActionParameters` at a place in a stack."""

    sub_goal: GoalSpace
    """The goals of the level below."""
    penalty: float
    """Reward of a missed test."""
    output_filter: OutputFilter | None
    """The agent's output filter, which its sub-goals pass; None: no filter."""
    ratio: float
    """Transitions with hindsight goals for each one with the goal it had."""

    @property
    def ledger(self) -> dict[str, Field]:
        return {
            ACHIEVED_ACTIONS: Field(self.sub_goal.space.shape, np.float32),
            MISSED: Field((), np.bool_),
            PENALISED: Field((), np.bool_),
        }

    def kept(self, stored: Stored) -> dict[str, Array]:
        duration = stored.columns[DURATIONS]
        actions = self.sub_goal.asked_in_hindsight(stored.before, stored.after, duration)
        if actions.shape[1:] != self.sub_goal.space.shape:
            raise RunError(
                f"{type(self.sub_goal).__name__}.asked_in_hindsight() returned an array of shape "
                f"{actions.shape} for {len(duration)} rows; needed are actions of shape "
                f"{self.sub_goal.space.shape}, as its space has them"
            )
        below = stored.below
        tested = stored.tested
        none = np.zeros(len(actions), np.bool_)
        used_up = none if below is None else missed(below)
        changing = self.changing
        return {
            ACHIEVED_ACTIONS: changing.meant(actions) if changing else self.as_action(actions),
            MISSED: none if below is None else (below & np.uint8(End.GOAL)) == 0,
            PENALISED: none if tested is None else tested & used_up,
        }

    def units(
        self, context: UnitContext, own: Sequence[SamplerUnit]
    ) -> list[tuple[str, SamplerUnit]]:
        for unit in own:
            if ACTIONS in unit.outputs:
                raise ConfigurationError(
                    f"sampler unit '{unit.name}' and hindsight actions both replace sub-goals; "
                    "leave out the unit, or the actions (HACAgentParameters.actions=None)"
                )
        return [
            ("hindsight_goals", SubGoalTests(context, self)),
            ("hindsight_observations", HindsightActionsShown(context, self)),
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

    def __init__(self, context: UnitContext, params: HindsightActions) -> None:
        self._ledger = context.store.ledger
        self._rng = context.rng
        self._fraction = 1 / (2 + params.ratio)

    def __call__(self, batch: Columns, size: int) -> Columns:
        """Draw which goals to relabel, which to show as tests, which actions to keep, bool [B]."""
        # Sub-goals that were met keep their action, and so do tests; other missed ones are shown
        # with what was achieved. A test keeps its goal, too: it is about this sub-goal alone.
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


def _no_way_back(output_filter: OutputFilter, sub_goals: spaces.Box) -> str | None:
    """Return why sub-goals that an agent could have sent cannot be recovered; None if they can."""
    extent = sub_goals.high - sub_goals.low.astype(np.float64)
    probes = (sub_goals.low + _PROBES * extent).astype(np.float32)  # [3, G]
    try:
        back = np.asarray(output_filter.inverse(probes))
        again = np.asarray(output_filter.apply(back))
    except (SpaceError, ActionError) as error:
        return str(error)
    near = np.isfinite(back).reshape(len(probes), -1).all(axis=1)  # [3]
    near &= (np.abs(again - probes) <= _PRECISION * extent).all(axis=1)
    if near.all():
        return None
    lost = int((~near).argmax())
    return (
        f"{probes[lost].tolist()} becomes {back[lost].tolist()}, and {again[lost].tolist()} again"
    )
