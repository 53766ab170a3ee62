"""A policy led through the episodes of a data set: what it would do in each observation.

The agent sees each episode from its beginning, through its own filters and with its own hidden
state, and is answered what the data have; nothing is learned, and no environment is stepped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import AnyAgentRows
from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.core.clock import Clock
from coach_rl.core.errors import ConfigurationError
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
    in_agents_space,
    policy_of,
)
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import DURATIONS, REWARDS, TERMINATED, TRUNCATED

DRAWS = 16
"""Actions drawn in each observation for expectations over a policy in a Box."""


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
    observation: Observation
    """Filtered observations by place, [N + E, ...] each."""
    taken: Array
    """Actions of the data in the policy's space, [N, ...]."""
    log_prob: FloatArray | None
    """Log-probability of each of them under the policy, [N]; None where it has no density."""
    actions: Array
    """Actions of the policy by place, [N + E, K, ...]."""
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


def judged(agent: FilteredAgent[Any], recorded: Recorded, clock: Clock, *, seed: int) -> JudgedData:
    """The actions and probabilities of an agent in all observations of a data set.

    Args:
        agent: The agent, alone above the environment.
        recorded: The data, in the spaces of its level.
        clock: In TEST; it explores where the clock `samples`.
        seed: For the actions that are drawn.

    Raises:
        ConfigurationError: What it does while it explores is not known.
        SpaceError: An action has no way back through its OutputFilter.
    """
    lengths = recorded.lengths
    walk = _Walk(agent, recorded, clock, seed)
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
        self._taken = in_agents_space(agent, recorded.actions)
        self._log_prob: FloatArray | None = np.zeros(len(recorded))
        self._columns: dict[str, Array] = {}

    def step(self, step: int, rows: IntArray) -> None:
        """Show the decision of this number to rows [R], and what it led to."""
        agent = self._agent
        recorded = self._recorded
        here = recorded.begins[rows] + step
        starts = np.full(len(rows), step == 0)
        request = ActionRequest(
            rows=rows,
            observation=recorded.observations(here),
            starts=starts,
            episode_start=starts,
            greedy=np.zeros(len(rows), np.bool_),
        )
        agent.act(self._rows, request, self._clock)
        policy = self._note(rows, here)
        if not policy.has_probabilities:
            self._log_prob = None
        elif self._log_prob is not None:
            self._log_prob[here] = policy.log_prob(self._taken[here])
        outcome = _outcome(recorded, rows, here)
        agent.observe(self._rows, outcome, self._clock)
        is_over = recorded.lengths[rows] == step + 1
        if is_over.any():
            self._note(rows[is_over], len(recorded) + rows[is_over])

    def result(self) -> JudgedData:
        """The data with all that the policy would do."""
        columns = dict(self._columns)
        agent = self._agent
        return JudgedData(
            recorded=self._recorded,
            observation_space=agent.observation_space,
            action_space=agent.action_space,
            taken=self._taken,
            log_prob=self._log_prob,
            actions=columns.pop("actions"),
            chances=columns.pop("chances"),
            observation={
                key: columns[f"observation/{key}"] for key in agent.observation_space.spaces
            },
        )

    def _note(self, rows: IntArray, places: IntArray) -> ActionDistribution:
        """Keep what the policy does now in these rows; its distribution."""
        seen = take(self._rows.pending, rows)
        policy = policy_of(self._agent, seen, self._clock)
        if policy is None:
            raise ConfigurationError(
                f"the probabilities of the actions of agent '{self._agent.name}' "
                f"({type(self._agent).__name__}) are not known where it acts so; evaluate it in "
                "its environment, without --from"
            )
        actions, chances = policy.weighted_actions(DRAWS, self._rng)
        named = {f"observation/{key}": values for key, values in seen.items()}
        self._write(places, {**named, "actions": actions, "chances": chances})
        return policy

    def _write(self, places: IntArray, values: Mapping[str, Array]) -> None:
        total = len(self._recorded) + len(self._recorded.begins)
        for name, value in values.items():
            if name not in self._columns:
                self._columns[name] = np.zeros((total, *value.shape[1:]), value.dtype)
            self._columns[name][places] = value


def _outcome(recorded: Recorded, rows: IntArray, here: IntArray) -> Outcome:
    """The outcomes of transitions [R], for rows [R]."""
    terminated = recorded.columns[TERMINATED][here]
    truncated = recorded.columns[TRUNCATED][here]
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
