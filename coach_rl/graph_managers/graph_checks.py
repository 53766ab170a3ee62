"""Checks of a graph that has been built."""

from collections.abc import Mapping, Sequence

from coach_rl.core.agents import AnyAgent, explores
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, SpaceError, warn
from coach_rl.graph_managers.parameters import LevelParameters
from coach_rl.graph_managers.stack import Stack


def check_same_spaces(training: Stack, evaluation: Stack) -> None:
    """Raise a `SpaceError` unless evaluations show and take what training does."""
    ours = training.simulators.spaces
    theirs = evaluation.simulators.spaces
    for what in ("observation", "action"):
        mine, other = getattr(ours, what), getattr(theirs, what)
        if mine != other:
            raise SpaceError(
                f"evaluation_environment has the {what} space {other}, the environment of "
                f"training {mine}; evaluate in one with the same"
            )


def check_exploring(
    levels: Sequence[LevelParameters], agents: Mapping[str, AnyAgent], clock: Clock
) -> None:
    """Raise an error where no agent explored in training, and warn where some did not.

    Args:
        levels: Top first.
        agents: By the name of their level.
        clock: Of training.
    """
    still = [
        f"agent '{level.agent.name}' of level '{level.name}'"
        for level in levels
        if level.frozen
        or clock.levels.get(level.name) is Phase.TEST
        or not explores(agents[level.name])
    ]
    if len(still) == len(levels):
        raise ConfigurationError(
            f"there is nothing to sample: {' and '.join(still)} explored nothing in training, "
            "and act the same greedily; evaluate without sampling"
        )
    if still:
        warn(f"{' and '.join(still)} explored nothing in training, and act greedily here, too")
