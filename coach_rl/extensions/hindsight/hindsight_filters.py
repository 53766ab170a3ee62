"""Check of an agent's filters under hindsight: they must leave goals unchanged.

Goals are read from what the agent keeps, put into it and rewarded by their distance, all in the
units of the environment.
"""

from collections.abc import Set
from typing import Any

from coach_rl.agents.unfiltered_keys import quoted
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY


def require_unfiltered(agent: Any, keys: Set[str], reader: str = "hindsight") -> None:
    """Raise `ConfigurationError` where an agent's filters change goals, or their rewards.

    Args:
        agent: The owner of the filters, a `FilteredAgent`.
        keys: Observation keys that goals are read from, beside the goals' own.
        reader: What reads them.
    """
    keys = {GOAL_KEY, *keys}
    changed = keys & agent.input_filter.changed_keys
    if changed:
        raise ConfigurationError(
            f"agent '{agent.name}': {reader} reads goals from {quoted(keys)} as the environment "
            f"shows them, and the InputFilter has filters for {quoted(changed)}; leave those out "
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
