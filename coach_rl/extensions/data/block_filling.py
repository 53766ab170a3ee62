"""Filling an agent's memory with a data set by whole episodes, where that makes no difference.

`read_into` lets an agent make each decision of the data as if in the world, so that whatever it
keeps with transitions is there. Most agents keep only what filters without statistics make of a
transition: their memories are filled an episode at a time, tens of times faster, with equal
contents.
"""

from collections.abc import Iterator

import numpy as np

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.stages.filters import FilteredInput
from coach_rl.agents.stages.stage import Stage
from coach_rl.architectures.observation_normaliser import ObservationNormaliser
from coach_rl.core.records import Array, FloatArray, IntArray, Observation
from coach_rl.extensions.data.recorded import Recorded, fitting_rows
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    under,
)
from coach_rl.memories.replay_memory import ReplayMemory
from coach_rl.memories.samplers import SamplerUnit

_CHANGING = ("prepare", "begin", "enter", "reward", "store", "advance")
"""Methods by which a stage changes what is stored of a decision."""
_OWN = ("act", "observe", "store")
"""Methods by which an agent of another class does."""


class ShownAlone(SamplerUnit):
    """Base of sampler units whose `as_shown` follows from each observation, and draws nothing."""


def fills_in_blocks(agent: OffPolicyAgent) -> bool:
    """Return whether episodes stored at once give the memory that single decisions give.

    They do unless what is stored of a decision depends on others, or on the policy: statistics of
    filters, filters that remember, hidden states, masks, bonuses, an agent with ways of its own.
    """
    layout = agent.memory.layout
    is_more = layout.extras or layout.frame_stack or agent.params.stores or agent.stages.kept
    if is_more or _stores_its_own_way(agent):
        return False
    return all(_is_function(each, agent) for each in agent.stages.all)


def stores_without_statistics(agent: OffPolicyAgent) -> bool:
    """Return whether what is stored of a decision depends on its episode and the networks alone.

    It may have hidden states, masks and stacks of frames with it, and no bonuses, statistics of
    filters, transitions that are held back, or an agent with ways of its own.
    """
    learns = any(agent.input_filter.state_dict().values()) or agent.stages.rewarding
    return not (learns or agent.params.stores or _stores_its_own_way(agent))


def learns_in_blocks(agent: OffPolicyAgent, num_rows: int) -> bool:
    """Return whether filling in blocks changes an agent that `fills_in_blocks` as reading does.

    Statistics of its networks follow one row in its order, but several rows in turns. Priorities
    follow the number of decisions.

    Args:
        agent: The agent.
        num_rows: N, the rows of its memory.
    """
    sampler = agent.memory.sampler
    drawing = [each for each in sampler.overriding("as_shown") if not isinstance(each, ShownAlone)]
    follows = num_rows == 1 and not drawing
    return (agent.normaliser is None or follows) and not sampler.overriding("added")


def fill_in_blocks(
    agent: OffPolicyAgent,
    recorded: Recorded,
    *,
    num_rows: int,
    episodes: IntArray | None = None,
    memory: ReplayMemory | None = None,
    learn: bool = False,
) -> None:
    """Fill the memory of an agent that `fills_in_blocks`, with what `read_into` gives it.

    See `read_into` for the errors.

    Args:
        agent: The agent.
        recorded: The data, in the spaces of the agent's level.
        num_rows: N, the rows of the memory.
        episodes: Numbers of the episodes; None: all.
        memory: A memory with room for them, of the agent's transitions; None: the agent's own.
        learn: Whether statistics of its networks are updated; nothing else of the agent changes.
    """
    if memory is None:
        memory = agent.memory
        fitting_rows(agent, recorded, num_rows, episodes)
    chosen = np.arange(len(recorded.begins)) if episodes is None else episodes

    def columns() -> Iterator[dict[str, Array]]:
        for episode in chosen.tolist():
            stored = _stored(agent, recorded, episode)
            if learn and agent.normaliser is not None:
                _normalise(agent.normaliser, memory.as_shown(under(OBSERVATIONS, stored)))
            yield stored

    memory.fill(columns(), "the data set")


def _stores_its_own_way(agent: OffPolicyAgent) -> bool:
    return any(getattr(type(agent), each) is not getattr(OffPolicyAgent, each) for each in _OWN)


def _is_function(stage: Stage, agent: OffPolicyAgent) -> bool:
    """True if what a stage makes of a decision for storing depends on that decision alone."""
    if isinstance(stage, FilteredInput):
        return stage.is_stateless and not any(agent.input_filter.state_dict().values())
    return all(getattr(type(stage), name) is getattr(Stage, name) for name in _CHANGING)


def _stored(agent: OffPolicyAgent, recorded: Recorded, episode: int) -> dict[str, Array]:
    """The columns [T, ...] of an episode as the agent stores them."""
    begin = recorded.begins[episode]
    places: IntArray = begin + np.arange(recorded.lengths[episode])  # [T]
    columns = recorded.columns
    reward = columns[REWARDS][places].astype(np.float64)
    first = _entered(agent, recorded.observations(places[:1]), reward[:1])
    after = _entered(agent, recorded.next_observations(places), reward)
    stored = {path: columns[path][places] for path in (TERMINATED, TRUNCATED, DURATIONS)}
    stored[REWARDS] = agent.input_filter.reward(
        {},
        np.arange(len(places)),
        reward,
        ends=stored[TERMINATED] | stored[TRUNCATED],
        learn=False,
    )
    for key, values in after.items():
        stored[f"{NEXT_OBSERVATIONS}{key}"] = values
        # A decision is made on what the one before it led to.
        stored[f"{OBSERVATIONS}{key}"] = np.concatenate([first[key], values[:-1]])
    return stored | _actions(agent, recorded, places)


def _normalise(normaliser: ObservationNormaliser, observation: Observation) -> None:
    """Update statistics with observations [T, ...] each, one by one: a block rounds otherwise."""
    for step in range(len(next(iter(observation.values())))):
        normaliser.update({key: values[step : step + 1] for key, values in observation.items()})


def _entered(agent: OffPolicyAgent, observation: Observation, reward: FloatArray) -> Observation:
    """Observations [R, ...] each of the level as the agent stores them, with rewards [R]."""
    rows = np.arange(len(reward))
    agent.check_shown(rows, observation, reward)
    starts = np.zeros(len(rows), np.bool_)
    return agent.stages.enter({}, rows, observation, starts=starts, learn=False)


def _actions(agent: OffPolicyAgent, recorded: Recorded, places: IntArray) -> dict[str, Array]:
    """The actions [T, ...] at places [T] in the agent's space, by path."""
    known = recorded.actions
    if isinstance(known, dict):
        own = agent.output_filter.inverse({key: part[places] for key, part in known.items()})
    else:
        own = agent.output_filter.inverse(known[places])
    if isinstance(own, dict):
        return {f"{ACTION_PARTS}{key}": part for key, part in own.items()}
    return {ACTIONS: own}
