"""HIRO's upper level (Nachum et al. 2018, arXiv:1805.08296): TD3 that corrects its sub-goals.

When a decision is drawn from the memory, its sub-goal is replaced by the candidate under which the
level below, as it is now, would most likely have done what it did. docs/algorithms/hiro.md lists
every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar

import numpy as np
from annotated_types import Ge

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import TD3AgentParameters, TD3Learner
from coach_rl.core.agents import AgentContext
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, wrapped
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.extensions.hiro.steps_below import StepsBelow, SubGoalRelabelling
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.samplers import UnitContext


@parameter_class
class SubGoalCorrectionParameters:
    """Candidates considered when a sub-goal is corrected. Defaults: those of the paper's code.

    As a sampler unit, it corrects the sub-goals of any agent with a replay memory:
    `ReplayMemoryParameters(units=(SubGoalCorrectionParameters(),))`.
    """

    candidates: Annotated[int, Ge(2)] = 10
    """The sub-goal that was sent, the change that was achieved, and samples around that."""
    std: NonNegative[float] = 0.5
    """Standard deviation of the samples, in half-ranges of each element."""

    @property
    def after(self) -> str:
        """The unit that makes what is corrected."""
        return "gather"

    def build(self, context: UnitContext) -> "SubGoalCorrection":
        """The unit; ConfigurationErrors name the level that does not fit."""
        return SubGoalCorrection(self, context)


class SubGoalCorrection(SubGoalRelabelling):
    """Shows the sub-goals under which the level below would most likely act as it did.

    Those whose steps below have been overwritten, if only in part, stay as they are.

    Args:
        params: Which candidates there are.
        context: The unit's surroundings.
    """

    SAVED = (SavedAttribute("_rng", key="generator"), "_counts")
    name = "correction"

    def __init__(self, params: SubGoalCorrectionParameters, context: UnitContext) -> None:
        super().__init__(context, "HIRO")
        if not self.goal.relative or self.goal.observed != "relative":
            own = "" if context.place.level is None else f"level '{context.place.level.name}': "
            raise ConfigurationError(
                f"{own}HIRO needs relative goals below it, shown as remaining offsets; "
                "set GoalSpace(relative=True, observed='relative')"
            )
        self._params = params
        self._reach = self.goal.space.high
        self._rng = generator(context.seed, "candidates")
        self._counts = np.zeros(4, np.int64)  # drawn, replaced, by what was achieved, overwritten

    def relabelled(self, low: StepsBelow) -> FloatArray:
        candidates = self.candidates(low)
        choice = self.likeliest(candidates, low)
        replaced = np.not_equal(choice, 0)
        self._counts += (len(choice), replaced.sum(), (choice == 1).sum(), (~low.kept).sum())
        corrected = candidates[np.arange(len(choice)), choice]
        return np.where(replaced[:, None], corrected, low.sent)

    def candidates(self, low: StepsBelow) -> FloatArray:
        """Sub-goals to choose from, [B, C, G]: sent, achieved, C - 2 around the latter."""
        achieved = wrapped(low.observation[GOAL_KEY][:, 0] - low.last_goal, self.goal.angles)
        kept = low.kept
        samples = self._params.candidates - 2
        size = self.goal.size
        drawn = self._rng.standard_normal((samples, int(kept.sum()), size), dtype=np.float32)
        noise = np.zeros((len(kept), samples, size), np.float32)
        noise[kept] = drawn.swapaxes(0, 1)
        sampled = achieved[:, None] + self._params.std * self._reach * noise
        every = np.concatenate((low.sent[:, None], achieved[:, None], sampled), axis=1)
        clipped: FloatArray = np.minimum(np.maximum(every, -self._reach), self._reach)
        return clipped

    def likeliest(self, candidates: FloatArray, low: StepsBelow) -> IntArray:
        """The number of the candidate under which each decision's actions are likeliest, [B].

        Squared distances only add up. So all candidates are compared at every fourth step; then the
        nearest of them at the other steps, and of the rest those only that are not further away
        already. The choice is that among complete sums. Of equals it is the first.

        Args:
            candidates: [B, C, G], those that were sent first.
            low: The steps below.
        """
        sums: FloatArray = np.zeros(candidates.shape[:2])

        def add(compared: BoolArray, times: BoolArray) -> None:
            """Add what candidates [B, C] are off at times [T]."""
            steps = compared[:, :, None] & (low.mask & times)[:, None]
            self.add_squares(sums, candidates, low, steps)

        early = np.arange(low.mask.shape[1]) % 4 == 0
        add(np.ones(sums.shape, bool), early)
        nearest = np.arange(sums.shape[1]) == sums.argmin(axis=1)[:, None]
        add(nearest, ~early)
        complete = np.where(nearest, sums, np.inf).min(axis=1, keepdims=True)
        add((sums <= complete) & ~nearest, ~early)
        return np.asarray(sums.argmin(axis=1))

    def metrics(self) -> dict[str, float]:
        """Shares of the decisions drawn since the last call."""
        drawn, replaced, achieved, overwritten = self._counts.tolist()
        self._counts[:] = 0
        if not drawn:
            return {}
        return {
            "train/subgoals_replaced": replaced / drawn,
            "train/subgoals_achieved": achieved / drawn,
            "train/subgoals_overwritten": overwritten / drawn,
        }


@dataclass(frozen=True, kw_only=True)
class _Seeded:
    """The correction of a HIRO agent, whose samples have a stream of the agent's own."""

    params: SubGoalCorrectionParameters
    seed: int
    after: str = "gather"

    def build(self, context: UnitContext) -> SubGoalCorrection:
        return self.params.build(replace(context, seed=self.seed))


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
            not self.memory.parts,
            "HIROAgentParameters.correction and ReplayMemoryParameters.parts may both replace "
            "sub-goals; set correction=None, or leave the parts out",
        )

    def build(self, context: AgentContext) -> OffPolicyAgent:
        """The agent; ConfigurationErrors name the level that does not fit."""
        if self.correction is None:
            return super().build(context)
        memory = self.memory
        assert isinstance(memory, ReplayMemoryParameters)
        seed = integer_seed(context.seed, self.name, "correction")
        units = (_Seeded(params=self.correction, seed=seed), *memory.units)
        params = replace(self, memory=replace(memory, units=units))
        discount = params.algorithm.discount
        make = partial(TD3Learner, params)
        kind = HIROAgent if self.AGENT is OffPolicyAgent else self.AGENT
        return kind(params, context, discount=discount, make_learner=make)


class HIROAgent(OffPolicyAgent):
    """TD3 whose memory corrects sub-goals when they are drawn."""

    TIMED: ClassVar[Mapping[str, str]] = {"correction.likeliest": "correction"}

    @property
    def correction(self) -> SubGoalCorrection:
        """The unit that corrects sub-goals."""
        memory: Any = self.memory
        unit: SubGoalCorrection = memory.sampler.by_name[SubGoalCorrection.name]
        return unit
