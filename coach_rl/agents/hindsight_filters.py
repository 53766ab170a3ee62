"""Check of an agent's filters under hindsight: they must leave goals unchanged.

Goals are read from what the agent keeps, put into it and rewarded by their distance, all in the
units of the environment; sub-goals that were achieved go back through the OutputFilter.
"""

from collections.abc import Iterable, Set

import numpy as np
from gymnasium import spaces

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.core.agents import LevelPlace, RowState
from coach_rl.core.errors import ActionError, ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.interfaces import OutputFilter
from coach_rl.memories.batches import LOW_BEGIN
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.memories.samplers import SamplerUnit

_PROBES = np.array([[0.0], [0.3], [1.0]])
"""Points in the range of a sub-goal's elements at which the inverse is tested, [3, 1]."""
_PRECISION = 1e-4
"""Largest error of the way there and back, in parts of an element's range."""


def check_filters(
    agent: FilteredAgent[RowState], memory: ReplayMemoryParameters, place: LevelPlace
) -> None:
    """Raise `ConfigurationError` where filters and a memory's hindsight contradict each other.

    Args:
        agent: The owner of the filters.
        memory: Parameters of its memory.
        place: Its place in the stack.
    """
    if memory.hindsight is None:
        return
    read = memory.hindsight.at(place).goal.keys_read
    for part in memory.parts:
        read |= part.reads(place)
    require_unfiltered(agent, read)
    for part in memory.parts:
        actions = part.actions(place)
        reason = None if actions is None else _no_way_back(agent.output_filter, actions)
        if reason is not None:
            kind = type(part).__name__
            raise ConfigurationError(
                f"agent '{agent.name}': {kind} shows what was achieved as actions, and the "
                f"OutputFilter has no exact way back to the agent's space: {reason}; use "
                f"LinearBoxToBoxMap or none, or leave out {kind}"
            )


def require_unfiltered(
    agent: FilteredAgent[RowState], keys: Set[str], reader: str = "hindsight"
) -> None:
    """Raise `ConfigurationError` where an agent's filters change goals, or their rewards.

    Args:
        agent: The owner of the filters.
        keys: Observation keys that goals are read from, beside the goals' own.
        reader: What reads them.
    """
    keys = {GOAL_KEY, *keys}
    changed = keys & agent.input_filter.changed_keys
    if changed:
        raise ConfigurationError(
            f"agent '{agent.name}': {reader} reads goals from {_named(keys)} as the environment "
            f"shows them, and the InputFilter has filters for {_named(changed)}; leave those out "
            "and set normalise_observations, which normalises inside the networks"
        )
    if agent.input_filter.changes_reward:
        raise ConfigurationError(
            f"agent '{agent.name}': {reader} rewards a part of each batch as its goals do, which "
            "the reward filters of the InputFilter would not see; leave InputFilter.reward out"
        )
    if agent.stages.adds_to_reward:
        raise ConfigurationError(
            f"agent '{agent.name}': {reader} rewards a part of each batch as its goals do, without "
            "the bonus; leave the bonus out"
        )


def check_units(
    agent: FilteredAgent[RowState], units: Iterable[SamplerUnit], *, holds_back: bool
) -> None:
    """Raise `ConfigurationError` where filters change what sampler units need unfiltered.

    Args:
        agent: The owner of the filters.
        units: Those of its memory.
        holds_back: Whether the agent may store transitions later than their decisions end.
    """
    for unit in units:
        if holds_back and LOW_BEGIN in unit.inputs:
            raise ConfigurationError(
                f"agent '{agent.name}': its sampler unit '{unit.name}' needs the steps below, "
                "which are found as decisions end, and `stores` may hold these back; leave out one"
            )
        changed = set(unit.unfiltered) & agent.input_filter.changed_keys
        if changed:
            raise ConfigurationError(
                f"agent '{agent.name}': its sampler unit '{unit.name}' needs {_named(changed)} as "
                "the environment shows it, and the InputFilter changes that; use "
                "normalise_observations instead"
            )


def _named(keys: Set[str]) -> str:
    return ", ".join(f"'{key}'" for key in sorted(keys))


def _no_way_back(output_filter: OutputFilter, sub_goals: spaces.Box) -> str | None:
    """Return why sub-goals that an agent could have sent cannot be recovered; None if they can."""
    extent = sub_goals.high - sub_goals.low.astype(np.float64)
    probes = (sub_goals.low + _PROBES * extent).astype(np.float32)  # [3, G]
    try:
        back = np.asarray(output_filter.inverse(probes))
        again = np.asarray(output_filter.apply(back))
    except (SpaceError, ActionError) as error:
        return str(error)
    near = np.isfinite(back).reshape(len(probes), -1).all(axis=1)  # [3]
    near &= (np.abs(again - probes) <= _PRECISION * extent).all(axis=1)
    if near.all():
        return None
    lost = int((~near).argmax())
    return (
        f"{probes[lost].tolist()} becomes {back[lost].tolist()}, and {again[lost].tolist()} again"
    )
