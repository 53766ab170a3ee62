"""The stage of an agent with terms of its reward beside that of its level."""

from collections.abc import Mapping, Sequence

import numpy as np

from coach_rl.agents.agent_rows import AnyAgentRows, action_of, flat_action, write_rows
from coach_rl.agents.bonuses import Bonus, build_bonus
from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
from coach_rl.core.records import (
    Action,
    ActionRequest,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.memories.batches import TransitionBatch

_SENT = "sent/"
"""Prefix of actions among what is kept of open decisions."""
_BEGINS = "begins"
"""Where an episode began with the open decision, among the same."""


class RewardTerms(Stage):
    """Adds terms to the rewards that are stored; those of the level stay as they are.

    Args:
        terms: Added in this order.
        saved: Those with a state, by its key in the agent's.
    """

    adds_to_reward = True

    def __init__(self, terms: Sequence[Bonus], saved: Mapping[str, object]) -> None:
        self.terms = tuple(terms)
        self.saved = saved
        hooks = [term.hooks for term in terms]
        self.streams = tuple(each.stream for each in hooks if each.stream is not None)
        self.extras = tuple(name for each in hooks for name in each.extras)

    def prepare(self, row_state: AnyAgentRows) -> None:
        row_state.before = {_BEGINS: np.zeros(len(row_state.heatup), np.bool_)}

    def begin(self, row_state: AnyAgentRows, request: ActionRequest) -> None:
        assert row_state.before is not None, "rows are prepared"
        row_state.before[_BEGINS][request.rows[request.episode_start]] = True

    def leave(
        self, row_state: AnyAgentRows, rows: IntArray, action: Action, observation: Observation
    ) -> Action:
        """The actions; what they were decided on is kept with them."""
        assert row_state.before is not None, "rows are prepared"
        sent = {f"{_SENT}{name}": part for name, part in flat_action(action).items()}
        write_rows(row_state.before, rows, observation | sent, len(row_state.heatup))
        return action

    def reward(
        self, row_state: AnyAgentRows, outcome: Outcome, reward: FloatArray, *, learn: bool
    ) -> FloatArray:
        if not learn:
            return reward
        assert row_state.before is not None, "rows are prepared"
        kept = take(row_state.before, outcome.rows)
        begins = kept.pop(_BEGINS)
        row_state.before[_BEGINS][outcome.rows] = False
        sent = {name: kept.pop(name) for name in list(kept) if name.startswith(_SENT)}
        action = action_of({name.removeprefix(_SENT): part for name, part in sent.items()})
        for term in self.terms:
            term.hooks.begin(outcome.rows[begins])
            added, columns = term(kept, action, outcome)
            reward = reward + added
            write_rows(row_state.choice, outcome.rows, columns, len(row_state.heatup))
        return reward

    def refreshed(self, batch: TransitionBatch) -> TransitionBatch:
        for term in self.terms:
            batch = term.hooks.refreshed(batch)
        return batch


def _reward_terms(build: StageBuild) -> RewardTerms:
    """The stage of an agent whose parameters set `bonus`."""
    bonus: Bonus = build_bonus(build.params.bonus, build.context, build.name)
    bonus.hooks.check(build.params)
    return RewardTerms((bonus,), {"bonus": bonus})


KIND = StageKind(order=0, option="bonus", build=_reward_terms)
