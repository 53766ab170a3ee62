"""Random network distillation as a bonus (Burda et al. 2018, arXiv:1810.12894)."""

from typing import Any, ClassVar

import numpy as np

from coach_rl.architectures.gradient_step import as_arrays
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Action, FloatArray, IntArray, Observation, Outcome
from coach_rl.core.saved import SavedNames
from coach_rl.extensions.curiosity.distillation import (
    Distillation,
    DistillationParameters,
    ScaledReturns,
)
from coach_rl.extensions.curiosity.streams import RewardStream
from coach_rl.extensions.curiosity.terms import EpisodeBonus, EpisodeBonusParameters
from coach_rl.memories.transition_batch import TransitionBatch


@parameter_class
class DistilledBonusParameters(DistillationParameters, EpisodeBonusParameters):
    """A bonus by the error of a predictor, in units of the standard deviation of its returns."""

    weight: NonNegative[float] = 1.0
    """Factor on the bonus."""
    stream: RewardStream | None = None
    """A stream of reward with returns and a critic of its own, for PPO; the paper's is not
    episodic. None: the bonus is added to the reward."""
    fresh: bool = False
    """Agents with a replay memory: True computes the bonus in each batch, with the networks as they
    are then; False stores it as it was earned."""

    def __post_init__(self) -> None:
        require(
            not self.fresh or self.stream is None,
            f"{type(self).__name__}.fresh is for replay memories and `stream` for PPO; set one",
        )


@parameter_class
class RND(DistilledBonusParameters):
    """The predictor's mean squared error on what a decision led to."""

    def build(self, context: AgentContext) -> "DistilledBonus":
        """The bonus; SpaceError where its networks can't see the observations."""
        return DistilledBonus(self, context)


class DistilledBonus(EpisodeBonus):
    """The bonus of one agent.

    Args:
        params: Its settings.
        context: That of the agent.
    """

    SAVED: ClassVar[SavedNames] = ("distillation", "returns")

    def __init__(self, params: DistilledBonusParameters, context: AgentContext) -> None:
        self.params = params
        self.stream = params.stream
        self.is_fresh = params.fresh
        self.distillation = Distillation(params, context, type(params).__name__)
        self.returns = ScaledReturns(context.num_envs, params.discount)
        self._signals = context.signals
        self._begun = np.zeros(context.num_envs, np.bool_)  # until the next call

    def begin(self, rows: IntArray) -> None:
        self._begun[rows] = True

    def __call__(self, before: Observation, action: Action, outcome: Outcome) -> FloatArray:
        """The bonus of decisions, [R]; 0 while observations initialise its scale."""
        counts = self.counted(before, outcome)
        bonus = np.zeros(len(outcome.rows))
        if self.distillation.is_initialised:
            novelty = counts * self.novelty(before, outcome.observation)
            self.returns.update(outcome.rows, novelty)
            self._signals.note("novelty", novelty)
            bonus = self._factor() * novelty
        self.distillation.observe(self._unobserved(before, outcome))
        return bonus

    def refreshed(self, batch: TransitionBatch) -> TransitionBatch:
        if not self.is_fresh or not self.distillation.is_initialised:
            return batch
        novelty = self.novelty(as_arrays(batch.observation), as_arrays(batch.next_observation))
        reward = batch.reward
        added = reward.new_tensor(self._factor() * novelty)
        return batch._replace(reward=reward + added * self.counted_in(batch))

    def novelty(self, before: Observation, after: Observation) -> FloatArray:
        """The novelty that is scaled, [R], of observations [R, ...] each."""
        return self.distillation.errors(after) / self.params.latents

    def counted(self, before: Observation, outcome: Outcome) -> FloatArray:
        """Factors on the novelty of decisions, [R]."""
        return np.ones(len(outcome.rows))

    def counted_in(self, batch: TransitionBatch) -> Any:
        """The same of those in a batch, [B]."""
        return 1.0

    def _unobserved(self, before: Observation, outcome: Outcome) -> Observation:
        """Observations that decisions led to, behind those that episodes began with."""
        begun = self._begun[outcome.rows]
        self._begun[outcome.rows] = False
        after = outcome.observation
        if not begun.any():
            return after
        keys = self.distillation.keys
        return {key: np.concatenate([before[key][begun], after[key]]) for key in keys}

    def _factor(self) -> float:
        """Factor from novelty to the bonus; 0 while its scale is not known."""
        if self.returns.statistics.count < self.params.warmup:
            return 0.0
        return self.params.weight * self.returns.factor
