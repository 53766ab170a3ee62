"""Evaluations that sample: whose agents explore as they do in training."""

import warnings
from collections.abc import Sequence

from coach_rl.core.agents import AnyAgent, explores
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.graph_managers.parameters import LevelParameters


def require_exploring(
    levels: Sequence[LevelParameters], agents: Sequence[AnyAgent], clock: Clock
) -> None:
    """Raise `ConfigurationError` where no agent explores in training, and warn where some don't.

    Args:
        levels: The levels' parameters.
        agents: Their agents.
        clock: Phase and counters of training.
    """
    still = []
    for level, agent in zip(levels, agents, strict=True):
        is_frozen = level.frozen or clock.levels.get(level.name) is Phase.TEST
        if is_frozen or not explores(agent):
            still.append(f"agent '{level.agent.name}' of level '{level.name}'")
    if len(still) == len(levels):
        raise ConfigurationError(
            f"there is nothing to sample: {' and '.join(still)} explored nothing in training, "
            "and act the same greedily; evaluate without sampling"
        )
    if still:
        warnings.warn(
            f"{' and '.join(still)} explored nothing in training, and act greedily here, too",
            CoachWarning,
            stacklevel=4,
        )
