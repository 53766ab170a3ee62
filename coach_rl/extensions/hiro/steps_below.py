"""The steps of the level below during a decision, for sampler units that relabel sub-goals.

A decision of an upper level is carried out by the level below in some steps, which that level's
memory keeps. `SubGoalRelabelling` finds them for a batch, padded and masked, and computes how
likely they are under the agent below, as it is now, for any sub-goals: the base of HIRO's
correction, and of units like it over any agent with a replay memory.
"""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY, GoalSpace, wrapped
from coach_rl.core.records import HIDDEN_STATE, Array, BoolArray, FloatArray, Observation
from coach_rl.memories.batches import (
    ACTIONS,
    LOW_BEGIN,
    LOW_END,
    OBSERVATIONS,
    POSITIONS,
    Columns,
)
from coach_rl.memories.replay_memory import ReplayMemory, RowHistory
from coach_rl.memories.samplers import SamplerUnit, UnitContext


def require_standard_sub_goals(place: LevelPlace, owner: str) -> None:
    """Raise `ConfigurationError` unless sub-goals are elements of an observation, untimed.

    Args:
        place: The place of the agent that sends them.
        owner: What computes with them as if they were.
    """
    place.require_untimed_sub_goals(owner)
    goal = place.sub_goal
    names = ("achieved", "difference", "difference_of", "show", "shown_from", "target", "space")
    if goal is not None and (own := goal.overridden(*names)):
        raise ConfigurationError(
            f"{owner} computes with goals that are elements of an observation, and "
            f"{type(goal).__name__} overrides {own[0]}; give the level below a GoalSpace"
        )
    place.require_sub_goals_as_actions(owner)


class ReplayingAgent(Protocol):
    """The attributes of the agent below that relabelling needs."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The observation space behind the agent's InputFilter."""
        ...

    def policy_actions(self, observation: Observation) -> Array:
        """Return the greedy actions of the policy for filtered observations [R, ...] each."""
        ...


@dataclass(frozen=True, kw_only=True)
class StepsBelow:
    """Steps of the level below during B decisions, at most T each."""

    mask: BoolArray
    """[B, T] true where there is a step; nowhere in a decision of which a step is overwritten."""
    observation: Observation
    """[B, T, ...] each: as the agent below keeps it, with its goal."""
    action: FloatArray
    """[B, T, A] in that agent's space."""
    last_goal: FloatArray
    """[B, G] the goal as it was shown after the last step."""
    seen: Observation
    """[B, ...] each: what the decisions were made on."""
    sent: FloatArray
    """[B, G] the sub-goals as they were sent, behind the OutputFilter of the agent above."""

    @property
    def kept(self) -> BoolArray:
        """[B] true for decisions of which no step is overwritten."""
        return np.asarray(self.mask.any(axis=1))


