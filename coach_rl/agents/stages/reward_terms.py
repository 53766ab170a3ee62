"""The stage of an agent with terms of its reward beside that of its level."""

from collections.abc import Mapping, Sequence

from coach_rl.agents.agent_rows import AnyAgentRows, action_of, flat_action, write_rows
from coach_rl.agents.bonuses import Bonus, BonusFunction, build_bonus
from coach_rl.agents.stages.stage import Stage, StageBuild, StageKind
from coach_rl.core.records import Action, FloatArray, IntArray, Observation, Outcome, take

_SENT = "sent/"
"""Prefix of actions among what is kept of open decisions."""


class RewardTerms(Stage):
    """Adds terms to the rewards that are stored; those of the level stay as they are.

    Args:
        terms: Functions as `BonusFunction` describes them, added in this order.
        saved: Those with a state, by its key in the agent's.
    """

    adds_to_reward = True

    def __init__(self, terms: Sequence[BonusFunction], saved: Mapping[str, object]) -> None:
        self.terms = tuple(terms)
        self.saved = saved

    def prepare(self, row_state: AnyAgentRows) -> None:
        row_state.before = {}

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
        sent = {name: kept.pop(name) for name in list(kept) if name.startswith(_SENT)}
        action = action_of({name.removeprefix(_SENT): part for name, part in sent.items()})
        for term in self.terms:
            reward = reward + term(kept, action, outcome)
        return reward


def _reward_terms(build: StageBuild) -> RewardTerms:
    """The stage of an agent whose parameters set `bonus`, or the one that these bring."""
    if (own := getattr(build.params.bonus, "stage", None)) is not None:
        stage: RewardTerms = own(build)
        return stage
    bonus: Bonus = build_bonus(build.params.bonus, build.context, build.name)
    return RewardTerms((bonus,), {"bonus": bonus})


KIND = StageKind(order=0, option="bonus", build=_reward_terms)
