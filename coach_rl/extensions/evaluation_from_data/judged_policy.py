"""A policy led through the episodes of a data set: what it would do in each observation.

The agent sees each episode from its beginning, through its own filters and with its own hidden
state, and is answered what the data have; nothing is learned, and no environment is stepped.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import AnyAgentRows, action_of, flat_action, write_rows
from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.core.clock import Clock
from coach_rl.core.records import (
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.spaces import Space
from coach_rl.extensions.data.action_probabilities import (
    ActionDistribution,
    OneAction,
    in_agents_space,
    policy_of,
)
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import DURATIONS, REWARDS, TERMINATED, TRUNCATED

DRAWS = 16
"""Actions drawn in each observation for expectations over what cannot be listed."""


@dataclass(frozen=True, kw_only=True)
class JudgedData:
    """N transitions of E episodes, and what the policy does in their observations.

    Places from 0 are those of observations before transitions, places from N those of the
    observations behind the E episodes.
    """

    recorded: Recorded
    observation_space: spaces.Dict
    """The space of what the policy's networks observe."""
    action_space: Space
    """The space in which the policy acts."""
    taken: Array
    """Actions of the data in the policy's space, [N, ...]."""
    log_prob: FloatArray
    """Log-probability of each of them under the policy, [N]; 0 where there is an obstacle."""
    obstacle: str
    """The reason why data cannot be weighed by its probabilities; empty where they can."""
    observation: Observation
    """Filtered observations by place, [N + E, ...] each; empty unless a model is to be fitted."""
    actions: Array
    """Actions of the policy by place, [N + E, K, ...]; K is 0 unless a model is to be fitted."""
    chances: FloatArray
    """Their weights in expectations, [N + E, K]."""

    @property
    def rewards(self) -> FloatArray:
        """Rewards as the environment gave them, [N]."""
        return self.recorded.columns[REWARDS].astype(np.float64)

    @property
    def continues(self) -> BoolArray:
        """False where a transition terminated its episode, [N]."""
        return ~self.recorded.columns[TERMINATED]

    @cached_property
    def following(self) -> IntArray:
        """The place of the observation behind each transition, [N]."""
        places = np.arange(1, len(self.recorded) + 1)
        ends = self.recorded.begins + self.recorded.lengths - 1
        places[ends] = len(self.recorded) + np.arange(len(ends))
        return places

    @cached_property
    def episode(self) -> IntArray:
        """The episode of each transition, [N]."""
        return np.repeat(np.arange(len(self.recorded.begins)), self.recorded.lengths)

    def padded(self, numbers: FloatArray) -> FloatArray:
        """Numbers of transitions [N] by episode and decision, [E, T]; 0 behind the end."""
        lengths = self.recorded.lengths
        table = np.zeros((len(lengths), int(lengths.max())))
        table[self.episode, np.arange(len(numbers)) - self.recorded.begins[self.episode]] = numbers
        return table


def cut_off(recorded: Recorded, places: IntArray) -> BoolArray:
    """True where transitions [R] were the last of their episode and did not terminate it, [R]."""
    truncated = recorded.columns[TRUNCATED][places]
    return np.asarray(truncated & ~recorded.columns[TERMINATED][places])


def cut_off_episodes(recorded: Recorded) -> int:
    """The number of episodes that were cut off; not those that terminated at the same time."""
    return int(cut_off(recorded, recorded.begins + recorded.lengths - 1).sum())


def judged(
    agent: FilteredAgent[Any],
    recorded: Recorded,
    clock: Clock,
    *,
    seed: int,
    for_model: bool = True,
) -> JudgedData:
    """The actions and probabilities of an agent in all observations of a data set.

    Args:
        agent: The agent, alone above the environment.
        recorded: The data, in the spaces of its level.
        clock: In TEST; it explores where the clock `samples`.
        seed: For the actions that are drawn.
        for_model: Whether a model is to be fitted, which takes observations and actions.

    Raises:
        SpaceError: An action has no way back through its OutputFilter.
    """
    lengths = recorded.lengths
    walk = (_NotingWalk if for_model else _Walk)(agent, recorded, clock, seed)
    for step in range(int(lengths.max())):
        walk.step(step, np.flatnonzero(lengths > step))
    return walk.result()