class SubGoalRelabelling(SamplerUnit):
    """Base of units that replace sub-goals by what the level below did under them.

    A subclass has a `name` and the method `relabelled`. It stands behind `gather`, in the memory of
    any agent above a level with goals.

    Args:
        context: The unit's surroundings.
        owner: The unit in messages, e.g. `HIRO`; empty: the name of its class.

    Raises:
        ConfigurationError: The level below does not keep its steps, or its goals are of a kind that
            can't be replaced; the line names the levels.
    """

    outputs = (ACTIONS,)

    def __init__(self, context: UnitContext, owner: str = "") -> None:
        owner = owner or type(self).__name__
        self.goal, self._history, self._half_range = _level_below(context.place, owner)
        self.low: ReplayingAgent = cast(Any, context.place.agent_below)
        """The agent below."""
        self._store = context.store
        self._filter = context.output_filter
        self.unfiltered = (self.goal.key,)
        seen = f"{OBSERVATIONS}{self.goal.key}"
        self.inputs = (POSITIONS, ACTIONS, LOW_BEGIN, LOW_END, seen)
        if self._filter is not None:
            self._filter.inverse(np.zeros((1, self.goal.size), np.float32))  # SpaceError: no way

    @abstractmethod
    def relabelled(self, low: StepsBelow) -> FloatArray:
        """The sub-goals to show, [B, G]; those equal to `low.sent` are shown as they are stored."""

    def __call__(self, batch: Columns, size: int) -> Columns:
        stored = batch[ACTIONS].cpu().numpy()
        low = self.steps_of(batch)
        goals = self.relabelled(low)
        replaced = (goals != low.sent).any(axis=1, keepdims=True)
        shown = goals if self._filter is None else np.asarray(self._filter.inverse(goals))
        actions = torch.from_numpy(np.where(replaced, shown, stored))
        return {ACTIONS: actions.to(batch[ACTIONS].device, non_blocking=True)}

    def steps_of(self, batch: Columns) -> StepsBelow:
        """The steps of the level below during the decisions of a batch."""
        rows = self._store.rows_of(batch[POSITIONS].cpu().numpy())
        begins, ends = (batch[path].cpu().numpy() for path in (LOW_BEGIN, LOW_END))
        kept = self._history.has_kept(rows, begins)
        counts = np.where(kept, ends - begins, 0)
        mask = np.arange(counts.max(initial=1)) < counts[:, None]  # [B, T]
        decision, time = mask.nonzero()
        acting = rows[decision]
        steps = begins[decision] + time

        def padded(values: Array, where: BoolArray = mask) -> Array:
            filled = np.zeros((*where.shape, *values.shape[1:]), values.dtype)
            filled[where] = values
            return filled

        keys = self.low.observation_space.spaces
        last = self._history.next_observation(rows[kept], ends[kept] - 1, GOAL_KEY)
        stored = batch[ACTIONS].cpu().numpy()
        return StepsBelow(
            mask=mask,
            observation={
                key: padded(values)
                for key, values in self._history.observations(acting, steps, keys).items()
            },
            action=padded(self._history.actions(acting, steps)),
            last_goal=padded(last, kept),
            seen={k: batch[f"{OBSERVATIONS}{k}"].cpu().numpy() for k in self.unfiltered},
            sent=stored if self._filter is None else np.asarray(self._filter.apply(stored)),
        )

    def log_likelihood(self, goals: FloatArray, low: StepsBelow) -> FloatArray:
        """The log-likelihood of the steps under each of C sub-goals, up to a constant, [B, C].

        Minus half the squared distances between the actions taken and those of the current policy
        without exploration (Nachum et al. 2018, equation 5), in half-ranges of each action, so that
        elements of different units count alike. 0 where a decision has no steps left.

        Args:
            goals: [B, C, G] as they are sent.
            low: The steps.
        """
        sums: FloatArray = np.zeros(goals.shape[:2])
        everywhere = np.ones((*sums.shape, 1), np.bool_)
        self.add_squares(sums, goals, low, everywhere & low.mask[:, None])
        return -0.5 * sums

    def add_squares(
        self, sums: FloatArray, goals: FloatArray, low: StepsBelow, compared: BoolArray
    ) -> None:
        """Add squared distances from the current policy's actions to sums [B, C], in place.

        Args:
            sums: [B, C].
            goals: [B, C, G] as they are sent.
            low: The steps.
            compared: [B, C, T] which steps to compare under which sub-goals.
        """
        candidate, decision, time = compared.transpose(1, 0, 2).nonzero()  # [P] each
        # A goal is kept where it is while the state moves: goals that lie apart at the first step
        # do so by as much at all others, whatever the level below observes of its state.
        targets = self.goal.target(goals.transpose(1, 0, 2), low.seen)  # [C, B, G]
        sent = self.goal.target(low.sent, low.seen)  # [B, G]
        observation = {key: values[decision, time] for key, values in low.observation.items()}
        if self.goal.observed == "relative":
            apart = (targets - sent)[candidate, decision]
            shown = wrapped(observation[GOAL_KEY] + apart, self.goal.angles)
        else:
            shown = targets[candidate, decision]
        now = self.low.policy_actions(observation | {GOAL_KEY: shown})
        distance = (now - low.action[decision, time]) / self._half_range
        squares = np.square(distance, dtype=np.float64).sum(axis=-1)
        np.add.at(sums, (decision, candidate), squares)


def _level_below(place: LevelPlace, owner: str) -> tuple[GoalSpace, RowHistory, FloatArray]:
    """The goals of the level below, what its memory keeps, and half-ranges of its actions [A].

    Raises:
        ConfigurationError: Its sub-goals can't be relabelled; the line names the level.
    """
    own = "" if place.level is None else f"level '{place.level.name}': "
    if place.below is None or place.agent_below is None:
        raise ConfigurationError(
            f"{own}{owner} needs a level below it that receives goals; leave it out at the lowest"
        )
    place.require_single_decisions(f"{owner} relabels the sub-goal of a single decision")
    below = f"{own}{owner} relabels sub-goals by level '{place.below.name}' below, which"
    require_standard_sub_goals(place, f"{own}the correction of {owner}")
    if place.sub_goal is None:
        raise ConfigurationError(f"{below} needs goals; give it a GoalSpace")
    if place.below.frozen or place.below.may_freeze:
        raise ConfigurationError(
            f"{below} remembers nothing while it is frozen; leave out one of them"
        )
    low: Any = place.agent_below
    memory: Any = getattr(low, "memory", None)
    space: Any = getattr(low, "action_space", None)
    replays = isinstance(memory, ReplayMemory) and hasattr(low, "policy_actions")
    if not replays or not isinstance(space, spaces.Box):
        raise ConfigurationError(
            f"{below} needs an agent with a replay memory and actions in a Box "
            f"(TD3, DDPG or SAC), got {type(low).__name__}"
        )
    if GOAL_KEY in low.input_filter.changed_keys:
        raise ConfigurationError(
            f"{below} changes '{GOAL_KEY}' by its InputFilter; use normalise_observations instead"
        )
    if low.params.stores is not None:
        raise ConfigurationError(
            f"{below} holds back or drops what it did (`stores`); leave one of them out"
        )
    if HIDDEN_STATE in low.stages.kept:
        raise ConfigurationError(
            f"{below} has a recurrent network, and steps are judged one by one; leave out its "
            "TorsoParameters.recurrence"
        )
    return place.sub_goal, memory.history, (space.high - space.low) / 2
