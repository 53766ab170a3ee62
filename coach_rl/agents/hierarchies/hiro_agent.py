"""HIRO's upper level (Nachum et al. 2018, arXiv:1805.08296): TD3 that corrects its sub-goals.

When a decision is drawn from the memory, its sub-goal is replaced by the candidate under which the
level below, as it is now, would most likely have done what it did. docs/algorithms/hiro.md lists
every detail and its source.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, ClassVar, Protocol

import numpy as np
import torch
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.td3_agent import TD3AgentParameters, TD3Learner
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.torso import require_memoryless
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GOAL_KEY, GoalSpace, wrapped
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation, Transition
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.spaces import Space
from coach_rl.memories.batches import TransitionBatch
from coach_rl.memories.replay_memory import ReplayMemory, RowHistory
from coach_rl.memories.replay_parameters import ReplayMemoryParameters


@parameter_class
class SubGoalCorrectionParameters:
    """Candidates considered when a sub-goal is corrected. Defaults: those of the paper's code."""

    candidates: Annotated[int, Ge(2)] = 10
    """The sub-goal that was sent, the change that was achieved, and samples around that."""
    std: NonNegative[float] = 0.5
    """Standard deviation of the samples, in half-ranges of each element."""


class ReplayingAgent(Protocol):
    """The methods that the correction needs from the agent of the level below."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The observation space behind the agent's InputFilter."""
        ...

    @property
    def action_space(self) -> Space:
        """The agent's action space, before its OutputFilter."""
        ...

    def policy_actions(self, observation: Observation) -> Array:
        """Return the greedy actions of the policy for filtered observations [R, ...] each."""
        ...


@dataclass(frozen=True, kw_only=True)
class LevelBelow:
    """The level that sub-goals are sent to."""

    goal: GoalSpace
    """Its goals."""
    agent: ReplayingAgent
    """The agent of that level."""
    history: RowHistory
    """The history kept by that agent's memory."""
    half_range: FloatArray
    """Half-range of its actions, [A]."""


@dataclass(frozen=True, kw_only=True)
class LowSteps:
    """Observations and actions of the level below during B decisions, S steps in all."""

    decision: IntArray
    """[S] which of the B decisions a step belongs to; they follow one another."""
    first: IntArray
    """[B] the number of each decision's first step."""
    observation: Observation
    """[S, ...] each: as the agent below keeps it, with the remaining offset as its goal."""
    actions: FloatArray
    """[S, A] in that agent's space."""
    left: FloatArray
    """[B, G] offset to the goal when the decision ended."""


