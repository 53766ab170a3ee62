"""Check of an agent's filters: what its memory needs unfiltered they must leave unchanged."""

from collections.abc import Iterable, Set

from coach_rl.agents.filtered_agent import FilteredAgent
from coach_rl.core.agents import RowState
from coach_rl.core.errors import ConfigurationError
from coach_rl.memories.batches import LOW_BEGIN
from coach_rl.memories.samplers import SamplerUnit


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
                f"agent '{agent.name}': its sampler unit '{unit.name}' needs {quoted(changed)} as "
                "the environment shows it, and the InputFilter changes that; use "
                "normalise_observations instead"
            )


def quoted(keys: Set[str]) -> str:
    """Observation keys in quotes, by name, for messages."""
    return ", ".join(f"'{key}'" for key in sorted(keys))
