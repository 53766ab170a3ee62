"""HIRO's off-policy correction of sub-goals (Nachum et al. 2018, arXiv:1805.08296, section 3.3).

A sub-goal that was sent long ago would lead today's lower level elsewhere. So when a decision
is drawn from the memory, its sub-goal becomes the one of ten candidates under which the level below
would act today most nearly as it did then. docs/algorithms/hiro.md lists every detail and its
source.
"""

from dataclasses import dataclass
from typing import Annotated, Protocol

import numpy as np
from annotated_types import Ge
from gymnasium import spaces

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.agents import LevelPlace
from coach_rl.core.angles import wrapped
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.seeding import generator
from coach_rl.core.spaces import Space
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.row_history import RowHistory


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
    """[S, ...] each: as the agent below keeps it, with what was left to go as its goal."""
    actions: FloatArray
    """[S, A] in that agent's space."""
    left: FloatArray
    """[B, G] what was left to go when the decision was over."""


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

        The level below closes a sub-episode before the level above hears of it, so this is what a
        decision that has just been answered was carried out by.
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
        """The corrected sub-goals, [B, G], and where they are others than before, [B].

        Those whose steps below have been overwritten, if only in part, stay as they are.

        Args:
            sent: Sub-goals that were sent, [B, G].
            observation: What they were chosen in, [B, ...] each.
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
        """Squared distances between what the policy below would do now and what was done, [P].

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
    """The level below, where what its agent's memory keeps allows to correct sub-goals.

    Raises:
        ConfigurationError: There is none, or it does not; the line names the level.
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
            f"{below} needs relative goals, shown as what is left to go; "
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
    space = low.action_space
    half_range = (space.high - space.low) / 2
    return LevelBelow(goal=sub_goal, agent=low, history=low.memory.history, half_range=half_range)