class SubGoalCorrection(Saved):
    """Finds the sub-goals under which the level below would most likely act as it did.

    Args:
        params: Which candidates there are.
        low: The level below, see `correctable`.
        seed: Seed for drawing candidates.
    """

    SAVED = (SavedAttribute("_rng", key="generator"), "_counts")

    def __init__(self, params: SubGoalCorrectionParameters, *, low: LevelBelow, seed: int) -> None:
        self.goal = low.goal
        self._params, self._low = params, low
        self._reach = low.goal.space.high
        self._rng = generator(seed, "candidates")
        self._counts = np.zeros(4, np.int64)  # drawn, replaced, by what was achieved, overwritten

    def newest(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """The steps [begin, end) of the newest sub-episodes of rows below, [R] each.

        The level below closes a sub-episode before the level above gets its outcome, so these are
        the steps of the decision that has just ended.
        """
        return self._low.history.newest_episodes(rows)

    def __call__(
        self,
        sent: FloatArray,
        observation: Observation,
        *,
        rows: IntArray,
        begins: IntArray,
        ends: IntArray,
    ) -> tuple[FloatArray, BoolArray]:
        """The corrected sub-goals, [B, G], and which of them have changed, [B].

        Those whose steps below have been overwritten, if only in part, stay as they are.

        Args:
            sent: Sub-goals that were sent, [B, G].
            observation: Observations that they were chosen in, [B, ...] each.
            rows: [B].
            begins: First steps below, [B].
            ends: Steps behind the last, [B].
        """
        kept = self._low.history.has_kept(rows, begins)
        choice = np.zeros(len(sent), np.int64)
        corrected = sent.copy()
        if kept.any():
            low = self.steps(rows[kept], begins[kept], ends[kept])
            seen = {key: values[kept] for key, values in observation.items()}
            candidates = self.candidates(sent[kept], low)
            choice[kept] = self.likeliest(candidates, seen, low)
            corrected[kept] = candidates[choice[kept], np.arange(len(low.first))]
        replaced = choice != 0
        self._counts += (len(sent), replaced.sum(), (choice == 1).sum(), (~kept).sum())
        return corrected, replaced

    def steps(self, rows: IntArray, begins: IntArray, ends: IntArray) -> LowSteps:
        """Return the kept part of steps [begin, end) of rows, [B] each, from the level below."""
        counts = ends - begins
        decision = np.repeat(np.arange(len(rows)), counts)
        first = np.cumsum(counts) - counts
        steps = begins[decision] + np.arange(len(decision)) - first[decision]
        history, acting = self._low.history, rows[decision]
        keys = self._low.agent.observation_space.spaces
        return LowSteps(
            decision=decision,
            first=first,
            observation=history.observations(acting, steps, keys),
            actions=history.actions(acting, steps),
            left=history.next_observation(rows, ends - 1, GOAL_KEY),
        )

    def candidates(self, sent: FloatArray, low: LowSteps) -> FloatArray:
        """Sub-goals to choose from, [K, B, G]: sent, achieved, K - 2 around the latter."""
        achieved = wrapped(low.observation[GOAL_KEY][low.first] - low.left, self.goal.angles)
        noise = self._rng.standard_normal(
            (self._params.candidates - 2, *sent.shape), dtype=np.float32
        )
        sampled = achieved + self._params.std * self._reach * noise
        every = np.concatenate((sent[None], achieved[None], sampled))
        clipped: FloatArray = np.minimum(np.maximum(every, -self._reach), self._reach)
        return clipped

    def likeliest(self, candidates: FloatArray, seen: Observation, low: LowSteps) -> IntArray:
        """The number of the candidate under which each decision's actions are likeliest, [B].

        Squared distances only add up. So all candidates are compared at every fourth step; then the
        nearest of them at the other steps, and of the rest those only that are not further away
        already. The choice is that among complete sums. Of equals it is the first.

        Args:
            candidates: [K, B, G], those that were sent first.
            seen: What the sub-goals were chosen in, [B, ...] each.
            low: The steps below.
        """
        sums = np.zeros(candidates.shape[:2])

        def add(compared: BoolArray, steps: BoolArray) -> None:
            """Add what candidates [K, B] are off at steps [S]."""
            candidate, step = np.nonzero(compared[:, low.decision] & steps)
            squares = self.squared_distances(candidates, seen, low, candidate=candidate, step=step)
            np.add.at(sums, (candidate, low.decision[step]), squares)

        number = np.arange(len(low.decision)) - low.first[low.decision]
        early = number % 4 == 0
        add(np.ones(sums.shape, bool), early)
        nearest = np.arange(len(sums))[:, None] == sums.argmin(axis=0)
        add(nearest, ~early)
        complete = np.where(nearest, sums, np.inf).min(axis=0)
        add((sums <= complete) & ~nearest, ~early)
        return np.asarray(sums.argmin(axis=0))

    def squared_distances(
        self,
        candidates: FloatArray,
        seen: Observation,
        low: LowSteps,
        *,
        candidate: IntArray,
        step: IntArray,
    ) -> FloatArray:
        """Squared distances between the current policy's actions below and those taken, [P].

        Minus half of one is the log-likelihood of the action, up to a constant. They are in
        half-ranges of each action, so that elements of different units count alike.

        Args:
            candidates: [K, B, G], those that were sent first.
            seen: What the sub-goals were chosen in, [B, ...] each.
            low: The steps below.
            candidate: [P] numbers of candidates.
            step: [P] numbers of steps.
        """
        # A goal is kept where it is while the state moves: candidates that lie apart at the first
        # step do so by as much at all others, whatever the level below observes of its state.
        targets = self.goal.target(candidates, seen)
        apart = (targets - targets[0])[candidate, low.decision[step]]
        observation = {key: values[step] for key, values in low.observation.items()}
        observation[GOAL_KEY] = wrapped(observation[GOAL_KEY] + apart, self.goal.angles)
        now = self._low.agent.policy_actions(observation)
        distance = (now - low.actions[step]) / self._low.half_range
        return np.asarray(np.square(distance, dtype=np.float64).sum(axis=-1))

    def drain(self) -> dict[str, float]:
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


def correctable(place: LevelPlace) -> LevelBelow:
    """The level below, if its agent's memory allows to correct sub-goals.

    Raises:
        ConfigurationError: There is none, or its memory does not; the line names the level.
    """
    own = "" if place.level is None else f"level '{place.level.name}': "
    if place.below is None:
        raise ConfigurationError(
            f"{own}a HIRO agent needs a level below it that receives goals; "
            "at the lowest level use TD3AgentParameters"
        )
    below = f"{own}HIRO corrects sub-goals by level '{place.below.name}' below, which"
    sub_goal, low = place.sub_goal, place.agent_below
    place.require_standard_sub_goals(f"{own}the correction of HIRO")
    if sub_goal is None or not sub_goal.relative or sub_goal.observed != "relative":
        raise ConfigurationError(
            f"{below} needs relative goals, shown as remaining offsets; "
            "set GoalSpace(relative=True, observed='relative')"
        )
    if place.below.frozen or place.below.may_freeze:
        raise ConfigurationError(
            f"{below} remembers nothing while it is frozen; set HIROAgentParameters.correction=None"
        )
    if not (
        isinstance(low, OffPolicyAgent)
        and isinstance(low.memory, ReplayMemory)
        and isinstance(low.action_space, spaces.Box)
    ):
        raise ConfigurationError(
            f"{below} needs an agent with a replay memory and actions in a Box "
            f"(TD3, DDPG or SAC), got {type(low).__name__}"
        )
    if GOAL_KEY in low.input_filter.changed_keys:
        raise ConfigurationError(
            f"{below} changes '{GOAL_KEY}' by its InputFilter; use normalise_observations instead"
        )
    networks = (network.module for network in low.learner.networks.values())
    require_memoryless(networks, f"{own}the correction of HIRO, by the agent below,")
    space = low.action_space
    half_range = (space.high - space.low) / 2
    return LevelBelow(goal=sub_goal, agent=low, history=low.memory.history, half_range=half_range)


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
        context: Settings known only at construction, such as spaces.
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
        begins, ends = self.correction.newest(transition.rows)
        extras = {**transition.extras, LOW_BEGIN: begins, LOW_END: ends}
        super().store(replace(transition, extras=extras))

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
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
