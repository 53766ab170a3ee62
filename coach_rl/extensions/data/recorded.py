"""A data set in columns, and its way through an agent's filters into the agent's memory."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from coach_rl.agents.agent_rows import AnyAgentRows, action_of, flat_action, write_rows
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import (
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    INFOS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    extra,
    under,
)

_BLOCK = 10_000
"""Transitions that are compared at once."""


@dataclass(frozen=True)
class Recorded:
    """The transitions of a data set, episode by episode."""

    columns: Mapping[str, Array]
    """Their columns by path, [T, ...] each, as `memories.batches` names them."""
    begins: IntArray
    """The place of each episode's first transition, [E]."""
    folder: Path | None = None
    """Folder of the files that the columns are mapped from; None: they are in memory."""

    @classmethod
    def of(cls, episodes: Iterable[Mapping[str, Array]]) -> "Recorded":
        """The episodes of a data set, columns [T, ...] each, in one."""
        kept = list(episodes)
        lengths = [len(each[REWARDS]) for each in kept]
        paths = kept[0].keys() if kept else ()
        columns = {path: np.concatenate([each[path] for each in kept]) for path in paths}
        return cls(columns, np.cumsum([0, *lengths[:-1]]) if kept else np.zeros(0, np.int64))

    def __len__(self) -> int:
        """T, the number of transitions."""
        return len(self.columns[REWARDS]) if self.columns else 0

    @cached_property
    def lengths(self) -> IntArray:
        """The number of transitions of each episode, [E]."""
        return np.diff(self.begins, append=len(self))

    @cached_property
    def actions(self) -> Action:
        """All actions, or their parts by key, [T, ...] each."""
        parts = under(ACTION_PARTS, self.columns)
        return dict(parts) if ACTIONS not in self.columns else self.columns[ACTIONS]

    @cached_property
    def infos(self) -> Mapping[str, Array]:
        """The infos of the environment that were recorded, [T] each, by name."""
        return under(extra(INFOS), self.columns)

    def observations(self, places: IntArray) -> Observation:
        """Observations before transitions [R], [R, ...] each."""
        return self._taken(OBSERVATIONS, places)

    def next_observations(self, places: IntArray) -> Observation:
        """Observations after transitions [R], [R, ...] each."""
        return self._taken(NEXT_OBSERVATIONS, places)

    def breaks(self) -> dict[str, IntArray]:
        """Transitions within episodes whose next observation is not the one behind it, by key."""
        last = np.zeros(len(self), np.bool_)
        last[self.begins + self.lengths - 1] = True
        inner = np.flatnonzero(~last[:-1])
        found = {}
        for key, seen in under(OBSERVATIONS, self.columns).items():
            following = self.columns[f"{NEXT_OBSERVATIONS}{key}"]
            blocks = np.array_split(inner, max(1, len(inner) // _BLOCK))
            axes = tuple(range(1, seen.ndim))
            differ = [
                places[(following[places] != seen[places + 1]).any(axis=axes)] for places in blocks
            ]
            found[key] = np.concatenate(differ)
        return found

    def _taken(self, prefix: str, places: IntArray) -> Observation:
        found = under(prefix, self.columns)
        return {key: column.take(places, axis=0) for key, column in found.items()}


def read_into(
    agent: OffPolicyAgent,
    recorded: Recorded,
    *,
    num_rows: int,
    seed: int,
    episodes: IntArray | None = None,
) -> None:
    """Let an agent store a data set as if its decisions had just been made in HEATUP.

    Observations, rewards and actions pass the agent's filters, whose statistics learn from them;
    bonuses and whatever else the agent keeps with transitions come about as in the world.

    Args:
        agent: The agent; its memory is empty.
        recorded: The data, in the spaces of the agent's level.
        num_rows: N, the rows of its memory. Each episode goes into the one with fewest transitions.
        seed: For what the agent draws for rows; no choice depends on it.
        episodes: Numbers of the episodes that it learns from; None: all.

    Raises:
        ConfigurationError: The data do not fit into the memory.
        SpaceError: There is no way back through the agent's OutputFilter.
    """
    assigned = fitting_rows(agent, recorded, num_rows, episodes)
    actions = flat_action(agent.output_filter.inverse(recorded.actions))
    places = [_places(recorded, episodes) for episodes in assigned]
    is_first = np.zeros(len(recorded), np.bool_)
    is_first[recorded.begins] = True
    rows = agent.new_rows(num_rows, seed)
    clock = Clock(phase=Phase.HEATUP)
    for step in range(max(map(len, places), default=0)):
        among = np.array([row for row in range(num_rows) if step < len(places[row])])
        here = np.array([places[row][step] for row in among])
        _store(
            agent,
            rows,
            recorded,
            clock,
            among=among,
            here=here,
            first=is_first[here],
            choice={name: column[here] for name, column in actions.items()},
            num_rows=num_rows,
        )


def fitting_rows(
    agent: OffPolicyAgent, recorded: Recorded, num_rows: int, episodes: IntArray | None
) -> list[list[int]]:
    """The episodes of each row; ConfigurationError where they do not fit into the memory."""
    chosen = np.arange(len(recorded.begins)) if episodes is None else episodes
    assigned = _assigned(recorded.lengths, num_rows, chosen)
    capacity = agent.memory.capacity // num_rows
    fullest = max((int(recorded.lengths[each].sum()) for each in assigned), default=0)
    if fullest > capacity:
        raise ConfigurationError(
            f"a data set of {recorded.lengths[chosen].sum():,} transitions does not fit into the "
            f"memory of agent '{agent.name}': whole episodes go to one of its {num_rows} rows, "
            f"each holds {capacity:,} and one would get {fullest:,}; raise memory.capacity "
            f"({agent.memory.capacity:,})"
        )
    return assigned


def _store(
    agent: OffPolicyAgent,
    rows: AnyAgentRows,
    recorded: Recorded,
    clock: Clock,
    *,
    among: IntArray,
    here: IntArray,
    first: BoolArray,
    choice: Mapping[str, Array],
    num_rows: int,
) -> None:
    """Let rows [R] repeat transitions [R] of a data set, and store them."""
    followed: dict[str, Array] = {}
    write_rows(followed, among, dict(choice), num_rows)
    if not agent.stages.needed:
        rows.follow(followed)
    request = ActionRequest(
        rows=among,
        observation=recorded.observations(here),
        starts=first,
        episode_start=first,
        greedy=np.zeros(len(among), np.bool_),
    )
    agent.act(rows, request, clock)
    if agent.stages.needed:  # it has chosen at random, with what these keep, as a hidden state
        write_rows(rows.choice, among, dict(choice), num_rows)
        action = action_of(dict(choice))
        for stage in agent.stages.leaving:  # a bonus notes the action
            action = stage.leave(rows, among, action, request.observation)
    terminated = recorded.columns[TERMINATED][here]
    truncated = recorded.columns[TRUNCATED][here]
    end = np.zeros(len(among), np.uint8)
    end[terminated] |= np.uint8(End.TERMINATED)
    end[truncated] |= np.uint8(End.TRUNCATED)
    outcome = Outcome(
        rows=among,
        observation=recorded.next_observations(here),
        reward=recorded.columns[REWARDS][here].astype(np.float64),
        terminated=terminated,
        truncated=truncated,
        duration=recorded.columns[DURATIONS][here],
        end=end,
        below=np.zeros(len(among), np.uint8),
        tested=np.zeros(len(among), np.bool_),
        info={name: column[here] for name, column in recorded.infos.items()},
    )
    agent.observe(rows, outcome, clock)


def _assigned(lengths: IntArray, num_rows: int, chosen: IntArray) -> list[list[int]]:
    """The episodes of each row: one after the other to the row with fewest transitions."""
    assigned: list[list[int]] = [[] for _ in range(num_rows)]
    sizes = np.zeros(num_rows, np.int64)
    for episode in chosen.tolist():
        row = int(sizes.argmin())
        assigned[row].append(episode)
        sizes[row] += lengths[episode]
    return assigned


def _places(recorded: Recorded, episodes: list[int]) -> IntArray:
    """The transitions of episodes, in order."""
    found = [
        np.arange(recorded.begins[each], recorded.begins[each] + recorded.lengths[each])
        for each in episodes
    ]
    return np.concatenate(found) if found else np.zeros(0, np.int64)