class _Walk:
    """The agent on its way through all episodes at once, a row each."""

    def __init__(
        self, agent: FilteredAgent[Any], recorded: Recorded, clock: Clock, seed: int
    ) -> None:
        self._agent = agent
        self._recorded = recorded
        self._clock = clock
        self._rng = np.random.default_rng(seed)
        self._rows: AnyAgentRows = agent.new_rows(len(recorded.begins), seed)
        self._sent: dict[str, Array] = {}
        self._taken = in_agents_space(agent, recorded.actions)
        self._log_prob = np.zeros(len(recorded))
        self._obstacle = ""
        self._columns: dict[str, Array] = {}

    def step(self, step: int, rows: IntArray) -> None:
        """Show the decision of this number to rows [R], and what it led to."""
        recorded = self._recorded
        here = recorded.begins[rows] + step
        self._act(rows, recorded.observations(here), np.full(len(rows), step == 0))
        policy = self._policy(rows)
        self._note(policy, rows, here)
        if policy.has_probabilities:
            self._log_prob[here] = policy.log_prob(self._taken[here])
        self._obstacle = self._obstacle or policy.obstacle
        outcome = _outcome(recorded, rows, here)
        self._agent.observe(self._rows, outcome, self._clock)
        is_over = recorded.lengths[rows] == step + 1
        if is_over.any():
            self._end(rows[is_over], here[is_over])

    def result(self) -> JudgedData:
        """The data with all that the policy would do."""
        columns = dict(self._columns)
        agent = self._agent
        nothing = np.zeros((len(self._recorded) + len(self._recorded.begins), 0))
        return JudgedData(
            recorded=self._recorded,
            observation_space=agent.observation_space,
            action_space=agent.action_space,
            taken=self._taken,
            log_prob=self._log_prob,
            obstacle=self._obstacle,
            actions=columns.pop("actions", nothing),
            chances=columns.pop("chances", nothing),
            observation={key.removeprefix("observation/"): each for key, each in columns.items()},
        )

    def _act(self, rows: IntArray, observation: Observation, starts: BoolArray) -> None:
        """Let the agent choose in these rows, and keep what it has sent: it may be all to know."""
        request = ActionRequest(
            rows=rows,
            observation=observation,
            starts=starts,
            episode_start=starts,
            greedy=np.zeros(len(rows), np.bool_),
        )
        sent = flat_action(self._agent.act(self._rows, request, self._clock))
        write_rows(self._sent, rows, sent, len(self._recorded.begins))

    def _policy(self, rows: IntArray) -> ActionDistribution:
        """The distribution of actions in these rows; where it is not known, the one just sent."""
        agent = self._agent
        known = policy_of(agent, take(self._rows.pending, rows), self._clock)
        if known is not None:
            return known
        return OneAction(
            in_agents_space(agent, action_of(take(self._sent, rows))),
            obstacle=(
                f"the probabilities of the actions of agent '{agent.name}' "
                f"({type(agent).__name__}, {type(agent.action_space).__name__} actions) are not "
                "known where it acts so"
            ),
        )

    def _note(self, policy: ActionDistribution, rows: IntArray, places: IntArray) -> None:
        """Keep what a model needs to know of rows [R] in their places [R]; nothing here."""

    def _end(self, rows: IntArray, last: IntArray) -> None:
        """Note the observations behind the last transitions [R] of rows [R]; not needed here."""


class _NotingWalk(_Walk):
    """A walk that keeps what a model is fitted to."""

    def _note(self, policy: ActionDistribution, rows: IntArray, places: IntArray) -> None:
        actions, chances = policy.weighted_actions(DRAWS, self._rng)
        seen = take(self._rows.pending, rows)
        keys = self._agent.observation_space.spaces
        named = {f"observation/{key}": seen[key] for key in keys}
        total = len(self._recorded) + len(self._recorded.begins)
        write_rows(self._columns, places, {**named, "actions": actions, "chances": chances}, total)

    def _end(self, rows: IntArray, last: IntArray) -> None:
        recorded = self._recorded
        is_cut = cut_off(recorded, last)
        if is_cut.any():  # behind others there is no choice any more
            behind = recorded.next_observations(last[is_cut])
            self._act(rows[is_cut], behind, np.zeros(int(is_cut.sum()), np.bool_))
        self._note(self._policy(rows), rows, len(recorded) + rows)


def _outcome(recorded: Recorded, rows: IntArray, here: IntArray) -> Outcome:
    """The outcomes of transitions [R], for rows [R]."""
    terminated = recorded.columns[TERMINATED][here]
    truncated = cut_off(recorded, here)
    end = np.zeros(len(rows), np.uint8)
    end[terminated] |= np.uint8(End.TERMINATED)
    end[truncated] |= np.uint8(End.TRUNCATED)
    return Outcome(
        rows=rows,
        observation=recorded.next_observations(here),
        reward=recorded.columns[REWARDS][here].astype(np.float64),
        terminated=terminated,
        truncated=truncated,
        duration=recorded.columns[DURATIONS][here],
        end=end,
        below=np.zeros(len(rows), np.uint8),
        tested=np.zeros(len(rows), np.bool_),
    )
