"""Policies that agents load from those of other runs, which have to fit."""

from collections.abc import Callable

from coach_rl.agents.stages.kinds import StageBuilder
from coach_rl.core.errors import CheckpointError, SpaceError
from coach_rl.core.saved import Saved, load_policy_state, policy_state
from coach_rl.core.state import State, check_same_kind

_COMPARED = {
    "filters": "filters",
    "networks": "networks",
    "normaliser": "normalised observations",
}
"""Parts of a policy that must hold the same things, by key, and their names in messages."""


def load_compared(agent: Saved, state: State, building: StageBuilder) -> None:
    """Load the policy of another agent; SpaceError where it does not fit.

    Args:
        agent: Gets it.
        state: The saved policy.
        building: Of the agent's stages.
    """
    name = building.build.name
    own = policy_state(agent)
    if own.keys() == {"filters"}:
        raise SpaceError(f"agent '{name}' has nothing that could be loaded")
    for kind in (*building.kinds.outside, *building.kinds.inside):
        kind.check_policy(state, building.stages.conditions, building.build)
    if missing := [key for key in own if key not in state]:
        raise SpaceError(f"the saved policy has no '{missing[0]}': it is another kind of agent")
    try:
        for key, part in own.items():
            if key in _COMPARED:
                check_same_kind(_COMPARED[key], *map(_shallow(key), (state[key], part)))
        load_policy_state(agent, state)
    except CheckpointError as error:
        raise SpaceError(str(error)) from error


def _shallow(key: str) -> Callable[[State], State]:
    """Return a function to the compared part of a state: of networks the names alone."""
    return dict.fromkeys if key == "networks" else dict
