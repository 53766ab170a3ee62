"""HIRO's upper level (Nachum et al. 2018, arXiv:1805.08296): TD3 that corrects its sub-goals.

When a decision is drawn from the memory, its sub-goal is corrected, see `sub_goal_correction`.
docs/algorithms/hiro.md lists every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import ClassVar

import numpy as np
import torch

from coach_rl.agents.hierarchies.sub_goal_correction import (
    LevelBelow,
    SubGoalCorrection,
    SubGoalCorrectionParameters,
    correctable,
)
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import TD3AgentParameters, TD3Learner
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.seeding import integer_seed
from coach_rl.core.transitions import Transition
from coach_rl.memories.batches import TransitionBatch
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.replay_parameters import ReplayMemoryParameters

LOW_BEGIN, LOW_END = "low_begin", "low_end"
"""Kept with each decision: the steps [begin, end) of its row in the memory of the level below."""


@parameter_class
class HIROAgentParameters(TD3AgentParameters):
    """An agent above a level that receives, and sees, relative goals."""

    correction: SubGoalCorrectionParameters | None = field(
        default_factory=SubGoalCorrectionParameters
    )
    """Correction of sub-goals; None leaves them as they were sent, which is plain TD3."""

    def __post_init__(self) -> None:
        if self.correction is None:
            return
        require(
            isinstance(self.memory, ReplayMemoryParameters),
            "HIROAgentParameters needs ReplayMemoryParameters as memory, "
            f"got {type(self.memory).__name__}",
        )
        assert isinstance(self.memory, ReplayMemoryParameters)
        require(
            self.memory.hindsight_actions is None,
            "HIROAgentParameters.correction and memory.hindsight_actions both replace sub-goals; "
            "set one of them to None",
        )

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; ConfigurationErrors name the level that does not fit."""
        if self.correction is None:
            return super().build(context)
        low = correctable(context.place)
        memory = self.memory
        assert isinstance(memory, ReplayMemoryParameters)
        extras = (*memory.extras, LOW_BEGIN, LOW_END)
        params = replace(self, memory=replace(memory, extras=extras))
        return HIROAgent(params, context, correction=self.correction, low=low)


class HIROAgent(OffPolicyAgent):
    """TD3 whose sub-goals are corrected when they are drawn from the memory.

    Args:
        params: The agent's parameters; its memory keeps `LOW_BEGIN` and `LOW_END`.
        context: What is known only now.
        correction: Which candidates there are.
        low: The level below.
    """

    SAVED = ("correction",)
    TIMED: ClassVar[Mapping[str, str]] = {"_corrected": "correction"}

    def __init__(
        self,
        params: HIROAgentParameters,
        context: AgentContext,
        *,
        correction: SubGoalCorrectionParameters,
        low: LevelBelow,
    ) -> None:
        super().__init__(
            params,
            context,
            discount=params.algorithm.discount,
            make_learner=partial(TD3Learner, params),
        )
        assert isinstance(self.memory, ReplayMemory)
        self._rows_of = self.memory.rows_of
        self._device = torch.device(context.device)
        self._check_own(low.goal)
        seed = integer_seed(context.seed, params.name, "correction")
        self.correction = SubGoalCorrection(correction, low=low, seed=seed)

    def store(self, transition: Transition) -> None:
        """Store transitions in the replay memory, with the interval of the level below."""
        begins, ends = self.correction.newest(transition.rows)
        extras = {**transition.extras, LOW_BEGIN: begins, LOW_END: ends}
        super().store(replace(transition, extras=extras))

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        """One gradient step, from corrected sub-goals."""
        return super().learn_from_batch(self._corrected(batch))

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Return the metrics of an off-policy agent, and those of the sub-goal correction."""
        return super().metrics(clock) | self.correction.drain()

    def _corrected(self, batch: TransitionBatch) -> TransitionBatch:
        """The batch with corrected actions, without the intervals."""
        extras = dict(batch.extras)
        begins, ends = (extras.pop(name).cpu().numpy() for name in (LOW_BEGIN, LOW_END))
        stored, key = batch.action.cpu().numpy(), self.correction.goal.key
        subgoals, replaced = self.correction(
            np.asarray(self.output_filter.apply(stored)),
            {key: batch.observation[key].cpu().numpy()},
            rows=self._rows_of(batch.position),
            begins=begins,
            ends=ends,
        )
        shown = np.asarray(self.output_filter.inverse(subgoals))
        actions = torch.from_numpy(np.where(replaced[:, None], shown, stored))
        action = actions.to(self._device, non_blocking=True)
        return batch._replace(action=action, extras=extras)

    def _check_own(self, sub_goal: GoalSpace) -> None:
        """Raise unless sub-goals can be read off, and put into, what the agent keeps."""
        key = sub_goal.key
        if key in self.input_filter.changed_keys:
            raise ConfigurationError(
                f"agent '{self.name}': sub-goals are corrected by '{key}' as the environment shows "
                "it, and its InputFilter changes that; use normalise_observations instead"
            )
        self.output_filter.inverse(np.zeros((1, sub_goal.size), np.float32))  # SpaceError: no way
